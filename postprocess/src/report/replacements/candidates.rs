//! The files of the kernel cache, and what became of them.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use rpd_schema::text::{shown, text_of};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde::Serialize;

use crate::trace::has_table;

/// A file of the kernel cache with one content, and what became of it. Sessions and GPUs that say the same of it are one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CandidateFile {
    /// For two runs the one that had it: `A` or `B`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<char>,
    /// The file.
    pub path: String,
    /// SHA-256 of its bytes, in hexadecimal digits; empty where they could not be read.
    pub sha256: String,
    /// The processor that it is for.
    pub target: String,
    /// When its kernels could be used for the first time, ns; 0 where they could not.
    pub loaded_ns: i64,
    /// `loaded`, `unused`, `other-target`, `refused`, `failed` or `removed`.
    pub outcome: String,
    /// Why, in words.
    pub reason: String,
    /// Dispatches that ran a kernel of it.
    pub calls: u64,
}

/// The candidates of a file.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// In the order of their first rows.
    all: Vec<CandidateFile>,
    /// Places in `all` and in `contents`, by id.
    by_id: HashMap<i64, (usize, usize)>,
    /// Path and SHA-256 of each content.
    contents: Vec<(String, String)>,
}

impl Candidates {
    /// Reads them.
    pub(super) fn of(trace: &Connection) -> rusqlite::Result<Candidates> {
        let mut candidates = Candidates::default();
        if !has_table(trace, "ext_candidate")? {
            return Ok(candidates);
        }
        let columns = ["path", "sha256", "target", "outcome", "reason"].map(shown).join(", ");
        let mut rows =
            trace.prepare(&format!("SELECT id, loaded, {columns} FROM ext_candidate ORDER BY id"))?;
        let mut rows = rows.query([])?;
        let (mut known, mut known_contents) = (HashMap::new(), HashMap::new());
        while let Some(row) = rows.next()? {
            let ValueRef::Integer(id) = row.get_ref(0)? else { continue };
            let candidate = candidate(row)?;
            let content = (candidate.path.clone(), candidate.sha256.clone());
            let content = *known_contents.entry(content).or_insert_with_key(|content| {
                candidates.contents.push(content.clone());
                candidates.contents.len() - 1
            });
            let said =
                (content, candidate.target.clone(), candidate.outcome.clone(), candidate.reason.clone());
            let place = *known.entry(said).or_insert_with(|| {
                candidates.all.push(candidate);
                candidates.all.len() - 1
            });
            candidates.by_id.insert(id, (place, content));
        }
        Ok(candidates)
    }

    /// A dispatch ran a kernel of the candidate with this id. The number of its content, none where the file does not have it.
    pub(super) fn ran(&mut self, id: i64) -> Option<usize> {
        let &(place, content) = self.by_id.get(&id)?;
        self.all[place].calls += 1;
        Some(content)
    }

    /// Path and SHA-256 of a content.
    pub(super) fn content(&self, number: usize) -> &(String, String) {
        &self.contents[number]
    }

    /// Those of which most ran first, then by what became of them. One that was loaded in vain is `unused` alone, which says why.
    pub(super) fn into_sorted(mut self) -> Vec<CandidateFile> {
        let content = |candidate: &CandidateFile| {
            (candidate.path.clone(), candidate.sha256.clone(), candidate.target.clone())
        };
        let unused = self.all.iter().filter(|candidate| candidate.outcome == "unused");
        let unused: HashSet<_> = unused.map(content).collect();
        self.all.retain(|candidate| {
            candidate.outcome != "loaded" || candidate.calls > 0 || !unused.contains(&content(candidate))
        });
        self.all.sort_by(|a, b| place(a).cmp(&place(b)));
        self.all
    }
}

/// What candidates are sorted by.
fn place(candidate: &CandidateFile) -> (Reverse<u64>, usize, &str, &str) {
    const ORDER: [&str; 6] = ["loaded", "removed", "failed", "refused", "unused", "other-target"];
    let outcome = ORDER.iter().position(|outcome| *outcome == candidate.outcome).unwrap_or(ORDER.len());
    (Reverse(candidate.calls), outcome, &candidate.path, &candidate.sha256)
}

fn candidate(row: &Row<'_>) -> rusqlite::Result<CandidateFile> {
    let text = |column| row.get_ref(column).map(|value| text_of(value).into_owned());
    Ok(CandidateFile {
        run: None,
        loaded_ns: row.get_ref(1)?.as_i64().unwrap_or(0),
        path: text(2)?,
        sha256: text(3)?,
        target: text(4)?,
        outcome: text(5)?,
        reason: text(6)?,
        calls: 0,
    })
}
