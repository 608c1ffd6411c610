//! Traces of several ranks and hosts in one.
//!
//! | file | owns |
//! |---|---|
//! | `input.rs` | what has to be known of each trace |
//! | `node.rs` | hosts, and what separates their clocks |
//! | `gpu.rs` | which GPUs are the same |
//! | `parts.rs` | what several parts of one recording have of one process |
//! | `ranks.rs` | what is odd about ranks and jobs |
//! | `plan.rs` | what is decided before a row is copied |
//! | `tables.rs` | which tables can be put together |
//! | `copy.rs` | rows on their way into the merged trace |
//! | `facts.rs` | the metadata |
//!
//! Rules: all ids of a trace are moved by one number of sessions, so that they stay as they are to each other. A
//! text that is there already is not written again. Process, thread, GPU and queue of node N have N strides added. Times are
//! moved to the clock of the first trace's host. Nothing else of a row changes.

mod copy;
mod facts;
mod gpu;
mod input;
mod node;
mod parts;
mod plan;
mod ranks;
mod tables;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use rpd_schema::Version;
use serde::Serialize;

use crate::notes::SharedNotes;
use crate::rewrite::derive::{Announced, NewTrace, SOURCE, TracePlace, derive};
use crate::rewrite::{duplicate_texts, objects};
use crate::text;
use crate::trace::layout::{Layout, same};
use input::Input;
use node::Moved;
pub use plan::MergeOptions;
use plan::MergePlan;
use tables::Tables;

/// What was merged.
#[derive(Debug, Serialize)]
pub struct Merged {
    /// The result, as it was named.
    pub output: String,
    /// The traces in their order.
    pub inputs: Vec<MergedPart>,
    /// Names of the hosts by node; empty where nothing says it.
    pub nodes: Vec<String>,
    /// Texts that were there already.
    pub equal_texts: u64,
    /// Process ids that several processes have, of one host or of hosts that do not say which they are.
    pub shared_pids: Vec<i64>,
    /// What is odd about the ranks and jobs of the traces, for people.
    pub doubts: Vec<String>,
    /// What could not be put together, and why.
    pub dropped: Vec<String>,
}

/// One of the traces in the result.
#[derive(Debug, Serialize)]
pub struct MergedPart {
    /// The trace, as it was named.
    pub file: String,
    /// Its session 0 is this one now.
    pub first_session: i64,
    /// Its nodes in the result.
    pub nodes: Vec<i64>,
    /// What was added to its times, ns, on each of these.
    pub shifts_ns: Vec<i64>,
}

/// Merges `files` into the new trace `out`.
///
/// # Errors
/// What failed and what to do about it; the traces are as they were, and nothing is left of a new one.
pub fn merge(out: &Path, files: &[PathBuf], options: &MergeOptions, notes: &SharedNotes) -> Result<Merged> {
    let mut inputs: Vec<Input> = files.iter().map(|file| Input::of(file)).collect::<Result<_>>()?;
    inputs.sort_by_key(parts::place);
    distinct(out, &inputs)?;
    let plan = MergePlan::of(&inputs, options)?;
    let tables = Tables::of(&inputs)?;
    let Filled { equal_texts, lost_views, shared_pids, .. } =
        derive(TracePlace::New(out), &inputs[0].path, notes, |making| {
            let merge = MergeRun { making, plan: &plan, tables: &tables };
            let done = merge.run()?;
            let announced = merge.announced(&done);
            Ok((done, announced))
        })?;
    let part = |(number, input): (usize, &Input)| {
        let mut moved: Vec<Moved> = input
            .sessions
            .iter()
            .map(|session| plan.nodes.moved(number, i64::from(session.session)))
            .chain(input.sessions.is_empty().then(|| plan.nodes.moved(number, 0)))
            .collect();
        moved.sort_by_key(|moved| moved.to);
        moved.dedup();
        MergedPart {
            file: input.path.to_string_lossy().into_owned(),
            first_session: plan.offsets[number] >> 32,
            nodes: moved.iter().map(|moved| moved.to).collect(),
            shifts_ns: moved.iter().map(|moved| plan.shift(number, *moved)).collect(),
        }
    };
    Ok(Merged {
        output: out.to_string_lossy().into_owned(),
        inputs: inputs.iter().enumerate().map(part).collect(),
        nodes: plan.nodes.names().map(str::to_string).collect(),
        equal_texts,
        shared_pids,
        doubts: ranks::doubts(&plan),
        dropped: tables.dropped.iter().cloned().chain(lost_views).collect(),
    })
}

/// Fails where two of the files are the same, the result is one of them, or they do not fit together.
fn distinct(out: &Path, inputs: &[Input]) -> Result<()> {
    for (number, input) in inputs.iter().enumerate() {
        let identity = input.identity()?;
        for other in &inputs[..number] {
            if other.identity()? == identity {
                bail!(
                    "{} and {} are the same file",
                    text::escape_path(&other.path),
                    text::escape_path(&input.path)
                );
            }
            if other.encoding != input.encoding {
                bail!(
                    "{} has its texts in {} and {} in {}: SQLite reads them together only after \
                     sqlite3 FILE .dump | sqlite3 COPY, which makes a copy in UTF-8",
                    text::escape_path(&other.path),
                    other.encoding,
                    text::escape_path(&input.path),
                    input.encoding
                );
            }
            if other.version != input.version {
                bail!(
                    "{} is of schema {} and {} of schema {}: only traces of one schema can be merged",
                    text::escape_path(&other.path),
                    other.version,
                    text::escape_path(&input.path),
                    input.version
                );
            }
        }
        if fs::canonicalize(out)
            .is_ok_and(|out| fs::canonicalize(&input.path).is_ok_and(|input| input == out))
        {
            bail!(
                "{} is one of the traces to be merged: name another file for the result",
                text::escape_path(out)
            );
        }
    }
    Ok(())
}

/// What filling the new trace found.
struct Filled {
    equal_texts: u64,
    /// Rows of parts of one recording that others stand for, by table.
    joined: BTreeMap<String, u64>,
    lost_views: Vec<String>,
    shared_pids: Vec<i64>,
}

struct MergeRun<'a> {
    making: &'a NewTrace<'a>,
    plan: &'a MergePlan<'a>,
    tables: &'a Tables,
}

impl MergeRun<'_> {
    /// Fills the new trace.
    fn run(&self) -> Result<Filled> {
        let made = self.making.made;
        let inputs = self.plan.inputs;
        let is_v2 = inputs[0].version == Version::V2;
        if is_v2 {
            [rpd_sql::TABLES, rpd_sql::ext::DISPATCH, rpd_sql::METADATA]
                .iter()
                .try_for_each(|sql| made.execute_batch(sql))?;
        }
        let equal_texts = self.find_duplicate_texts()?;
        for (number, input) in inputs.iter().enumerate() {
            self.making.with(&input.path, || self.rows(number))?;
        }
        let joined = parts::join(made, self.plan)?;
        self.making.show("indexes");
        let finish: &[&str] = match is_v2 {
            true => &[rpd_sql::INDEXES, rpd_sql::API_VIEW, rpd_sql::VIEWS, rpd_sql::NODE_API, rpd_sql::NODES],
            false => &[rpd_sql::NODE_API_3, rpd_sql::NODES],
        };
        finish.iter().try_for_each(|sql| made.execute_batch(sql))?;
        let mut lost = Vec::new();
        for input in inputs {
            let (original, _) = rpd_schema::open_read(&input.path)?;
            self.making.with(&input.path, || {
                objects::indexes(self.making, SOURCE)?;
                lost.extend(objects::views(made, SOURCE, &original)?);
                lost.extend(objects::left_out(made, SOURCE)?);
                Ok(())
            })?;
        }
        let shared_pids = facts::finish(self.making, self.plan, self.tables)?;
        lost.sort();
        lost.dedup();
        Ok(Filled { equal_texts, joined, lost_views: lost, shared_pids })
    }

    /// What the new trace must have by the traces that it is made of, without texts and rows that are there already.
    fn announced(&self, filled: &Filled) -> Announced {
        let inputs = self.plan.inputs;
        let mut rows: BTreeMap<String, u64> = BTreeMap::new();
        let tables = inputs.iter().flat_map(|input| &input.rows);
        let is_counted = |name: &str| !self.tables.is_gone(name) && !same(name, "rocpd_metadata");
        for (table, count) in tables.filter(|(table, _)| is_counted(table)) {
            *rows.entry(table.to_ascii_lowercase()).or_default() += count;
        }
        let texts = ("rocpd_string".to_string(), filled.equal_texts);
        for (table, fewer) in filled.joined.iter().map(|(table, rows)| (table.clone(), *rows)).chain([texts])
        {
            if let Some(rows) = rows.get_mut(&table) {
                *rows = rows.saturating_sub(fewer);
            }
        }
        Announced { version: inputs[0].version, rows }
    }

    fn find_duplicate_texts(&self) -> Result<u64> {
        duplicate_texts::begin(self.making.made)?;
        for (number, input) in self.plan.inputs.iter().enumerate() {
            if let Some(table) = input.layout.table("rocpd_string") {
                self.making.show(&format!("{}: texts", input.path.display()));
                self.making.with(&input.path, || {
                    duplicate_texts::gather(self.making.made, &copy::texts(self.plan, number, table))
                        .map_err(|error| copy::damaged(error, self.plan, number, table))
                })?;
            }
        }
        self.making.show("equal texts");
        Ok(duplicate_texts::find(self.making.made)?)
    }

    /// Copies all rows of one trace, which is attached.
    fn rows(&self, number: usize) -> Result<()> {
        let made = self.making.made;
        let mut layout = Layout::everything(made)?;
        for table in &self.plan.inputs[number].layout.tables {
            if self.tables.is_gone(&table.name) {
                continue;
            }
            if !layout.has(&table.name) {
                objects::table(made, SOURCE, &table.name)?;
                layout = Layout::everything(made)?;
            }
            if let Some(target) = layout.table(&table.name).filter(|target| !target.is("rocpd_metadata")) {
                copy::rows(self.making, self.plan, number, table, target)?;
            }
        }
        facts::copy(self.making, self.plan, number)
    }
}
