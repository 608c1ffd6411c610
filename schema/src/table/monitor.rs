//! `rocpd_monitor`: sensors over time.

use super::{Cells, Row};
use crate::id::Offset;
use rpd_sql::insert::{self, Insert};

/// A stretch of time in which a sensor's value did not change.
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

/// The same, kept until it is written.
#[derive(Clone, Debug)]
pub(crate) struct OwnedMonitor {
    pub(crate) id: u64,
    device_type: Box<str>,
    device: u32,
    monitor_type: Box<str>,
    start: u64,
    end: u64,
    value: Box<str>,
}

impl OwnedMonitor {
    pub(crate) fn new(id: u64, row: &MonitorRow<'_>) -> OwnedMonitor {
        OwnedMonitor {
            id,
            device_type: row.device_type.into(),
            device: row.device,
            monitor_type: row.monitor_type.into(),
            start: row.start,
            end: row.end,
            value: row.value.into(),
        }
    }
}

impl Row for OwnedMonitor {
    const INSERT: &'static Insert = &insert::MONITOR;

    fn largest_id(&self) -> u64 {
        self.id
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.local(self.id)
    }

    fn bind(&self, _offset: Offset, cells: &mut Cells<'_, '_>) -> rusqlite::Result<()> {
        cells.text(&self.device_type)?;
        cells.integer(self.device)?;
        cells.text(&self.monitor_type)?;
        cells.unsigned(self.start)?;
        cells.unsigned(self.end)?;
        cells.text(&self.value)
    }
}
