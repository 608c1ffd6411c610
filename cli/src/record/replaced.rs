//! The kernels that one run of `rpd record` replaced: dispatches that ran a candidate's kernel, and files of the kernel cache that
//! were of no use.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use anyhow::Result;
use rpd_postprocess::text::counted;
use rpd_postprocess::trace;
use rpd_postprocess::trace::instrumented::is_instrumented;
use rpd_schema::{Outcome, THE_PROGRAM};
use rusqlite::Connection;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplacedInRecording {
    /// Sessions were to replace kernels.
    pub(crate) was_asked_for: bool,
    /// Dispatches that ran another kernel than the program's, but for instrumented ones.
    pub(crate) dispatches: u64,
    /// Dispatches that ran an instrumented kernel.
    pub(crate) instrumented: u64,
    /// What became of each file of the cache, in each session that has read it.
    files: BTreeMap<String, BTreeMap<i64, BTreeSet<String>>>,
    /// The first trace that has some of these files.
    pub(crate) trace: Option<PathBuf>,
}

/// What a file of the cache is called that was not of use, with the first of these that is so: of one that has failed nothing else is said.
const USELESS: [(Outcome, &str); 4] = [
    (Outcome::Failed, "failed"),
    (Outcome::Refused, "refused"),
    (Outcome::OtherTarget, "for another GPU"),
    (Outcome::Unused, "unused"),
];

impl ReplacedInRecording {
    /// Adds what the sessions from `first` on have in the trace, but for `foreign` ones.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn add(
        &mut self,
        (file, trace): (&Path, &Connection),
        first: u32,
        foreign: &HashSet<i64>,
    ) -> Result<()> {
        let first_id = i64::from(first) << 32;
        if trace::has_table(trace, "ext_replacement")? {
            let counts = format!(
                "SELECT id >> 32, {} AS instrumented, count(*) FROM ext_replacement WHERE id >= ?1 GROUP BY 1, 2",
                is_instrumented(trace, "op_id")?
            );
            let mut counts = trace.prepare(&counts)?;
            let mut counts = counts.query([first_id])?;
            while let Some(row) = counts.next()? {
                if !foreign.contains(&row.get(0)?) {
                    let count = if row.get(1)? { &mut self.instrumented } else { &mut self.dispatches };
                    *count += row.get::<_, i64>(2)?.unsigned_abs();
                }
            }
        }
        if trace::has_table(trace, "ext_candidate")? {
            let mut rows =
                trace.prepare("SELECT id >> 32, path, outcome FROM ext_candidate WHERE id >= ?1")?;
            let mut rows = rows.query([first_id])?;
            while let Some(row) = rows.next()? {
                let (session, path): (_, String) = (row.get(0)?, row.get(1)?);
                if !foreign.contains(&session) && path != THE_PROGRAM {
                    let sessions = self.files.entry(path).or_default();
                    sessions.entry(session).or_default().insert(row.get(2)?);
                    self.trace.get_or_insert_with(|| file.to_path_buf());
                }
            }
        }
        Ok(())
    }

    /// How many files of the cache were not of use, in words; nothing where all were.
    pub(crate) fn useless_files(&self) -> Option<String> {
        let mut counts = [0; USELESS.len()];
        for sessions in self.files.values() {
            // What one process has no use of, another one may have used.
            let is_so = |outcome: &Outcome| match outcome {
                Outcome::Failed | Outcome::Refused => {
                    sessions.values().any(|outcomes| outcomes.contains(outcome.text()))
                }
                _ => sessions.values().all(|outcomes| outcomes.contains(outcome.text())),
            };
            if let Some(place) = USELESS.iter().position(|(outcome, _)| is_so(outcome)) {
                counts[place] += 1;
            }
        }
        let useless = USELESS.iter().zip(counts).filter(|(_, count)| *count > 0);
        let parts: Vec<String> = useless.map(|((_, word), count)| format!("{count} {word}")).collect();
        let files = counted(self.files.len() as u64, "file", "files");
        (!parts.is_empty()).then(|| format!("of {files} in the kernel cache {}", parts.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_counted_once_and_as_what_it_was_in_all_processes() {
        let of = |rows: &[(&str, i64, &str)]| {
            let mut replaced = ReplacedInRecording::default();
            for (path, session, outcome) in rows {
                let sessions = replaced.files.entry((*path).into()).or_default();
                sessions.entry(*session).or_default().insert((*outcome).into());
            }
            replaced.useless_files()
        };
        assert_eq!(of(&[]), None);
        assert_eq!(
            of(&[("a", 0, "loaded"), ("a", 0, "removed"), ("b", 0, "unused"), ("b", 1, "loaded")]),
            None
        );
        let rows = [
            ("a", 0, "loaded"),
            ("a", 1, "refused"),
            ("b", 0, "loaded"),
            ("b", 0, "unused"),
            ("c", 0, "failed"),
            ("c", 1, "failed"),
            ("d", 0, "other-target"),
            ("e", 0, "failed"),
            ("f", 3, "loaded"),
        ];
        let expected = "of 6 files in the kernel cache 2 failed, 1 refused, 1 for another GPU, 1 unused";
        assert_eq!(of(&rows).as_deref(), Some(expected));
    }
}
