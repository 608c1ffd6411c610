//! The output about each process: a line for people, an object for programs.

use std::sync::atomic::Ordering;

use rpd_remote_block::{Reading, RecorderState, SignalOwner};
use serde::Serialize;

use crate::attach::Process;
use crate::cli::RemoteVerb;
use crate::refusal::Refusal;
use crate::request::Done;
use crate::{process, signals};

/// What is known of a process after the command.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pid: u32,
    command: String,
    /// ready, loading, recording, stopped; nothing where it cannot be controlled.
    state: Option<&'static str>,
    /// How the process calls itself, where that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid_in_namespace: Option<u32>,
    /// The trace; nothing before the recorder is there.
    file: Option<String>,
    /// Number of the recording in the file.
    session: Option<u32>,
    /// Calls, operations and markers in the file.
    events: u64,
    lost: u64,
    /// Recorded launches that had no operation when recording was last stopped: their kernels were not known to have completed.
    launches_without_op: u64,
    /// The ways it can be asked: flag, signal.
    channels: Vec<&'static str>,
    /// Whose the signals are, where that channel is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    signals: Option<[String; 2]>,
    /// What the recorder last complained of.
    problem: Option<String>,
    /// done, partly, already, asked; nothing where it failed.
    outcome: Option<&'static str>,
    /// Why it failed.
    error: Option<String>,
    #[serde(skip)]
    done: Option<Done>,
}

impl Report {
    /// About a process that cannot be controlled.
    pub(crate) fn refused(pid: u32, refusal: &Refusal) -> Report {
        Report {
            pid,
            command: process::command(pid),
            state: None,
            pid_in_namespace: None,
            file: None,
            session: None,
            events: 0,
            lost: 0,
            launches_without_op: 0,
            channels: vec![],
            signals: None,
            problem: None,
            outcome: None,
            error: Some(refusal.to_string()),
            done: None,
        }
    }

    /// About a process of which something was asked.
    pub(crate) fn of(process: &Process, result: Result<Done, Refusal>) -> Report {
        let known = process.status.read().unwrap_or_else(Reading::nothing);
        let own = process.number();
        let text =
            |bytes: &[u8]| Some(String::from_utf8_lossy(bytes).into_owned()).filter(|text| !text.is_empty());
        let takes_signals = known.signals != [SignalOwner::Off; 2];
        let channels =
            [(process.takes_requests.load(Ordering::Relaxed) != 0, "flag"), (takes_signals, "signal")];
        Report {
            pid: process.pid,
            command: process::command(process.pid),
            state: Some(state(known.state)),
            pid_in_namespace: (own != process.pid).then_some(own),
            file: text(&known.file),
            session: known.session,
            events: known.events,
            lost: known.lost,
            launches_without_op: known.launches_without_op,
            channels: channels.into_iter().filter_map(|(used, name)| used.then_some(name)).collect(),
            signals: takes_signals
                .then(|| std::array::from_fn(|place| owner(process, place, known.signals[place]))),
            problem: text(&known.problem),
            outcome: result.as_ref().ok().map(|done| match done {
                Done::Now => "done",
                Done::Partly => "partly",
                Done::Already => "already",
                Done::Asked => "asked",
            }),
            error: result.as_ref().err().map(ToString::to_string),
            done: result.ok(),
        }
    }

    /// Whether it failed.
    pub(crate) fn failed(&self) -> bool {
        self.error.is_some()
    }

    /// One line about a failure.
    pub(crate) fn complaint(&self) -> Option<String> {
        let error = self.error.as_ref()?;
        Some(format!("{}: {}", self.pid, escape(error)))
    }

    /// One line about what was done.
    pub(crate) fn line(&self, verb: &RemoteVerb) -> Option<String> {
        let file = escape(self.file.as_deref().unwrap_or("no file"));
        let rows = format!("{} events in {file}{}", self.events, self.losses());
        let (done, but) = match self.done? {
            Done::Partly => (Done::Now, format!("; {}", escape(self.problem.as_deref().unwrap_or_default()))),
            done => (done, String::new()),
        };
        let what = match (verb, done) {
            (RemoteVerb::Start(_), Done::Now) if self.state == Some("stopped") => format!("recorded; {rows}"),
            (RemoteVerb::Start(_), Done::Now) => format!("recording into {file}"),
            (RemoteVerb::Start(_), Done::Already) => format!("is recording already, into {file}"),
            (RemoteVerb::Stop(_), Done::Now) => format!("stopped; {rows}"),
            (RemoteVerb::Flush(_), Done::Now) => rows,
            (RemoteVerb::Stop(_) | RemoteVerb::Flush(_), Done::Already) => "was not recording".to_string(),
            (_, Done::Asked | Done::Partly) => "asked".to_string(),
            (RemoteVerb::Status(_) | RemoteVerb::List(_), _) => return Some(self.paragraph()),
        };
        Some(format!("{}: {what}{but}", self.pid))
    }

    fn losses(&self) -> String {
        let mut losses = String::new();
        if self.lost > 0 {
            losses.push_str(&format!(", {} records lost", self.lost));
        }
        if self.launches_without_op > 0 {
            losses.push_str(&format!(
                ", {} launches without an operation: their kernels were not known to have completed",
                self.launches_without_op
            ));
        }
        losses
    }

    /// What `status` shows.
    fn paragraph(&self) -> String {
        let mut lines = vec![format!("{}  {}", self.pid, escape(&self.command))];
        let mut add = |name: &str, value: String| lines.push(format!("  {name:<8}  {value}"));
        add("state", self.state.unwrap_or_default().to_string());
        if let Some(own) = self.pid_in_namespace {
            add("calls", format!("itself {own}, in a PID namespace of its own"));
        }
        if let Some(file) = &self.file {
            let session = self.session.map(|session| format!(" (session {session})")).unwrap_or_default();
            add("file", format!("{}{session}", escape(file)));
            add("events", format!("{}{}", self.events, self.losses()));
        }
        add("asked by", self.channels.join(" and "));
        if let Some([start, stop]) = &self.signals {
            add("SIGUSR1", start.clone());
            add("SIGUSR2", stop.clone());
        }
        if let Some(problem) = &self.problem {
            add("problem", escape(problem));
        }
        lines.join("\n")
    }

    /// The cells of its row in `list`.
    pub(crate) fn row(&self) -> [String; 5] {
        let file = self.file.as_deref().map_or_else(|| "-".to_string(), escape);
        let state = self.state.unwrap_or("-").to_string();
        [self.pid.to_string(), state, self.events.to_string(), file, escape(&self.command)]
    }
}

fn state(state: RecorderState) -> &'static str {
    match state {
        RecorderState::Ready => "ready",
        RecorderState::Loading => "loading",
        RecorderState::Recording => "recording",
        RecorderState::Stopped => "stopped",
    }
}

fn owner(process: &Process, place: usize, owner: SignalOwner) -> String {
    let how = signals::keeps(process, place, owner);
    match (how, owner) {
        (Some(how), _) => format!("taken by the program: {how}"),
        (None, SignalOwner::Chained) => {
            "taken by the loader, and passed on to the program's handler".to_string()
        }
        (None, _) => "taken by the loader".to_string(),
    }
}

/// `text` with everything written out that could disturb a terminal.
pub(crate) fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match c {
            '"' | '\'' | '\\' => out.push(c),
            c => out.extend(c.escape_debug()),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_that_moves_a_cursor_survives() {
        assert_eq!(super::escape("a\x1b[2J'b'\n\u{202e}\\ µ 核"), "a\\u{1b}[2J'b'\\n\\u{202e}\\ µ 核");
    }
}
