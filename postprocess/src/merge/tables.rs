//! The tables of the merged trace, and those of the traces that cannot be put together.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use super::input::Input;
use crate::pass::Definition;
use crate::passes::PASSES;
use crate::text;
use crate::trace::layout::{Column, TableLayout, same};

/// Tables of the format, of any version, and those that only the recorder fills.
const CORE: [&str; 15] = [
    "rocpd_metadata",
    "rocpd_kernelcodeobject",
    "rocpd_string",
    "rocpd_ustring",
    "rocpd_api",
    "rocpd_op",
    "rocpd_api_ops",
    "rocpd_kernelapi",
    "rocpd_copyapi",
    "rocpd_barrierop",
    "rocpd_op_inputSignals",
    "rocpd_monitor",
    "rocpd_counter",
    "rocpd_stackframe",
    "ext_dispatch",
];

/// Tables that only the recorder fills, too, whose rows are of no call or operation: others refer to them.
const REFERRED_TO: [&str; 2] = ["ext_codeobject", "ext_candidate"];

/// What is put together of several traces.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Passes that all of them have.
    pub(super) passes: Vec<&'static Definition>,
    /// Subclass tables that all of them have.
    pub(super) subclasses: Vec<String>,
    /// Tables, by lower-case name, that go.
    gone: BTreeSet<String>,
    /// The same with what belongs to them, and why, for people.
    pub(super) dropped: Vec<String>,
}

impl Tables {
    /// Decides.
    ///
    /// # Errors
    /// When a pass that changed the rows of one trace was not made in another.
    pub(super) fn of(inputs: &[Input]) -> Result<Tables> {
        let mut tables = Tables::default();
        for definition in PASSES {
            tables.pass(inputs, definition)?;
        }
        let subclasses: BTreeSet<&String> = inputs.iter().flat_map(|input| input.subclasses.keys()).collect();
        for name in subclasses {
            let members: BTreeSet<Option<&String>> =
                inputs.iter().map(|input| input.subclasses.get(name)).collect();
            let is_whole = members.len() == 1 && tables.columns_agree(inputs, name);
            if is_whole {
                tables.subclasses.push(name.clone());
            } else {
                tables.drop(name, "not all traces have the same; make it anew with: rpd subclass");
            }
        }
        let names: BTreeSet<String> = inputs
            .iter()
            .flat_map(|input| &input.layout.tables)
            .map(|table| table.name.to_ascii_lowercase())
            .collect();
        for name in names {
            let is_owned =
                tables.passes.iter().any(|pass| pass.tables.iter().any(|owned| same(owned, &name)))
                    || tables.subclasses.iter().any(|subclass| same(subclass, &name));
            if is_owned || tables.is_gone(&name) || CORE.iter().any(|core| same(core, &name)) {
                continue;
            }
            let hangs_together = inputs
                .iter()
                .filter_map(|input| input.layout.table(&name))
                .all(|table| !table.references.is_empty())
                || REFERRED_TO.iter().any(|table| same(table, &name));
            if !hangs_together {
                tables.drop(&name, "nothing tells which calls or operations its rows belong to");
            } else if !tables.columns_agree(inputs, &name) {
                tables.drop(&name, "it has other columns in one trace than in another");
            }
        }
        Ok(tables)
    }

    fn pass(&mut self, inputs: &[Input], definition: &'static Definition) -> Result<()> {
        let with: Vec<&Input> =
            inputs.iter().filter(|input| input.passes.contains_key(definition.name)).collect();
        let shown = |input: &Input| text::escape_path(&input.path);
        let without = inputs.iter().find(|input| !input.passes.contains_key(definition.name));
        if let (Some(changes), Some(with), Some(without)) = (definition.changes, with.first(), without) {
            bail!(
                "{0} has changed {changes} in {1} and not in {2}; make it there first with: rpd {0}",
                definition.name,
                shown(with),
                shown(without)
            );
        }
        match (with.first(), without) {
            (None, _) => {}
            // What it changed in one trace stays changed.
            (Some(_), Some(_)) if definition.tables.is_empty() => {}
            (Some(_), None) if definition.tables.iter().all(|table| self.columns_agree(inputs, table)) => {
                self.passes.push(definition);
            }
            (Some(_), without) => {
                self.gone.extend(definition.tables.iter().map(|table| table.to_ascii_lowercase()));
                let why = without.map_or_else(
                    || "its tables differ".to_string(),
                    |input| format!("not made in {}", shown(input)),
                );
                self.dropped.push(format!("{}: {why}; make it anew with: rpd {0}", definition.name));
            }
        }
        Ok(())
    }

    fn drop(&mut self, table: &str, why: &str) {
        self.gone.insert(table.to_ascii_lowercase());
        self.dropped.push(format!("table {table}: {why}"));
    }

    fn columns_agree(&self, inputs: &[Input], name: &str) -> bool {
        let columns = |table: &TableLayout| -> Vec<(String, bool, bool)> {
            let column =
                |column: &Column| (column.name.to_ascii_lowercase(), column.is_integer, column.is_real);
            table.columns.iter().map(column).collect()
        };
        let mut all = inputs.iter().filter_map(|input| input.layout.table(name)).map(columns);
        let first = all.next();
        all.all(|columns| Some(columns) == first)
    }

    /// Whether a table goes.
    pub(super) fn is_gone(&self, name: &str) -> bool {
        self.gone.contains(&name.to_ascii_lowercase())
    }
}
