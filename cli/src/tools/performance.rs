//! The line by which a program says how fast it was: `performance: 1234.5 samples_per_second`, as madengine looks for it in its log.
//!
//! What the program writes passes through: to the same stream, in pieces as it comes. The first such line counts.

use std::io::{self, PipeReader, Read, Write};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use regex::bytes::Regex;

use crate::output::note::note;
use crate::system::signals::Signals;

/// Of a line, so much is looked at.
const LONGEST_LINE: usize = 1 << 16;

/// A wait that lasts longer is explained.
const BEFORE_NOTE: Duration = Duration::from_secs(2);

/// So often it is looked whether all streams have ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What a program said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Performance {
    /// As it is written.
    pub(crate) number: String,
    /// What it is a number of.
    pub(crate) metric: String,
}

/// Puts what was found into the trace's metadata, in the place of what an earlier run said.
///
/// # Errors
/// When the trace cannot be written.
pub(crate) fn keep(found: Option<&Performance>, trace: &Path) -> anyhow::Result<()> {
    let (mut trace, _) = rpd_schema::open_write(trace)?;
    let change = trace.transaction()?;
    change.execute("DELETE FROM rocpd_metadata WHERE tag IN ('performance', 'performance_metric')", [])?;
    let facts = found.map(|found| [("performance", &found.number), ("performance_metric", &found.metric)]);
    for (tag, value) in facts.into_iter().flatten() {
        change.execute("INSERT INTO rocpd_metadata (tag, value) VALUES (?1, ?2)", [tag, value])?;
    }
    Ok(change.commit()?)
}

/// What a line says, if it is such a line.
fn of_line(line: &[u8], form: &Regex) -> Option<Performance> {
    let found = form.captures(line)?;
    let text = |group| found.get(group).map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned());
    Some(Performance { number: text(1)?, metric: text(2)? })
}

/// `performance: NUMBER METRIC`, as madengine has it: a unit (`/s`), a comma, or both may stand behind the number; blanks or tabs
/// have to; the metric ends at a comma.
fn form() -> Result<Regex, regex::Error> {
    const NUMBER: &str = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?";
    const UNIT: &str = r"(?:,?\s*/[A-Za-z]+\s*,?|,)?";
    Regex::new(&format!(r"performance:\s+({NUMBER}){UNIT}\s+([^\s,]+)"))
}

/// The threads that pass on what the program writes.
pub(crate) struct Watched {
    streams: Vec<JoinHandle<io::Result<()>>>,
    found: Arc<Mutex<Option<Performance>>>,
}

impl Watched {
    /// Puts pipes in the place of the streams of `command`, which is to be started next.
    ///
    /// # Errors
    /// When there are no pipes or threads.
    pub(crate) fn streams(command: &mut Command) -> anyhow::Result<Watched> {
        let found = Arc::new(Mutex::new(None));
        let (output, ours) = io::pipe()?;
        command.stdout(ours);
        let (errors, ours) = io::pipe()?;
        command.stderr(ours);
        let form = form()?;
        let streams = vec![
            passed_on(output, io::stdout(), form.clone(), Arc::clone(&found))?,
            passed_on(errors, io::stderr(), form, Arc::clone(&found))?,
        ];
        Ok(Watched { streams, found })
    }

    /// Waits until nobody writes any more, or a signal asks to end, and says so where the command left somebody who writes; what was found,
    /// and why some of what was written could not be passed on.
    pub(crate) fn end(self) -> (Option<Performance>, io::Result<()>) {
        let signals = Signals::take(None);
        let mut patience = Some(Instant::now() + BEFORE_NOTE);
        while !self.streams.iter().all(JoinHandle::is_finished) {
            if patience.is_some_and(|until| Instant::now() >= until) {
                note(
                    "the command has ended; rpd passes on what the processes that it left running print, until they end or rpd gets a signal (Ctrl-C)",
                );
                patience = None;
            }
            match &signals {
                Ok(signals) => {
                    if signals.asked_to_end(LOOK_EVERY).is_ok_and(|signal| signal.is_some()) {
                        break;
                    }
                }
                Err(_) => thread::sleep(LOOK_EVERY),
            }
        }
        let mut passed_on = Ok(());
        for stream in self.streams.into_iter().filter(JoinHandle::is_finished) {
            passed_on =
                passed_on.and(stream.join().unwrap_or_else(|_| Err(io::Error::other("a thread failed"))));
        }
        (self.found.lock().unwrap_or_else(PoisonError::into_inner).take(), passed_on)
    }
}

fn passed_on(
    mut from: PipeReader,
    mut to: impl Write + Send + 'static,
    form: Regex,
    found: Arc<Mutex<Option<Performance>>>,
) -> io::Result<JoinHandle<io::Result<()>>> {
    thread::Builder::new().name("rpd-stream".into()).spawn(move || {
        let mut piece = vec![0; 1 << 16];
        let mut lines = Lines::default();
        let mut written = Ok(());
        loop {
            let count = match from.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if written.is_ok() {
                written = to.write_all(&piece[..count]).and_then(|()| to.flush());
            }
            // Who reads no more ends the command's stream as it would have without us. Otherwise the command goes on.
            if written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
                return Ok(());
            }
            lines.take(&piece[..count], |line| look(line, &form, &found));
        }
        lines.end(|line| look(line, &form, &found));
        written
    })
}

fn look(line: &[u8], form: &Regex, found: &Mutex<Option<Performance>>) {
    if let Some(performance) = of_line(line, form) {
        found.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(performance);
    }
}

/// Lines out of pieces.
#[derive(Default)]
struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    fn take(&mut self, piece: &[u8], mut line: impl FnMut(&[u8])) {
        for part in piece.split_inclusive(|byte| *byte == b'\n' || *byte == b'\r') {
            let room = LONGEST_LINE.saturating_sub(self.begun.len());
            self.begun.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") || part.ends_with(b"\r") {
                line(&self.begun);
                self.begun.clear();
            }
        }
    }

    fn end(&mut self, mut line: impl FnMut(&[u8])) {
        line(&self.begun);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Option<(String, String)> {
        let of = of_line(text.as_bytes(), &form().unwrap())?;
        Some((of.number, of.metric))
    }

    #[test]
    fn lines_are_those_of_madengine() {
        for (line, number, metric) in [
            ("performance: 1234.5 samples_per_second", "1234.5", "samples_per_second"),
            ("x performance: 14164/s, tokens", "14164", "tokens"),
            ("performance:   -1.5e-3   loss\n", "-1.5e-3", "loss"),
            ("performance: +3 it/s", "+3", "it/s"),
            ("performance: 3 it/s,rest", "3", "it/s"),
            ("performance: 3 µs", "3", "µs"),
            ("performance: 12 /s tokens", "12", "tokens"),
            ("performance: 12,/it , tokens", "12", "tokens"),
            ("performance: 1, 2 tokens", "1", "2"),
            ("performance: fast performance: 4 x", "4", "x"),
        ] {
            assert_eq!(said(line), Some((number.to_string(), metric.to_string())), "{line}");
        }
        for line in [
            "performance: fast",
            "perf: 3 x",
            "performance 3 x",
            "performance:3 x",
            "performance: 0x10 x",
            "performance: 1_000 x",
            "performance: 1/s,x",
            "performance: 3 , x",
            "",
        ] {
            assert_eq!(said(line), None, "{line}");
        }
    }

    #[test]
    fn lines_come_in_pieces() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        for piece in [&b"a\nb"[..], b"c\r", b"", b"\nd"] {
            lines.take(piece, |line| seen.push(String::from_utf8_lossy(line).into_owned()));
        }
        lines.end(|line| seen.push(String::from_utf8_lossy(line).into_owned()));
        assert_eq!(seen, ["a\n", "bc\r", "\n", "d"]);
        let mut longest = 0;
        lines.take(&vec![b'x'; 3 * LONGEST_LINE], |_| ());
        lines.take(b"\n", |line| longest = line.len());
        assert_eq!(longest, LONGEST_LINE);
    }
}
