//! A file on disk, opened anew for each use: a program may close descriptors that it does not know, and a child inherits them.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file as it was when it was first opened.
pub(super) struct FileReader {
    path: PathBuf,
    identity: (u64, u64, u64, i64, i64),
}

impl FileReader {
    /// Opens a file. Others than regular ones might not end.
    pub(super) fn open(path: &Path) -> Option<(FileReader, File)> {
        let file = File::open(path).ok()?;
        let metadata = file.metadata().ok()?;
        let source = FileReader { path: path.to_path_buf(), identity: identity(&metadata) };
        metadata.is_file().then_some((source, file))
    }

    /// Opens it again, if it is the same file and was not written to since.
    pub(super) fn again(&self) -> Option<File> {
        let file = File::open(&self.path).ok()?;
        (identity(&file.metadata().ok()?) == self.identity).then_some(file)
    }
}

fn identity(metadata: &Metadata) -> (u64, u64, u64, i64, i64) {
    (metadata.dev(), metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec())
}
