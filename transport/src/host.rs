//! What names this process among the ranks of a job: boot, command line; and what its standard output is.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use rpd_preload::descriptors;

/// Identity of this boot of the host: CLOCK_MONOTONIC values of two files compare only within one boot.
pub fn boot_id() -> String {
    descriptors::with_room(|| std::fs::read_to_string("/proc/sys/kernel/random/boot_id"))
        .map(|s| s.trim().to_string())
        .unwrap_or_default()
}

/// Which process ids this process has one of; empty where that cannot be read. Containers have their own.
pub fn pid_namespace() -> String {
    std::fs::read_link("/proc/self/ns/pid")
        .map(|link| link.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// The command line, arguments joined by spaces.
pub fn command() -> String {
    let bytes = descriptors::with_room(|| std::fs::read("/proc/self/cmdline")).unwrap_or_default();
    let words: Vec<_> = bytes.split(|b| *b == 0).map(String::from_utf8_lossy).collect();
    words.join(" ").trim_end().to_string()
}

/// Path of the executable, empty when it cannot be read.
pub fn executable() -> std::path::PathBuf {
    std::fs::read_link("/proc/self/exe").unwrap_or_default()
}

/// Device and inode.
pub type FileId = (u64, u64);

/// Another descriptor of what standard output is now.
///
/// # Errors
/// Where it is closed.
pub(crate) fn standard_output() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// What standard output is now; nothing where it is closed.
pub(crate) fn standard_output_id() -> Option<FileId> {
    let found = standard_output().and_then(|file| file.metadata()).ok()?;
    Some((found.dev(), found.ino()))
}
