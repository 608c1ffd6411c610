//! Graphs with nothing but launches in the file: they are composed of what a launch ran.
//!
//! All launches of one executable graph run the same. The one with the most operations represents all: others may have
//! been cut off by the begin or end of the recording.

use std::collections::HashMap;

use anyhow::Result;
use rusqlite::OptionalExtension;

use super::call::{GraphCalls, GraphProcess, HandleNumber};
use super::history::GraphHistory;
use crate::pass::Change;
use crate::pass::sorted::{Sorted, Sorter};
use crate::trace::op_kind::OpKind;

/// A composed graph.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Composed {
    pub(crate) exec: HandleNumber,
    pub(crate) stream: HandleNumber,
    /// For the launch that it is composed of: times, ns, and row of `rocpd_api`.
    pub(crate) start: i64,
    pub(crate) end: i64,
    api: i64,
    /// Operations of that launch.
    ops: u64,
}

/// What is known of such graphs.
pub(crate) struct Composition {
    pub(crate) graphs: Vec<Composed>,
    /// `[place among the graphs, begin, row of rocpd_op]` of their kernels.
    pub(crate) kernels: Sorted<[i64; 3]>,
    /// Launches with another number of operations than the one that stands for them.
    pub(crate) different: u64,
}

impl Composition {
    /// Composes the graphs of launches of which nothing else is known.
    ///
    /// # Errors
    /// When the file or a temporary file fails.
    pub(crate) fn of(change: &Change<'_>, calls: &GraphCalls, history: &GraphHistory) -> Result<Composition> {
        let mut groups: HashMap<(GraphProcess, HandleNumber, usize), usize> = HashMap::new();
        // By call: its graph, and its operations.
        let mut launches: HashMap<i64, (usize, u64)> = HashMap::new();
        for launch in &calls.launches {
            let (making, is_known) = history.made_before(launch);
            if !is_known {
                let count = groups.len();
                let group = *groups.entry((launch.process, launch.exec, making)).or_insert(count);
                launches.insert(launch.id, (group, 0));
            }
        }
        count_ops(change, &mut launches)?;
        let mut graphs: Vec<Option<Composed>> = vec![None; groups.len()];
        for launch in &calls.launches {
            let Some(&(group, ops)) = launches.get(&launch.id) else { continue };
            if ops > graphs[group].map_or(0, |graph| graph.ops) {
                let (start, end) = (launch.start, launch.end);
                graphs[group] = Some(Composed {
                    exec: launch.exec,
                    stream: launch.stream,
                    start,
                    end,
                    api: launch.id,
                    ops,
                });
            }
        }
        let different =
            launches.values().filter(|(group, ops)| graphs[*group].is_some_and(|graph| graph.ops != *ops));
        let different = different.count() as u64;
        let graphs: Vec<Composed> = graphs.into_iter().flatten().collect();
        let kernels = kernels(change, &graphs)?;
        Ok(Composition { graphs, kernels, different })
    }
}

fn count_ops(change: &Change<'_>, launches: &mut HashMap<i64, (usize, u64)>) -> Result<()> {
    if launches.is_empty() {
        return Ok(());
    }
    change.show("graphs: operations of launches");
    let mut select = change.trace.prepare("SELECT api_id FROM rocpd_api_ops")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        if let Some((_, ops)) = row.get_ref(0)?.as_i64().ok().and_then(|api| launches.get_mut(&api)) {
            *ops += 1;
        }
    }
    Ok(())
}

fn kernels(change: &Change<'_>, graphs: &[Composed]) -> Result<Sorted<[i64; 3]>> {
    let mut sorter = Sorter::new();
    if graphs.is_empty() {
        return sorter.sorted();
    }
    let chosen: HashMap<i64, usize> = graphs.iter().enumerate().map(|(at, graph)| (graph.api, at)).collect();
    let mut links = change.trace.prepare("SELECT api_id, op_id FROM rocpd_api_ops")?;
    let mut op = change.trace.prepare(
        "SELECT O.start, T.string FROM rocpd_op O JOIN rocpd_string T ON T.id = O.opType_id WHERE O.id = ?1",
    )?;
    let mut rows = links.query([])?;
    while let Some(row) = rows.next()? {
        let link = row.get_ref(0)?.as_i64().ok().zip(row.get_ref(1)?.as_i64().ok());
        let Some((graph, id)) = link.and_then(|(api, op)| Some((*chosen.get(&api)?, op))) else { continue };
        let found = op.query_row([id], |row| {
            let is_kernel = OpKind::of(row.get_ref(1)?.as_str().unwrap_or_default()) == OpKind::Kernel;
            Ok(row.get_ref(0)?.as_i64().ok().filter(|_| is_kernel))
        });
        if let Some(start) = found.optional()?.flatten() {
            sorter.push([graph as i64, start, id])?;
        }
    }
    sorter.sorted()
}
