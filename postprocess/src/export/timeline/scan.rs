//! The rows of links, calls, operations and sensors: one thread reads them while another sorts them.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::vec;

use anyhow::Result;
use rusqlite::Connection;

use super::begin_reading;
use crate::trace::has_table;

/// Rows that are handed over at once.
const BATCH: usize = 1 << 10;

/// Batches that wait to be taken.
const WAITING: usize = 8;

/// The integers of a row, none where a column has something else.
pub(super) type Integers<const N: usize> = [Option<i64>; N];

type Batch<const N: usize> = Vec<Integers<N>>;

/// Rows as they arrive, to be read in the order of the fields.
pub(super) struct ScannedRows {
    /// Call, row and operation.
    pub(super) links: Arriving<3>,
    /// Id, pid, tid, start, end, function and arguments, in the order of ids.
    pub(super) calls: Arriving<7>,
    /// Id, GPU, queue, start, end, description and type, in the order of ids.
    pub(super) ops: Arriving<7>,
    /// Start and end.
    pub(super) sensors: Arriving<2>,
}

/// Reads the rows.
pub(super) struct Scanner {
    trace: Connection,
    links: SyncSender<Batch<3>>,
    calls: SyncSender<Batch<7>>,
    ops: SyncSender<Batch<7>>,
    sensors: SyncSender<Batch<2>>,
}

/// What reads the rows of the trace `file` as they are now, and where they arrive.
///
/// # Errors
/// When the trace cannot be read.
pub(super) fn scanner(file: &Path) -> Result<(Scanner, ScannedRows)> {
    let (trace, _) = rpd_schema::open_read(file)?;
    begin_reading(&trace)?;
    // The first thing that is read decides on the moment.
    has_table(&trace, "rocpd_op")?;
    let (links, links_arriving) = sync_channel(WAITING);
    let (calls, calls_arriving) = sync_channel(WAITING);
    let (ops, ops_arriving) = sync_channel(WAITING);
    let (sensors, sensors_arriving) = sync_channel(WAITING);
    let scanned = ScannedRows {
        links: Arriving::of(links_arriving),
        calls: Arriving::of(calls_arriving),
        ops: Arriving::of(ops_arriving),
        sensors: Arriving::of(sensors_arriving),
    };
    Ok((Scanner { trace, links, calls, ops, sensors }, scanned))
}

impl Scanner {
    /// Reads the rows, until nobody takes them any more.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn read(self) -> Result<()> {
        let Scanner { trace, links, calls, ops, sensors } = self;
        read(&trace, "rocpd_api_ops", "SELECT api_id, rowid, op_id FROM rocpd_api_ops", links)?;
        let query = "SELECT id, pid, tid, start, \"end\", apiName_id, args_id FROM rocpd_api ORDER BY id";
        read(&trace, "rocpd_api", query, calls)?;
        let query =
            "SELECT id, gpuId, queueId, start, \"end\", description_id, opType_id FROM rocpd_op ORDER BY id";
        read(&trace, "rocpd_op", query, ops)?;
        // They may be read before the first call.
        read(&trace, "rocpd_monitor", "SELECT start, \"end\" FROM rocpd_monitor", sensors)
    }
}

/// Reads the rows of a table, if it is there.
fn read<const N: usize>(
    trace: &Connection,
    table: &str,
    query: &str,
    to: SyncSender<Batch<N>>,
) -> Result<()> {
    if !has_table(trace, table)? {
        return Ok(());
    }
    let mut query = trace.prepare(query)?;
    let mut rows = query.query([])?;
    let mut batch = Vec::with_capacity(BATCH);
    while let Some(row) = rows.next()? {
        let mut integers = [None; N];
        for (column, integer) in integers.iter_mut().enumerate() {
            *integer = row.get_ref(column)?.as_i64().ok();
        }
        batch.push(integers);
        if batch.len() == BATCH && to.send(std::mem::replace(&mut batch, Vec::with_capacity(BATCH))).is_err()
        {
            return Ok(());
        }
    }
    // Whoever takes no more rows says why.
    let _ = to.send(batch);
    Ok(())
}

/// The rows of a table.
pub(super) struct Arriving<const N: usize> {
    batches: Receiver<Batch<N>>,
    batch: vec::IntoIter<Integers<N>>,
}

impl<const N: usize> Arriving<N> {
    fn of(batches: Receiver<Batch<N>>) -> Arriving<N> {
        Arriving { batches, batch: Vec::new().into_iter() }
    }
}

impl<const N: usize> Iterator for Arriving<N> {
    type Item = Integers<N>;

    fn next(&mut self) -> Option<Integers<N>> {
        loop {
            if let Some(row) = self.batch.next() {
                return Some(row);
            }
            self.batch = self.batches.recv().ok()?.into_iter();
        }
    }
}
