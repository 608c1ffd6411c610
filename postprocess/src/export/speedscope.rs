//! The JSON of speedscope.app: a profile for each thread, in which frames open and close along its clock.
//!
//! Facts: file-format-spec.ts of speedscope 1.25. `at` never becomes smaller, what opens last closes first, and everything closes.

use std::io::{BufWriter, Write};

use anyhow::Result;
use rpd_schema::Version;
use rusqlite::Connection;

use super::Exported;
use super::call_tree::{self, FrameNames, Thread, TreeFrame, TreeOptions, Trees};
use super::json::{digits, escape_into};
use super::section::Section;
use super::timeline::begin_reading;
use crate::notes::Notes;

/// Bytes of names in memory at most. A name that comes again later is in the file twice.
const MOST_IN_MEMORY: usize = 48 << 20;

/// Writes the trees of `trace`, which was named `name`, to `out`.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read, when calls nest too deep, when a signal came (`notes`), or when `out` cannot be
/// written: then an [`std::io::Error`] is in the chain.
pub fn export(
    name: &str,
    trace: (&Connection, Version),
    options: &TreeOptions,
    notes: &dyn Notes,
    out: &mut (dyn Write + Send),
) -> Result<Exported> {
    let mut profiles = Profiles {
        out: BufWriter::new(out),
        frames: Section::new(b",\n")?,
        open: Vec::new(),
        begin: None,
        is_first_profile: true,
        is_first_event: true,
        now: 0,
        element: Vec::new(),
        most_in_memory: MOST_IN_MEMORY,
    };
    profiles.element.extend_from_slice(
        b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"rpd\",\"name\":\"",
    );
    escape_into(&mut profiles.element, name);
    profiles.element.extend_from_slice(b"\",\n\"profiles\":[");
    profiles.put()?;
    begin_reading(trace.0)?;
    let exported = call_tree::walk(trace, options, notes, &mut profiles)?;
    profiles.finish()?;
    Ok(exported)
}

/// What is written.
struct Profiles<W: Write> {
    out: BufWriter<W>,
    /// The names of frames, which are behind the profiles.
    frames: Section,
    /// Numbers of the frames that are open.
    open: Vec<u32>,
    /// When the profile began that is open.
    begin: Option<i64>,
    is_first_profile: bool,
    is_first_event: bool,
    now: i64,
    /// What is written next.
    element: Vec<u8>,
    /// Bytes of names.
    most_in_memory: usize,
}

impl<W: Write> Trees for Profiles<W> {
    fn thread(&mut self, thread: &Thread<'_>, now: i64) -> Result<()> {
        self.end_profile()?;
        let separator: &[u8] = if self.is_first_profile { b"\n" } else { b",\n" };
        self.is_first_profile = false;
        self.element.extend_from_slice(separator);
        self.element.extend_from_slice(b"{\"type\":\"evented\",\"name\":\"");
        escape_into(&mut self.element, thread.process);
        if !thread.name.is_empty() {
            self.element.extend_from_slice(b", ");
            escape_into(&mut self.element, thread.name);
        }
        self.element.extend_from_slice(b"\",\"unit\":\"nanoseconds\",\"startValue\":");
        digits(&mut self.element, now);
        self.element.extend_from_slice(b",\"events\":[");
        self.begin = Some(now);
        self.is_first_event = true;
        self.now = now;
        self.put()
    }

    fn enter(&mut self, names: &mut FrameNames<'_>, frame: TreeFrame, _: i64, now: i64) -> Result<()> {
        if names.bytes() >= self.most_in_memory {
            names.forget();
        }
        let number = names.number(frame, |name| {
            self.frames.add(|element| {
                element.extend_from_slice(b"{\"name\":\"");
                escape_into(element, name);
                element.extend_from_slice(b"\"}");
            })
        })?;
        self.open.push(number);
        self.event(b'O', number, now)
    }

    fn leave(&mut self, now: i64) -> Result<()> {
        match self.open.pop() {
            Some(number) => self.event(b'C', number, now),
            None => Ok(()),
        }
    }
}

impl<W: Write> Profiles<W> {
    fn event(&mut self, event: u8, frame: u32, now: i64) -> Result<()> {
        let separator: &[u8] = if self.is_first_event { b"\n{\"type\":\"" } else { b",\n{\"type\":\"" };
        self.is_first_event = false;
        self.now = now;
        self.element.extend_from_slice(separator);
        self.element.push(event);
        self.element.extend_from_slice(b"\",\"frame\":");
        digits(&mut self.element, i64::from(frame));
        self.element.extend_from_slice(b",\"at\":");
        digits(&mut self.element, now);
        self.element.push(b'}');
        self.put()
    }

    fn end_profile(&mut self) -> Result<()> {
        if self.begin.take().is_some() {
            self.element.extend_from_slice(b"],\"endValue\":");
            digits(&mut self.element, self.now);
            self.element.push(b'}');
        }
        self.put()
    }

    fn finish(mut self) -> Result<()> {
        self.end_profile()?;
        self.out.write_all(b"],\n\"shared\":{\"frames\":[\n")?;
        self.frames.write(&mut self.out)?;
        self.out.write_all(b"]}}\n")?;
        Ok(self.out.flush()?)
    }

    fn put(&mut self) -> Result<()> {
        self.out.write_all(&self.element)?;
        self.element.clear();
        Ok(())
    }
}
