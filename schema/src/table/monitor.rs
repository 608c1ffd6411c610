//! `rocpd_monitor`: sensors over time.

use super::{Cells, Row};
use crate::id::Offset;
use rpd_sql::insert::{self, Insert};

/// A time in which a sensor's value did not change.
#[derive(Clone, Copy, Debug)]
pub struct MonitorRow<'a> {
    /// `gpu`.
    pub device_type: &'a str,
    /// Index of the device.
    pub device: u32,
    /// `sclk` (MHz) ...
    pub monitor_type: &'a str,
    /// Begin, ns, CLOCK_MONOTONIC.
    pub start: u64,
    /// End, ns, CLOCK_MONOTONIC.
    pub end: u64,
    /// The value, as text.
    pub value: &'a str,
}

/// The same with its local id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberedMonitor<'a> {
    pub(crate) id: u64,
    pub(crate) row: &'a MonitorRow<'a>,
}

impl Row for NumberedMonitor<'_> {
    const INSERT: &'static Insert = &insert::MONITOR;

    fn largest_id(&self) -> u64 {
        self.id
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.local(self.id)
    }

    fn fill(&self, _offset: Offset, cells: &mut Cells<'_>) {
        cells.text(self.row.device_type);
        cells.integer(self.row.device);
        cells.text(self.row.monitor_type);
        cells.unsigned(self.row.start);
        cells.unsigned(self.row.end);
        cells.text(self.row.value);
    }
}
