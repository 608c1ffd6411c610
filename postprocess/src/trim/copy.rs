//! The copy of what stays: table by table, each in the order of its ids.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use rpd_schema::SessionInfo;
use rusqlite::Connection;

use super::callstack::name_own_time;
use super::plan::{Fate, PlannedTable, plan};
use super::selection::Selection;
use super::window::Window;
use crate::passes;
use crate::rewrite::derive::{NewTrace, SOURCE};
use crate::rewrite::objects;
use crate::trace::ids::Ids;
use crate::trace::layout::{Layout, TableLayout, declared_texts, quote, same};

/// The tag of the metadata that tells of which trace a file is a part.
pub(crate) const ORIGIN: &str = "trim::origin";

/// What is to be copied, from where.
pub(super) struct TrimCopy<'a> {
    /// The new trace, to which the old one is attached.
    pub(super) making: &'a NewTrace<'a>,
    /// The old one by itself.
    pub(super) trace: &'a Connection,
    /// Its tables.
    pub(super) layout: &'a Layout,
    /// The range of time that stays.
    pub(super) window: Window,
    /// The calls and ops that stay.
    pub(super) selection: &'a Selection,
    /// What tells the trace of which this is a part.
    pub(super) origin: String,
    /// What notes beside it say and it does not.
    pub(super) noted: Vec<SessionInfo>,
}

/// What was copied.
pub(super) struct CopiedRows {
    /// What went altogether, and why.
    pub(super) dropped: Vec<String>,
    /// Rows of the tables that stay.
    pub(super) rows: BTreeMap<String, u64>,
}

impl TrimCopy<'_> {
    /// Copies all that stays.
    ///
    /// # Errors
    /// When the trace cannot be read or the new one not be written.
    pub(super) fn run(&self) -> Result<CopiedRows> {
        let made = self.making.made;
        self.selection.name(made)?;
        self.name_graphs()?;
        if self.layout.table("ext_callstack").is_some() {
            name_own_time(made, SOURCE, self.window.end_ns)?;
        }
        let planned = plan(self.layout, self.window);
        let mut dropped = objects::left_out(made, SOURCE)?;
        let mut rows = BTreeMap::new();
        for PlannedTable { table, fate } in &planned {
            self.making.show(&table.name);
            let copied = match fate {
                Fate::Dropped(reason) => {
                    dropped.push(format!("table {}: {reason}", table.name));
                    continue;
                }
                Fate::Rows(condition) => self.rows(table, condition, &BTreeMap::new())?,
                Fate::Runs => self.runs(table)?,
                Fate::Texts => self.texts(table, &planned)?,
            };
            // What is said of the whole trace changes below.
            if !table.is("rocpd_metadata") {
                rows.insert(table.name.clone(), copied as u64);
            }
        }
        // By what was chosen before anything was copied.
        rows.extend([
            ("rocpd_api".to_string(), self.selection.rows.calls),
            ("rocpd_op".to_string(), self.selection.rows.ops),
        ]);
        objects::indexes(self.making, SOURCE)?;
        let views = objects::views(made, SOURCE, self.trace)?;
        dropped.extend(views.into_iter().map(|view| format!("view {view}: it reads what is gone")));
        self.metadata(&planned)?;
        passes::renew_marks(self.trace, made)?;
        if self.has_lost_graphs()? {
            // What their launches ran tells something of them, as where recording began later.
            passes::spoil_graph(made)?;
            dropped.push("graphs whose captures the window cuts, though launches of them stay: rpd graph --redo composes them".into());
        }
        Ok(CopiedRows { dropped, rows })
    }

    /// Whether a launch stays of a graph that went.
    fn has_lost_graphs(&self) -> rusqlite::Result<bool> {
        let columns = [("ext_graph", "graphExec"), ("rocpd_graphLaunchapi", "graphExec")];
        if !columns
            .iter()
            .all(|(table, column)| self.layout.table(table).is_some_and(|found| found.has(column)))
        {
            return Ok(false);
        }
        let lost = format!(
            "SELECT EXISTS (SELECT 1 FROM main.rocpd_graphLaunchapi WHERE graphExec IN
                 (SELECT graphExec FROM {SOURCE}.ext_graph WHERE is_cut_graph(id)))"
        );
        self.making.made.query_row(&lost, [], |row| row.get(0))
    }

    /// Captured graphs stay whole or not at all.
    fn name_graphs(&self) -> rusqlite::Result<()> {
        if self.layout.table("ext_graph").is_none() {
            return Ok(());
        }
        let inside = self.window.condition("start");
        let outside = format!("SELECT id FROM {SOURCE}.ext_graph WHERE NOT ifnull({inside}, 0)");
        let mut cut = Ids::of(self.making.made, &outside, [])?;
        for (table, kernel) in
            [("ext_graph_kernelapis", "is_kept_call(api_id)"), ("ext_graph_kernelops", "is_kept_op(op_id)")]
        {
            if self.layout.table(table).is_some() {
                let query = format!("SELECT graph_id FROM {SOURCE}.{table} WHERE NOT {kernel}");
                cut.gather(self.making.made, &query, [])?;
            }
        }
        Arc::new(cut).name(self.making.made, "is_cut_graph")
    }

    /// Copies the rows for which `condition` is true, with `changed` (SQL, by column) in place of what is in these
    /// columns, and says how many.
    fn rows(&self, table: &TableLayout, condition: &str, changed: &BTreeMap<&str, String>) -> Result<usize> {
        let made = self.making.made;
        objects::table(made, SOURCE, &table.name)?;
        let columns: Vec<String> = table.columns.iter().map(|column| quote(&column.name)).collect();
        let values: Vec<String> = table
            .columns
            .iter()
            .map(|column| match changed.get(column.name.as_str()) {
                Some(value) => value.clone(),
                None if table.is("ext_callstack") && same(&column.name, "cpu_time") => {
                    "own_time(t.child_id, t.cpu_time)".to_string()
                }
                None => format!("t.{}", quote(&column.name)),
            })
            .collect();
        let name = quote(&table.name);
        made.execute(
            &format!(
                "INSERT INTO main.{name} ({}) SELECT {} FROM {SOURCE}.{name} AS t WHERE {condition}",
                columns.join(", "),
                values.join(", ")
            ),
            [],
        )
        .with_context(|| format!("cannot copy {}", table.name))
    }

    /// Copies the runs of a sensor that lie in the window, or in what the calls and ops that stay took beyond it, cut
    /// to that.
    fn runs(&self, table: &TableLayout) -> Result<usize> {
        let Window { start_ns, end_ns } = self.window;
        let mut last = end_ns;
        if end_ns < i64::MAX {
            for table in ["rocpd_api", "rocpd_op"] {
                let query =
                    format!("SELECT max(\"end\") FROM main.{table} WHERE typeof(\"end\") = 'integer'");
                let end: Option<i64> = self.making.made.query_row(&query, [], |row| row.get(0))?;
                last = last.max(end.unwrap_or(last));
            }
        }
        let condition = format!(
            "typeof(t.start) = 'integer' AND typeof(t.\"end\") = 'integer' AND t.start <= {last}
                 AND (t.\"end\" > {start_ns} OR t.start >= {start_ns})"
        );
        let cut =
            [("start", format!("max(t.start, {start_ns})")), ("end", format!("min(t.\"end\", {last})"))];
        self.rows(table, &condition, &BTreeMap::from(cut))
    }

    /// Copies the texts that rows in the new trace refer to, and the empty one of each session.
    fn texts(&self, table: &TableLayout, planned: &[PlannedTable<'_>]) -> Result<usize> {
        let made = self.making.made;
        let mut used = Ids::default();
        for PlannedTable { table: user, fate } in planned {
            let references = user.references.iter().filter(|reference| table.is(&reference.table));
            let references = references.map(|reference| reference.column.as_str());
            let columns: Vec<String> = references.chain(user.undeclared_texts()).map(quote).collect();
            if !columns.is_empty() && !matches!(fate, Fate::Dropped(_) | Fate::Texts) {
                let query = format!("SELECT {} FROM main.{}", columns.join(", "), quote(&user.name));
                used.gather(made, &query, [])?;
            }
        }
        Arc::new(used).name(made, "is_used_text")?;
        let Some(key) = table.key.as_deref().map(quote) else {
            return self.rows(table, "1", &BTreeMap::new());
        };
        // Local id 1 of each session is the empty text.
        let condition = format!("is_used_text(t.{key}) OR (t.{key} & 0xffffffff = 1 AND t.string = '')");
        self.rows(table, &condition, &BTreeMap::new())
    }

    /// Takes out what is said of tables that are gone, and adds what was done.
    fn metadata(&self, planned: &[PlannedTable<'_>]) -> Result<()> {
        let made = self.making.made;
        if self.layout.table("rocpd_metadata").is_none() {
            return Ok(());
        }
        let is_gone = |name: &str| {
            planned
                .iter()
                .any(|PlannedTable { table, fate }| matches!(fate, Fate::Dropped(_)) && table.is(name))
        };
        for declaration in declared_texts(made)?.iter().filter(|declaration| is_gone(&declaration.table)) {
            made.execute("DELETE FROM rocpd_metadata WHERE id = ?1", [declaration.row])?;
        }
        let edge = |ns: i64| Some(ns.to_string()).filter(|_| ns != i64::MIN && ns != i64::MAX);
        let state = |tag: &str, value: &str| -> rusqlite::Result<()> {
            made.execute("DELETE FROM rocpd_metadata WHERE tag = ?1", [tag])?;
            // Where the table declares no key, SQLite gives no ids.
            let insert = "INSERT INTO rocpd_metadata (id, tag, value)
                 SELECT ifnull(max(CAST(id AS integer)), 0) + 1, ?1, ?2 FROM rocpd_metadata";
            made.execute(insert, [tag, value])?;
            Ok(())
        };
        for (tag, value) in [
            ("trim::start_ns", edge(self.window.start_ns)),
            ("trim::end_ns", edge(self.window.end_ns)),
            (ORIGIN, Some(self.origin.clone())),
        ] {
            if let Some(value) = value {
                state(tag, &value)?;
            }
        }
        for SessionInfo { session, facts } in &self.noted {
            for (key, value) in facts {
                state(&format!("session::{session}::{key}"), value)?;
            }
            let query = "SELECT max(CAST(value AS integer)) FROM rocpd_metadata WHERE tag = 'session_count'";
            let counted: Option<i64> = made.query_row(query, [], |row| row.get(0))?;
            let least = i64::from(*session) + 1;
            if counted.is_none_or(|counted| counted < least) {
                state("session_count", &least.to_string())?;
            }
        }
        Ok(())
    }
}
