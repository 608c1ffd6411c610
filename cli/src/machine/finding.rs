//! A finding of rpd doctor, and what to do about it.

use serde::Serialize;

/// What a finding means for a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// As it should be.
    Ok,
    /// A recording works, but not in all cases or not of everything.
    Warn,
    /// What it concerns will not be recorded.
    Missing,
}

impl Status {
    /// As it is shown.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Missing => "missing",
        }
    }
}

/// One line of `rpd doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct MachineFinding {
    /// What it means.
    pub(crate) status: Status,
    /// What was looked at.
    pub(crate) subject: &'static str,
    /// What was found: untrusted text.
    pub(crate) found: String,
    /// What mends it; nothing where all is well.
    pub(crate) mend: Option<String>,
}

impl MachineFinding {
    /// All is well.
    pub(crate) fn ok(subject: &'static str, found: impl Into<String>) -> MachineFinding {
        MachineFinding { status: Status::Ok, subject, found: found.into(), mend: None }
    }

    /// Something may go wrong.
    pub(crate) fn warn(
        subject: &'static str,
        found: impl Into<String>,
        mend: impl Into<String>,
    ) -> MachineFinding {
        MachineFinding { status: Status::Warn, subject, found: found.into(), mend: Some(mend.into()) }
    }

    /// Something is missing.
    pub(crate) fn missing(
        subject: &'static str,
        found: impl Into<String>,
        mend: impl Into<String>,
    ) -> MachineFinding {
        MachineFinding { status: Status::Missing, subject, found: found.into(), mend: Some(mend.into()) }
    }
}
