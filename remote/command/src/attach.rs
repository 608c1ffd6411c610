//! Finding the block of a process and mapping it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use rpd_remote_block::{NAME, SIZE, SharedBlock};

use crate::process;
use crate::refusal::Refusal;

/// A process with a loader.
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// Which process of that number it is.
    start_time: u64,
    file: File,
    block: NonNull<SharedBlock>,
}

// SAFETY: the mapping belongs to no thread, and what lies in it are atomics.
unsafe impl Send for Process {}

impl Deref for Process {
    type Target = SharedBlock;

    fn deref(&self) -> &SharedBlock {
        // SAFETY: mapped by `map`, sealed against shrinking, until this is dropped; atomics, for which any bytes are a value.
        unsafe { self.block.as_ref() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `map`, to which no reference outlives this.
        unsafe { libc::munmap(self.block.as_ptr().cast(), SIZE) };
    }
}

impl Process {
    /// The process `pid` and its block.
    ///
    /// # Errors
    /// Why it cannot be controlled.
    pub(crate) fn attach(pid: u32) -> Result<Process, Refusal> {
        Process::find(pid).map_err(|refusal| match process::stat(pid) {
            // Whatever came of looking into a process that was just ending.
            None => Refusal::NoSuchProcess,
            Some(_) => refusal,
        })
    }

    fn find(pid: u32) -> Result<Process, Refusal> {
        let stat = process::stat(pid).ok_or(Refusal::NoSuchProcess)?;
        let owner = process::owner(pid).ok_or(Refusal::NoSuchProcess)?;
        let found = find(pid).map_err(|error| refused(pid, owner, &error))?;
        let Some(descriptor) = found else {
            let loader = process::has_loader(pid).map_err(|error| refused(pid, owner, &error))?;
            return Err(if loader { Refusal::NoRuntime } else { Refusal::NoLoader });
        };
        let file = open(&descriptor).map_err(|error| refused(pid, owner, &error))?;
        let of = file.metadata().map_err(|error| Refusal::System(error.to_string()))?;
        // SAFETY: a descriptor of ours; asks for a number.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        let is_ours = of.uid() == owner || of.uid() == process::own_user();
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 || of.len() < SIZE as u64 || !is_ours {
            return Err(Refusal::Forged(of.uid()));
        }
        let block = map(&file).map_err(|error| Refusal::System(error.to_string()))?;
        let process = Process { pid, start_time: stat.start_time, file, block };
        match process.check() {
            // Published a moment from now.
            Err(0) => return Err(Refusal::NoRuntime),
            Err(layout) => return Err(Refusal::OtherVersion(layout)),
            Ok(()) => {}
        }
        let started = process.started();
        let same_start = started == 0 || started == stat.start_time || !process::shares_clocks(pid);
        let number = process::own_number(pid);
        if !same_start || number.is_some_and(|number| number != process.number()) {
            return Err(Refusal::Inherited);
        }
        Ok(process)
    }

    /// Runs `act` while no other command writes to the block.
    ///
    /// # Errors
    /// Another command has it for longer than `patience`.
    pub(crate) fn alone<T>(
        &self,
        patience: Duration,
        act: impl FnOnce() -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let begin = Instant::now();
        while let Err(error) = self.file.try_lock() {
            if let TryLockError::Error(error) = error {
                return Err(Refusal::System(format!("cannot lock its block: {error}")));
            }
            if begin.elapsed() > patience {
                return Err(Refusal::Busy(patience.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let done = act();
        // The kernel does it anyway when the file is closed, or this command is killed.
        let _ = self.file.unlock();
        done
    }

    /// What it is doing, unless it has ended.
    pub(crate) fn stat(&self) -> Option<process::Stat> {
        process::stat(self.pid).filter(|stat| stat.start_time == self.start_time)
    }
}

fn refused(pid: u32, owner: u32, error: &io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::PermissionDenied if owner == process::own_user() || process::own_user() == 0 => {
            Refusal::Guarded
        }
        io::ErrorKind::PermissionDenied => match process::stat(pid) {
            Some(_) => Refusal::OtherUser(owner),
            None => Refusal::NoSuchProcess,
        },
        io::ErrorKind::NotFound => Refusal::NoSuchProcess,
        _ => Refusal::System(error.to_string()),
    }
}

/// The descriptor that is called after the block.
fn find(pid: u32) -> io::Result<Option<PathBuf>> {
    let name = format!("/memfd:{}", NAME.to_string_lossy());
    for descriptor in fs::read_dir(process::path(pid, "fd"))? {
        let Ok(descriptor) = descriptor else { continue };
        let target = fs::read_link(descriptor.path()).unwrap_or_default();
        if target
            .to_string_lossy()
            .strip_prefix(&name)
            .is_some_and(|rest| rest.is_empty() || rest == " (deleted)")
        {
            return Ok(Some(descriptor.path()));
        }
    }
    Ok(None)
}

/// Opens what the descriptor is. It may have become another file by now, which opening must not disturb: first only a handle.
fn open(descriptor: &Path) -> io::Result<File> {
    let handle = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(descriptor)?;
    if !handle.metadata()?.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    OpenOptions::new().read(true).write(true).open(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

fn map(file: &File) -> io::Result<NonNull<SharedBlock>> {
    let (read_write, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: a new mapping of a file that has that size and is sealed against losing it.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), SIZE, read_write, shared, file.as_raw_fd(), 0) };
    match NonNull::new(address.cast()) {
        Some(block) if address != libc::MAP_FAILED => Ok(block),
        _ => Err(io::Error::last_os_error()),
    }
}
