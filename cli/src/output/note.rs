//! Standard error: remarks and the one line of a failure. Standard output is for data alone. `note` prints such a line; the notes of
//! docs/glossary.md are files beside a trace, and those of `rpd check` its mildest findings.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rpd_postprocess::report::gpu_time::LeftOut;
use rpd_postprocess::text::counted;

/// What has been said.
static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Prints `rpd: message` as one line on standard error, once. A standard error that cannot be written is no
/// reason to fail.
pub(crate) fn note(message: impl Display) {
    let line = format!("rpd: {message}\n");
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.contains(&line) {
        let _ = io::stderr().write_all(line.as_bytes());
        said.insert(line);
    }
}

/// Says how many operations a report about a GPU's time leaves out, and why.
pub(crate) fn note_left_out(file: &Path, left_out: LeftOut) {
    let name = file.display();
    if left_out.impossible > 0 {
        note(format_args!(
            "{name}: {} left out: impossible times or places, which rpd check lists",
            counted(left_out.impossible, "operation is", "operations are")
        ));
    }
    if left_out.barriers > 0 {
        note(format_args!(
            "{name}: {} left out: a GPU that waits does no work",
            counted(left_out.barriers, "barrier is", "barriers are")
        ));
    }
}
