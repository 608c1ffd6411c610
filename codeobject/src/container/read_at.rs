//! Bytes that are read piece by piece, from a file or from memory.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that can be read from anywhere.
pub trait ReadAt {
    /// How many there are.
    fn size(&self) -> u64;

    /// `length` of them from `offset` on. The caller stays within [`ReadAt::size`].
    ///
    /// # Errors
    /// Where they cannot be read, or have become fewer.
    fn read(&self, offset: u64, length: usize) -> io::Result<Cow<'_, [u8]>>;
}

impl ReadAt for [u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Cow<'_, [u8]>> {
        let start = usize::try_from(offset).ok();
        let bytes = start.and_then(|start| self.get(start..)?.get(..length));
        bytes.map(Cow::Borrowed).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// A regular file. Its size is asked for once for each use, so that a file that grows changes nothing half-way.
impl ReadAt for File {
    fn size(&self) -> u64 {
        self.metadata().map_or(0, |metadata| metadata.len())
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Cow<'_, [u8]>> {
        let mut bytes = Vec::new();
        // A sparse file may be larger than memory; whoever asks has a limit that is less, but not less than any machine has.
        bytes.try_reserve_exact(length)?;
        bytes.resize(length, 0);
        self.read_exact_at(&mut bytes, offset)?;
        Ok(Cow::Owned(bytes))
    }
}
