//! Where a trace grows: a directory of its own beside the place where it will be, so that it can be moved there. It
//! goes with its rpd; what one that was killed left is removed by the next that makes a trace there.
//!
//! A lock on the directory says that its rpd lives. The files in it cannot carry the lock: some network file systems take
//! it for one of SQLite's. Its name begins with a part of the boot's id, because others keep such locks to each host.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// How often a directory may vanish before its lock is held.
const ATTEMPTS: u32 = 100;

/// The directory.
pub(super) struct Growing {
    directory: TempDir,
    /// Open as long as the lock is to be held.
    _lock: File,
}

impl Growing {
    /// A new one in `place`, from which it removes those of rpds that are gone.
    ///
    /// # Errors
    /// When none can be made there.
    pub(super) fn within(place: &Path) -> io::Result<Growing> {
        let prefix = prefix();
        sweep(place, &prefix);
        let mut why = io::Error::from(io::ErrorKind::WouldBlock);
        for _ in 0..ATTEMPTS {
            let directory = tempfile::Builder::new().prefix(&prefix).tempdir_in(place)?;
            // Until it is locked it looks like one that was left. Where there are no locks it never does.
            let is_others = |lock: &File| matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
            match File::open(directory.path()) {
                Ok(lock) if !is_others(&lock) && directory.path().exists() => {
                    return Ok(Growing { directory, _lock: lock });
                }
                Ok(_) => {}
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// A new file in it, with these permissions within the umask.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn file(&self, name: &str, mode: u32) -> io::Result<PathBuf> {
        let path = self.directory.path().join(name);
        OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
        Ok(path)
    }
}

fn prefix() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!(".rpd-{}-", boot.split('-').next().unwrap_or_default())
}

/// Removes the directories whose rpd is gone, as far as this user may.
fn sweep(place: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        let is_one = entry.file_name().to_string_lossy().starts_with(prefix)
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_one
            && let Ok(lock) = File::open(entry.path())
            && lock.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
