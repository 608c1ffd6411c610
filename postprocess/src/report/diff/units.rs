//! The things that are compared: kernels, copies, calls and markers by name, each with a number that is the same for
//! all files.

use rustc_hash::FxHashMap;
use serde::Serialize;

/// What a row of the comparison is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UnitKind {
    /// All of an iteration or of a run: its wall time, the busy and idle time of its GPUs.
    Total,
    /// A kernel.
    Kernel,
    /// Copies and fills of one direction.
    Copy,
    /// Calls of one function.
    Call,
    /// Markers of one text.
    Marker,
}

impl UnitKind {
    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            UnitKind::Total => "total",
            UnitKind::Kernel => "kernel",
            UnitKind::Copy => "copy",
            UnitKind::Call => "call",
            UnitKind::Marker => "marker",
        }
    }

    /// Whether a GPU spends its time.
    pub(super) fn is_work(self) -> bool {
        matches!(self, UnitKind::Kernel | UnitKind::Copy)
    }
}

/// Something that is compared.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) kind: UnitKind,
    pub(super) name: String,
    /// For work: which, as `overlap` has it.
    pub(super) work: usize,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Units {
    numbers: FxHashMap<(UnitKind, String), u32>,
    units: Vec<Unit>,
}

impl Units {
    /// The number of a unit.
    pub(super) fn number(&mut self, kind: UnitKind, name: &str, work: usize) -> u32 {
        let key = (kind, name.to_string());
        let units = &mut self.units;
        *self.numbers.entry(key).or_insert_with(|| {
            units.push(Unit { kind, name: name.to_string(), work });
            units.len() as u32 - 1
        })
    }

    pub(super) fn get(&self, number: u32) -> &Unit {
        &self.units[number as usize]
    }
}
