//! The outcome of each file of the kernel cache, in the order in which it happened: the writer fetches it for the file.

use std::collections::HashSet;
use std::sync::Mutex;

use rpd_preload::lock::lock;
use rpd_schema::THE_PROGRAM;
use rpd_transport::log;
use rpd_transport::source::{CandidateText, Outcome};

use crate::gpu::kernels::NumberedKernel;

/// Lines on standard error at most; the file has all of them.
const MOST_LINES: usize = 20;

#[derive(Default)]
struct Outcomes {
    all: Vec<CandidateText>,
    /// What was said already.
    said: HashSet<String>,
}

static OUTCOMES: std::sync::LazyLock<Mutex<Outcomes>> = std::sync::LazyLock::new(Mutex::default);

/// Those from number `from` on, counted from 0.
pub(super) fn from(from: usize) -> Vec<CandidateText> {
    lock(&OUTCOMES).all.get(from..).unwrap_or_default().to_vec()
}

/// Adds one; its number, counted from 0.
pub(super) fn add(outcome: CandidateText) -> usize {
    let mut outcomes = lock(&OUTCOMES);
    let line = match outcome.outcome {
        Outcome::Failed | Outcome::Refused => format!("{}: {}", outcome.path, outcome.reason),
        _ => String::new(),
    };
    outcomes.all.push(outcome);
    let number = outcomes.all.len() - 1;
    if line.is_empty() || outcomes.said.len() > MOST_LINES || !outcomes.said.insert(line.clone()) {
        return number;
    }
    let is_last = outcomes.said.len() > MOST_LINES;
    drop(outcomes);
    match is_last {
        true => log::problem(
            "more candidates cannot be used, or kernels not counted; the trace says which, in ext_candidate",
        ),
        false => log::problem(&line),
    }
    number
}

/// Says why a kernel of the program's own, for that processor, is not counted.
pub(super) fn refuse(target: &str, reason: String) {
    add(CandidateText {
        path: THE_PROGRAM.into(),
        sha256: String::new(),
        target: target.to_string(),
        loaded: 0,
        outcome: Outcome::Refused,
        reason,
    });
}

/// The name of a kernel for people, with the candidate that it is of.
pub(crate) fn described(kernel: &NumberedKernel) -> String {
    let of = |number: u32| from(number as usize).into_iter().next();
    match kernel.candidate().and_then(of) {
        Some(candidate) if candidate.path == THE_PROGRAM => format!("{} (instrumented)", kernel.name()),
        Some(candidate) => format!("{} of the candidate {}", kernel.name(), candidate.path),
        None => kernel.name(),
    }
}
