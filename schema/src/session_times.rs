//! Times in a session's facts: when recording was stopped, and when records were lost. Each is written `FROM-TO`, in ns of CLOCK_MONOTONIC,
//! with nothing behind the `-` where it lasts to the end. A time of losses also has, behind a colon, how many records of each cause were
//! lost: `71-93:buffer_full=12,write=3`. Blanks are between the times.

use std::fmt::Write;

/// Times of one fact that are kept, the latest ones: a program may stop and start recording in a loop.
pub const MOST_TIMES: usize = 512;

/// One of these times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionTime {
    /// Its begin, ns, CLOCK_MONOTONIC.
    pub from: u64,
    /// Its end; none where it lasts to the end of the session.
    pub to: Option<u64>,
    /// Records that were lost in it, by cause.
    pub lost: Vec<(String, u64)>,
}

impl SessionTime {
    fn of(text: &str) -> Option<SessionTime> {
        let (time, lost) = text.split_once(':').unwrap_or((text, ""));
        let (from, to) = time.split_once('-')?;
        let from = from.parse().ok()?;
        let to = if to.is_empty() { None } else { Some(to.parse().ok().filter(|to| *to >= from)?) };
        let of_cause = |text: &str| {
            let (cause, count) = text.split_once('=')?;
            Some((cause.to_owned(), count.parse().ok()?))
        };
        let lost = lost.split(',').filter(|text| !text.is_empty()).map(of_cause).collect::<Option<_>>()?;
        Some(SessionTime { from, to, lost })
    }
}

/// The times that a fact tells; what is none is left out.
#[must_use]
pub fn session_times(text: &str) -> Vec<SessionTime> {
    text.split_ascii_whitespace().filter_map(SessionTime::of).collect()
}

/// Times as a fact has them.
#[must_use]
pub fn session_times_text(times: &[SessionTime]) -> String {
    let mut text = String::new();
    for SessionTime { from, to, lost } in times {
        let blank = if text.is_empty() { "" } else { " " };
        let to = to.map(|to| to.to_string()).unwrap_or_default();
        // Writing into a text does not fail.
        let _ = write!(text, "{blank}{from}-{to}");
        for (place, (cause, count)) in lost.iter().enumerate() {
            let sign = if place == 0 { ':' } else { ',' };
            let _ = write!(text, "{sign}{cause}={count}");
        }
    }
    text
}

/// The text of a fact with all its times moved, for a file whose times are.
#[must_use]
pub fn moved_session_times(text: &str, by: i64) -> String {
    let mut times = session_times(text);
    for time in &mut times {
        time.from = time.from.saturating_add_signed(by);
        time.to = time.to.map(|to| to.saturating_add_signed(by));
    }
    session_times_text(&times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_were_written() {
        let lost =
            |of: &[(&str, u64)]| of.iter().map(|(cause, count)| ((*cause).to_owned(), *count)).collect();
        let times = [
            SessionTime { from: 0, to: Some(70), lost: vec![] },
            SessionTime { from: 71, to: Some(93), lost: lost(&[("buffer_full", 12), ("write", 3)]) },
            SessionTime { from: 99, to: None, lost: vec![] },
        ];
        let text = session_times_text(&times);
        assert_eq!(text, "0-70 71-93:buffer_full=12,write=3 99-");
        assert_eq!(session_times(&text), times);
        assert_eq!(moved_session_times(&text, 5), "5-75 76-98:buffer_full=12,write=3 104-");
    }

    #[test]
    fn what_is_no_time_is_left_out() {
        for text in
            ["", "7", "-7", "9-8", "x-9", "1-2:write", "1-2:write=x", "1-2:=", "18446744073709551616-"]
        {
            assert_eq!(session_times(text), [], "{text}");
        }
        assert_eq!(session_times("9-8 1-2  3-").len(), 2);
    }
}
