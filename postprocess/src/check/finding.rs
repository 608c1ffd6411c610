//! One finding: what, where, how often, and a few of the rows.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::kind::FindingKind;

/// How many rows a finding names.
pub const EXAMPLES: usize = 5;

/// How many ids people are shown.
const SHOWN: usize = 3;

/// Something that `rpd check` has to say about a file.
#[derive(Debug, Clone)]
pub struct CheckFinding {
    /// What it is.
    pub kind: FindingKind,
    /// Table, column, cause of loss ... that it is about.
    pub place: String,
    /// How many rows (sessions, records, messages).
    pub count: u64,
    /// What is known beyond that: where a reference goes, what SQLite said.
    pub detail: Option<String>,
    /// The first few, at most [`EXAMPLES`].
    pub examples: Vec<Example>,
}

/// One of those that a finding is about.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Example {
    /// Id of a row, in its own table.
    Id(i64),
    /// Something that has words instead.
    Text(String),
}

impl CheckFinding {
    /// A finding of `count` things at `place`.
    pub fn new(kind: FindingKind, place: impl Into<String>, count: u64) -> CheckFinding {
        CheckFinding { kind, place: place.into(), count, detail: None, examples: Vec::new() }
    }

    /// With a word more.
    pub fn detail(self, detail: impl Into<String>) -> CheckFinding {
        CheckFinding { detail: Some(detail.into()), ..self }
    }

    /// With rows named; those beyond [`EXAMPLES`] are not.
    pub fn examples(self, examples: impl IntoIterator<Item = Example>) -> CheckFinding {
        CheckFinding { examples: examples.into_iter().take(EXAMPLES).collect(), ..self }
    }

    /// What it means and what to do, in one sentence for people.
    pub fn explanation(&self) -> String {
        let mut text = self.kind.meaning().to_string();
        if let Some(detail) = &self.detail {
            text.extend([": ", detail]);
        }
        // The line is long enough; --json has the others.
        let ids = matches!(self.examples.first(), Some(Example::Id(_)));
        let shown = self.examples.iter().take(if ids { SHOWN } else { EXAMPLES });
        let shown: Vec<String> = shown.map(Example::to_string).collect();
        if !shown.is_empty() {
            let more = if self.count > shown.len() as u64 { ", ..." } else { "" };
            let ids = if ids { "id " } else { "" };
            text.push_str(&format!(" ({ids}{}{more})", shown.join(", ")));
        }
        text.extend(["; ", self.kind.advice()]);
        text
    }
}

impl std::fmt::Display for Example {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Example::Id(id) => write!(f, "{id}"),
            Example::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for CheckFinding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("CheckFinding", 9)?;
        object.serialize_field("severity", &self.kind.severity())?;
        object.serialize_field("kind", self.kind.name())?;
        object.serialize_field("place", &self.place)?;
        object.serialize_field("count", &self.count)?;
        object.serialize_field("meaning", self.kind.meaning())?;
        object.serialize_field("detail", &self.detail)?;
        object.serialize_field("advice", self.kind.advice())?;
        object.serialize_field("repairable", &self.kind.is_repairable())?;
        object.serialize_field("examples", &self.examples)?;
        object.end()
    }
}
