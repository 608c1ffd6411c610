//! A file that data is written to in place of standard output.

use std::any::Any;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rpd_postprocess::notes::Notes;
use tempfile::NamedTempFile;

/// A file that is to be written: it appears when it is complete. Devices and pipes are written as they are.
pub(crate) enum OutputFile {
    Existing(BufWriter<File>),
    /// The file beside, where it will stand, and what holds back signals that would leave it behind.
    New(BufWriter<NamedTempFile>, PathBuf, Box<dyn Any>),
}

impl OutputFile {
    /// The file `path`, in place of one that may be there.
    ///
    /// # Errors
    /// When no file can be made beside it, or signals cannot be held back.
    pub(crate) fn at(path: &Path, notes: &dyn Notes) -> io::Result<OutputFile> {
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Ok(OutputFile::Existing(BufWriter::new(File::options().write(true).open(path)?)));
        }
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let directory = place.parent().filter(|directory| !directory.as_os_str().is_empty());
        let held = notes.hold_signals()?;
        let file = tempfile::Builder::new()
            .prefix(".rpd-")
            .make_in(directory.unwrap_or(Path::new(".")), |path| {
                File::options().write(true).create_new(true).mode(0o666).open(path)
            })?;
        Ok(OutputFile::New(BufWriter::new(file), place, held))
    }

    /// Where to write.
    pub(crate) fn file(&mut self) -> &mut (dyn Write + Send) {
        match self {
            OutputFile::Existing(file) => file,
            OutputFile::New(file, ..) => file,
        }
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// When it cannot be written, or not take its place.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            OutputFile::Existing(mut file) => file.flush(),
            OutputFile::New(file, place, _held) => {
                let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.persist(place).map(drop).map_err(|error| error.error)
            }
        }
    }
}
