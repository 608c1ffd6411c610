//! The text of a note. It comes from a directory that others may write into, and may be damaged: only what a recorder says, in numbers
//! that can be, is taken from it.

use std::collections::BTreeMap;

use crate::session_fact as fact;

/// First line of a note of this form.
const FORM: &str = "rpd-lost 1";
/// Last line: without it the note is not complete.
const END: &str = "end";
/// Bytes of a note that are looked at.
pub(crate) const MOST_BYTES: u64 = 64 << 10;
/// Bytes of a fact: a command line may be longer than a note that is read.
pub(crate) const LONGEST_VALUE: usize = 4 << 10;

/// Counts from here on cannot be: a hundred million records a second, for a month.
const MOST_RECORDS: u64 = 1 << 48;
/// Nor can times and sums of times: 146 years.
const MOST_NS: u64 = 1 << 62;
/// Bytes of the name of a cause or kind.
const LONGEST_NAME: usize = 64;

/// What one process says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// The trace that it is about: inode, and time of birth in ns, 0 where that is not known.
    pub(crate) trace: (u64, u128),
    /// Its session, if it had taken one.
    pub(crate) session: Option<u32>,
    /// Known facts only, in their order.
    pub(crate) facts: Vec<(String, String)>,
}

impl Said {
    /// The text of a note, as long as one may be: what was lost comes first.
    pub(crate) fn text(&self) -> String {
        let (inode, born) = self.trace;
        let session = self.session.map_or("-".to_owned(), |session| session.to_string());
        let mut text = format!("{FORM}\ntrace {inode} {born}\nsession {session}\n");
        let (losses, others): (Vec<_>, Vec<_>) =
            self.facts.iter().partition(|(key, _)| key.starts_with(fact::LOST));
        for (key, value) in losses.into_iter().chain(others) {
            let line = format!("{key}={}\n", beginning(value).replace(char::is_control, " "));
            // A longer one would not be read.
            if text.len() + line.len() + END.len() < MOST_BYTES as usize {
                text.push_str(&line);
            }
        }
        text + END + "\n"
    }

    /// Reads the text of a note; nothing if it is not a whole one.
    pub(crate) fn read(text: &str) -> Option<Said> {
        let mut lines = text.strip_suffix(&format!("\n{END}\n"))?.lines();
        if lines.next()? != FORM {
            return None;
        }
        let (inode, born) = lines.next()?.strip_prefix("trace ")?.split_once(' ')?;
        let trace = (inode.parse().ok()?, born.parse().ok()?);
        let session = lines.next()?.strip_prefix("session ")?;
        let session = if session == "-" { None } else { Some(session.parse().ok()?) };
        // Of several with one key the last counts.
        let facts: BTreeMap<&str, &str> = lines
            .filter_map(|line| line.split_once('='))
            .filter(|(key, value)| is_possible(key, value))
            .collect();
        let facts = facts.into_iter().map(|(key, value)| (key.to_owned(), beginning(value).to_owned()));
        Some(Said { trace, session, facts: facts.collect() })
    }
}

/// Whether a recorder may say that of a session.
fn is_possible(key: &str, value: &str) -> bool {
    let is_number = |most: u64| value.parse::<u64>().is_ok_and(|number| number < most);
    let is_name = |name: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(is_plain)
    };
    match key {
        fact::HOST | fact::BOOT_ID | fact::PID_NAMESPACE | fact::COMMAND | fact::SOURCES | fact::RUN => true,
        fact::ABORT_KERNELS | fact::QUEUE_ERROR | "hip_door" => true,
        fact::PART_BEFORE => true,
        fact::PID | fact::PPID | fact::PART | fact::CALLS_BEFORE_PART => is_number(1 << 32),
        fact::START_MONOTONIC_NS | fact::END_MONOTONIC_NS | fact::ABORT_MONOTONIC_NS => is_number(MOST_NS),
        fact::START_REALTIME_NS | fact::END_REALTIME_NS | fact::RECORDER_CPU_NS => is_number(MOST_NS),
        fact::PART_BEGAN_REALTIME_NS => is_number(MOST_NS),
        "waited_ns" | "longest_turn_ns" => is_number(MOST_NS),
        fact::LAUNCHES_WITHOUT_OP | "calls_without_stack" | "ops_without_call" | "clamped_times" => {
            is_number(MOST_RECORDS)
        }
        _ => {
            let count = key.strip_prefix(fact::LOST).or_else(|| key.strip_prefix(fact::RECORDED));
            let variable = key.strip_prefix(fact::ENV);
            count.is_some_and(|name| is_name(name) && is_number(MOST_RECORDS))
                || key.strip_prefix(fact::VERSION).is_some_and(is_name)
                || variable.is_some_and(|name| {
                    fact::RANK_VARIABLES.contains(&name) || fact::JOB_VARIABLES.contains(&name)
                })
        }
    }
}

/// The beginning of a value, as long as one may be.
fn beginning(value: &str) -> &str {
    let end = (0..=value.len().min(LONGEST_VALUE)).rev().find(|at| value.is_char_boundary(*at));
    &value[..end.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts_of(lines: &str) -> Vec<(String, String)> {
        Said::read(&format!("{FORM}\ntrace 1 2\nsession -\n{lines}end\n")).unwrap().facts
    }

    #[test]
    fn only_what_a_recorder_may_say_is_taken() {
        for good in [
            "lost::write=7",
            "recorded::kernel=281474976710655",
            "pid=4194304",
            "command=a b=c",
            "env::RANK=3",
            "env::SLURM_JOB_ID=1",
            "version::rpd=0.1.0",
            "hip_door=callbacks",
            "waited_ns=4611686018427387903",
            "clamped_times=0",
            "queue_error=x",
        ] {
            let (key, value) = good.split_once('=').unwrap();
            assert_eq!(facts_of(&format!("{good}\n")), [(key.to_owned(), value.to_owned())]);
        }
        for bad in [
            "lost::write=18446744073709551615",
            "lost::write=281474976710656",
            "lost::write=-1",
            "lost::write=1e3",
            "lost::write=",
            "lost::=1",
            "lost::a b=1",
            "lost::a\u{1b}=1",
            "recorded::kernel=many",
            "pid=4294967296",
            "env::LD_PRELOAD=x",
            "taken_in=other",
            "process=x",
            "node=1",
            "schema_version=3",
            "version::=1",
            "start_monotonic_ns=4611686018427387904",
            "=1",
            "words",
        ] {
            assert_eq!(facts_of(&format!("{bad}\n")), [], "{bad:?}");
        }
        assert_eq!(facts_of("pid=1\npid=2\npid=x\n"), [("pid".to_owned(), "2".to_owned())]);
    }

    #[test]
    fn what_is_no_whole_note_is_none() {
        let whole = "rpd-lost 1\ntrace 1 2\nsession 3\npid=1\nend\n";
        assert_eq!(Said::read(whole).unwrap().text(), whole);
        for at in 0..whole.len() {
            assert_eq!(Said::read(&whole[..at]), None, "{at}");
        }
        for text in [
            "rpd-lost 2\ntrace 1 2\nsession 3\nend\n",
            "rpd-lost 1\ntrace 1\nsession 3\nend\n",
            "rpd-lost 1\ntrace 1 -2\nsession 3\nend\n",
            "rpd-lost 1\ntrace 1 2\nsession x\nend\n",
            "rpd-lost 1\ntrace 1 2\nsession 4294967296\nend\n",
            "rpd-lost 1\ntrace 1 2\npid=1\nend\n",
        ] {
            assert_eq!(Said::read(text), None, "{text:?}");
        }
    }
}
