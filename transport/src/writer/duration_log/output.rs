//! The output of the duration log: standard output, a file, a pipe, a device.
//!
//! - It is opened for each piece of work, so that a file may be moved, deleted and replaced, and a program that closes all descriptors
//!   takes none from us. A pipe stays open, because its reader takes our closing it for the end.
//! - Any number of processes append to one file. Each write has whole lines, and no more of them than a pipe takes at once.
//! - A pipe or terminal that takes nothing now is asked again, not waited in: nothing may keep this thread when the process ends.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Error, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rpd_preload::threads;

use crate::config::LogLocation;
use crate::host::{self, FileId};
use crate::writer::system_calls::{self, LOG};

/// Bytes of one write, which lines of other processes do not mix with.
const PIECE: usize = libc::PIPE_BUF;
/// How long an output is left alone that takes nothing now: at first, and at last.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));
/// How long our threads alone wait for an output that takes nothing.
const STUCK: Duration = Duration::from_secs(1);
/// How long another process may take to begin a file.
const TURN: Duration = Duration::from_secs(1);
/// What an SQLite file begins with (sqlite.org/fileformat2.html §1.3).
const DATABASE: &[u8; 16] = b"SQLite format 3\0";

pub(super) struct LogOutput {
    location: LogLocation,
    /// The file's name in this process; empty for standard output.
    path: PathBuf,
    /// With what a log begins.
    header: String,
    /// A pipe, which stays open.
    pipe: Option<OpenLog>,
    /// What lines went to last.
    known: Option<FileId>,
    /// The end of a line there whose begin is there.
    rest: Vec<u8>,
}

impl LogOutput {
    /// Opens nothing yet.
    pub(super) fn new(location: LogLocation, header: String) -> LogOutput {
        let path = match &location {
            LogLocation::Console(_) => PathBuf::new(),
            LogLocation::File(template) => template.expanded(),
        };
        LogOutput { location, path, header, pipe: None, known: None, rest: Vec::new() }
    }

    /// For people.
    pub(super) fn name(&self) -> String {
        match &self.location {
            LogLocation::Console(_) => "standard output".to_string(),
            LogLocation::File(_) => self.path.display().to_string(),
        }
    }

    /// Writes whole lines, and counts them. Takes as long as the output, until `is_over`.
    ///
    /// # Errors
    /// What went wrong with the first line that could not be written. Those behind it were not tried.
    pub(super) fn write(
        &mut self,
        lines: &[u8],
        written: &AtomicU64,
        is_over: &AtomicBool,
    ) -> io::Result<()> {
        let (open, is_pipe) = self.open(is_over)?;
        let done = self.put_lines(open.file()?, lines, written, is_over);
        if is_pipe {
            self.pipe = Some(open);
        }
        done
    }

    fn put_lines(
        &mut self,
        file: &File,
        lines: &[u8],
        written: &AtomicU64,
        is_over: &AtomicBool,
    ) -> io::Result<()> {
        let count = |bytes: &[u8]| {
            let ends = bytes.iter().filter(|byte| **byte == b'\n').count();
            written.fetch_add(ends as u64, Ordering::Relaxed);
        };
        let (length, done) = put(file, &self.rest, is_over);
        count(&self.rest[..length]);
        self.rest.drain(..length);
        done?;
        let mut left = lines;
        while !left.is_empty() {
            let (piece, _) = left.split_at(piece_length(left));
            let (length, done) = put(file, piece, is_over);
            count(&piece[..length]);
            if let Err(error) = done {
                let is_cut = length > 0 && piece[length - 1] != b'\n';
                let end = line_end(&piece[length..]);
                self.rest = if is_cut { piece[length..length + end].to_vec() } else { Vec::new() };
                return Err(error);
            }
            left = &left[piece.len()..];
        }
        Ok(())
    }

    /// What lines go to now, and whether it is a pipe; what a log begins with is there.
    fn open(&mut self, is_over: &AtomicBool) -> io::Result<(OpenLog, bool)> {
        if let Some(pipe) = self.pipe.take().filter(|_| LOG.is_ours()) {
            return Ok((pipe, true));
        }
        let file = match &self.location {
            LogLocation::Console(expected) => console(*expected)?,
            LogLocation::File(_) => file_at(&self.path)?,
        };
        let found = file.metadata()?;
        let id = (found.dev(), found.ino());
        let open = OpenLog::new(file, id);
        let is_file = found.is_file() && matches!(self.location, LogLocation::File(_));
        let is_new = self.known != Some(id) || (is_file && found.len() == 0);
        if is_new {
            self.rest.clear();
            match is_file {
                true => begin_file(open.file()?, &self.path, id, &self.header)?,
                false => put(open.file()?, self.header.as_bytes(), is_over).1?,
            }
            self.known = Some(id);
        }
        let is_pipe = found.file_type().is_fifo() && matches!(self.location, LogLocation::File(_));
        Ok((open, is_pipe))
    }
}

/// A descriptor that nobody else closes, as far as that can be known.
struct OpenLog(Option<File>);

impl OpenLog {
    fn new(file: File, id: FileId) -> OpenLog {
        LOG.put(file.as_raw_fd(), id);
        OpenLog(Some(file))
    }

    fn file(&self) -> io::Result<&File> {
        self.0.as_ref().ok_or_else(|| ErrorKind::NotFound.into())
    }
}

impl Drop for OpenLog {
    fn drop(&mut self) {
        let Some(file) = self.0.take() else { return };
        // The program may have closed it, and have another file under its number.
        match LOG.is_ours() {
            true => drop(file),
            false => _ = file.into_raw_fd(),
        }
        LOG.forget();
    }
}

/// Standard output, as long as it is what it was when the library was loaded: the program may have put a file of its own in its place.
fn console(expected: Option<FileId>) -> io::Result<File> {
    let own = host::standard_output()?;
    let found = own.metadata()?;
    let is_expected = |found: &Metadata| Some((found.dev(), found.ino())) == expected;
    if !is_expected(&found) {
        return Err(Error::other("the program has put something else in its place"));
    }
    // Whether writes wait is a matter of the open file, which the program has as well. Of a file it has the place where it writes.
    if found.file_type().is_fifo() || found.file_type().is_char_device() {
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        // The process's own folder shows nothing when its first thread has ended.
        let other = OpenOptions::new().write(true).custom_flags(flags).open("/proc/thread-self/fd/1");
        if let Some(other) =
            other.ok().filter(|other| other.metadata().is_ok_and(|found| is_expected(&found)))
        {
            return Ok(other);
        }
    }
    Ok(own)
}

/// A file, which is made where it is missing, or what else is there.
fn file_at(path: &Path) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().append(true).create(true).custom_flags(flags).open(path)?;
    // The numbers of the standard streams are those of whoever opens something when they are closed: not ours.
    if file.as_raw_fd() <= libc::STDERR_FILENO { file.try_clone() } else { Ok(file) }
}

/// A file that is new to this process: what a log begins with is written by whoever comes first.
fn begin_file(file: &File, path: &Path, id: FileId, header: &str) -> io::Result<()> {
    if system_calls::has_open(Some(id)) || is_database(path) {
        return Err(Error::other("it is a database, which stays as it is"));
    }
    let has_turn = take_turn(file);
    let begun = file.metadata().and_then(|found| match found.len() {
        0 => (&*file).write_all(header.as_bytes()).inspect_err(|_| {
            // A part of it would be taken for the whole.
            let _ = file.set_len(0);
        }),
        _ => Ok(()),
    });
    if has_turn {
        let _ = file.unlock();
    }
    begun
}

/// Locks the file, for a while. False also where files cannot be locked.
fn take_turn(file: &File) -> bool {
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return true,
            Err(TryLockError::WouldBlock) if begin.elapsed() < TURN => std::thread::sleep(PAUSES.0),
            Err(_) => return false,
        }
    }
}

fn is_database(path: &Path) -> bool {
    let mut begin = [0; DATABASE.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok() && begin == *DATABASE
}

/// How long the first of these lines are together that go into one write; a longer one goes by itself.
fn piece_length(lines: &[u8]) -> usize {
    let most = &lines[..lines.len().min(PIECE)];
    match most.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => end + 1,
        None => line_end(lines),
    }
}

/// How long the first line is.
fn line_end(lines: &[u8]) -> usize {
    lines.iter().position(|byte| *byte == b'\n').map_or(lines.len(), |end| end + 1)
}

/// Writes all of it, or what can be: how much that was, and what went wrong.
fn put(mut file: &File, bytes: &[u8], is_over: &AtomicBool) -> (usize, io::Result<()>) {
    let (mut done, mut since, mut pause) = (0, Instant::now(), PAUSES.0);
    while done < bytes.len() {
        if !LOG.is_ours() {
            return (done, Err(Error::other("the program has closed it")));
        }
        match file.write(&bytes[done..]) {
            Ok(0) => return (done, Err(ErrorKind::WriteZero.into())),
            Ok(length) => {
                done += length;
                (since, pause) = (Instant::now(), PAUSES.0);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let is_alone = || since.elapsed() > STUCK && threads::are_alone();
                if is_over.load(Ordering::Relaxed) || is_alone() {
                    is_over.store(true, Ordering::Relaxed);
                    return (done, Err(Error::other("nobody takes its lines")));
                }
                std::thread::sleep(pause);
                pause = (2 * pause).min(PAUSES.1);
            }
            Err(error) => return (done, Err(error)),
        }
    }
    (done, Ok(()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::OpenOptionsExt;

    use super::*;
    use crate::config::Template;

    #[test]
    fn a_piece_has_whole_lines_that_a_pipe_takes_at_once() {
        let lines = "kernel,1,2,3\n".repeat(1000);
        let piece = &lines[..piece_length(lines.as_bytes())];
        assert!(piece.ends_with('\n') && piece.len() <= PIECE && piece.len() + 13 > PIECE, "{}", piece.len());
        let long = format!("{},1,2,3\nkernel,1,2,3\n", "x".repeat(2 * PIECE));
        assert_eq!(&long[piece_length(long.as_bytes())..], "kernel,1,2,3\n");
    }

    /// A pipe takes a part of a line that is longer than itself.
    #[test]
    fn a_line_that_was_cut_goes_on_when_there_is_room() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: a NUL-terminated path.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let mut reader = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
        let mut read = || {
            let mut text = Vec::new();
            // It ends where nothing more is there.
            let _ = reader.read_to_end(&mut text);
            String::from_utf8(text).unwrap()
        };
        let mut output = LogOutput::new(LogLocation::File(Template::new(&path)), "header\n".into());
        let (written, is_over) = (AtomicU64::new(0), AtomicBool::new(true));
        let long = format!("{},1,2,3\n", "x".repeat(200_000));
        let lines = format!("first,1,2,3\n{long}lost,1,2,3\n");
        assert!(output.write(lines.as_bytes(), &written, &is_over).is_err());
        assert_eq!(written.load(Ordering::Relaxed), 1);
        let mut text = read();
        assert!(text.len() > 1000 && text.len() < long.len(), "{}", text.len());
        while output.write(b"", &written, &is_over).is_err() {
            text.push_str(&read());
        }
        output.write(b"next,1,2,3\n", &written, &is_over).unwrap();
        text.push_str(&read());
        assert_eq!(text, format!("header\nfirst,1,2,3\n{long}next,1,2,3\n"));
        assert_eq!(written.load(Ordering::Relaxed), 3);
    }
}
