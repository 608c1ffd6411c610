//! Asking through the block, and waiting for the answer.

use std::time::{Duration, Instant};

use rpd_remote_block::{Command, RequestOutcome, RequestVerb, futex};
use std::sync::atomic::Ordering;

use crate::attach::Process;
use crate::refusal::Refusal;

/// How long a process may take: the recorder's own flush gives up after 10 s.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long a process may take to notice that it is asked for something.
const UNSEEN_PATIENCE: Duration = Duration::from_secs(5);
/// How long a process that is stopped may take to be continued.
const STOPPED_PATIENCE: Duration = Duration::from_secs(1);
/// How often it is looked whether the process is still there.
const GLANCE: Duration = Duration::from_millis(50);

/// What a request came to, where it came to something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// As asked.
    Now,
    /// As far as it can be; the process's problem says what cannot.
    Partly,
    /// It was so before.
    Already,
    /// Nobody has waited for it.
    Asked,
}

impl Process {
    /// Asks; the number of the request.
    ///
    /// # Errors
    /// The process is gone, does not answer, or another command holds on to it.
    pub(crate) fn request(&self, command: &Command) -> Result<u64, Refusal> {
        self.alone(PATIENCE, || {
            self.until(PATIENCE, || self.is_idle().then_some(()))?;
            Ok(self.ask(command))
        })
    }

    /// Waits up to `patience` for what became of a request.
    ///
    /// # Errors
    /// It could not be done, or there is no answer.
    pub(crate) fn outcome(&self, number: u64, patience: Duration) -> Result<Done, Refusal> {
        // One that other answers have taken the place of was done long ago.
        let answer = self.until(patience, || self.answer(number))?;
        let (outcome, text) = answer.unwrap_or((RequestOutcome::Done, vec![]));
        meaning(outcome, &text)
    }

    /// Waits up to `patience` until `there` gives something.
    ///
    /// # Errors
    /// The process has ended, is stopped, does not serve its block, or is too late.
    pub(crate) fn until<T>(&self, patience: Duration, there: impl Fn() -> Option<T>) -> Result<T, Refusal> {
        let begin = Instant::now();
        loop {
            let bell = self.answer_bell.load(Ordering::Acquire);
            if let Some(found) = there() {
                return Ok(found);
            }
            match self.stat() {
                // It may have answered just before.
                None => return there().ok_or(Refusal::Gone),
                Some(stat) if matches!(stat.state, 'T' | 't') && begin.elapsed() > STOPPED_PATIENCE => {
                    return Err(Refusal::Stopped);
                }
                Some(_) if begin.elapsed() > UNSEEN_PATIENCE && !self.is_served() => {
                    return Err(Refusal::NoAnswer(UNSEEN_PATIENCE.as_secs()));
                }
                Some(_) if begin.elapsed() > patience => return Err(Refusal::NoAnswer(patience.as_secs())),
                Some(_) => futex::wait(&self.answer_bell, bell, Some(GLANCE)),
            }
        }
    }

    /// Has the process renew what its block says.
    ///
    /// # Errors
    /// There is no answer.
    pub(crate) fn look(&self) -> Result<(), Refusal> {
        let number = self.request(&Command { verb: RequestVerb::Look, duration_ns: 0, file: vec![] })?;
        self.outcome(number, PATIENCE).map(|_| ())
    }
}

/// What an answer means.
pub(crate) fn meaning(outcome: RequestOutcome, text: &[u8]) -> Result<Done, Refusal> {
    let text = || String::from_utf8_lossy(text).into_owned();
    match outcome {
        RequestOutcome::Done => Ok(Done::Now),
        RequestOutcome::Partly => Ok(Done::Partly),
        RequestOutcome::Already => Ok(Done::Already),
        RequestOutcome::StillRecording => Err(Refusal::StillRecording),
        RequestOutcome::NoRecorder => Err(Refusal::NoRecorder(text())),
        RequestOutcome::OtherFile => Err(Refusal::OtherFile(text())),
        RequestOutcome::Problem => Err(Refusal::Problem(text())),
        RequestOutcome::Ending => Err(Refusal::Ending),
        RequestOutcome::Unknown => Err(Refusal::Unknown),
    }
}
