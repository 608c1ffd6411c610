//! A part of a file that is made before its place in the file comes: kept in a temporary file until then.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, Write};

use anyhow::Result;

use super::columns::temporary;

/// Elements with a separator between two of them.
pub(super) struct Section {
    file: BufWriter<File>,
    separator: &'static [u8],
    element: Vec<u8>,
    /// How many elements there are.
    pub(super) count: u64,
}

impl Section {
    /// No elements yet.
    ///
    /// # Errors
    /// When there can be no temporary file.
    pub(super) fn new(separator: &'static [u8]) -> Result<Section> {
        let file = BufWriter::with_capacity(64 << 10, tempfile::tempfile().map_err(temporary)?);
        Ok(Section { file, separator, element: Vec::new(), count: 0 })
    }

    /// Lets `make` append the bytes of a further element.
    ///
    /// # Errors
    /// When the temporary file cannot be written.
    pub(super) fn add(&mut self, make: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        self.element.clear();
        if self.count > 0 {
            self.element.extend_from_slice(self.separator);
        }
        self.count += 1;
        make(&mut self.element);
        self.file.write_all(&self.element).map_err(temporary)
    }

    /// Writes all elements to `out`.
    ///
    /// # Errors
    /// When the temporary file cannot be read; when `out` cannot be written, an [`std::io::Error`] is in the chain.
    pub(super) fn write(self, out: &mut dyn Write) -> Result<()> {
        let mut file = self.file.into_inner().map_err(|error| temporary(error.into_error()))?;
        file.rewind().map_err(temporary)?;
        let mut bytes = vec![0; 64 << 10];
        loop {
            let read = file.read(&mut bytes).map_err(temporary)?;
            if read == 0 {
                return Ok(());
            }
            out.write_all(&bytes[..read])?;
        }
    }
}
