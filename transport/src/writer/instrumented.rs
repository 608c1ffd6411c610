//! Instrumented dispatches: what analyzers found comes before or after the row of the operation, and is written when both are there.

use std::collections::HashMap;

use rpd_schema::{Appender, Error, InstrumentationRow, OpId, StringId};

use crate::records::{Dispatch, KernelId};
use crate::source::{GpuTable, InstrumentedText};

/// Findings that may wait here; more wait where they come from, and are counted.
const MOST_WAITING: usize = 1 << 16;

/// A dispatch, by its GPU, its queue and its place there.
type DispatchPlace = (u32, u32, u64);

/// See the module.
pub(super) struct Instrumented {
    table: &'static dyn GpuTable,
    /// Operations of instrumented dispatches whose findings have not come.
    ops: HashMap<DispatchPlace, OpId>,
    /// Those of them whose rows came with the open transaction.
    open: Vec<DispatchPlace>,
    /// Findings that are not in the file.
    waiting: Vec<Waiting>,
}

struct Waiting {
    found: InstrumentedText,
    /// It came with the open transaction.
    is_written: bool,
}

impl Instrumented {
    /// None yet.
    pub(super) fn new(table: &'static dyn GpuTable) -> Instrumented {
        Instrumented { table, ops: HashMap::new(), open: Vec::new(), waiting: Vec::new() }
    }

    /// The dispatch is that operation.
    pub(super) fn ran(&mut self, dispatch: &Dispatch, op: OpId) {
        let place = (dispatch.gpu, dispatch.queue, dispatch.sequence);
        self.ops.insert(place, op);
        self.open.push(place);
    }

    /// Which findings can be written: those whose operations have rows, or all of them where no other operation will have one.
    pub(super) fn ready(&mut self, ends: bool) -> Vec<usize> {
        let has_room = self.waiting.len() < MOST_WAITING;
        let new = if has_room { self.table.instrumented() } else { Vec::new() };
        self.waiting.extend(new.into_iter().map(|found| Waiting { found, is_written: false }));
        let is_ready = |waiting: &Waiting| {
            let found = &waiting.found;
            !waiting.is_written && (ends || !found.completed || self.ops.contains_key(&place(found)))
        };
        (0..self.waiting.len()).filter(|place| is_ready(&self.waiting[*place])).collect()
    }

    /// The kernel of the findings at that place.
    pub(super) fn kernel(&self, place: usize) -> KernelId {
        self.waiting[place].found.kernel
    }

    /// Writes the findings at that place, of the kernel of that name.
    pub(super) fn write(
        &mut self,
        at: usize,
        kernel_name: StringId,
        appender: &mut Appender,
    ) -> Result<(), Error> {
        let Waiting { found, is_written } = &mut self.waiting[at];
        let op = self.ops.get(&place(found)).copied();
        for analysis in &found.analyses {
            let row = InstrumentationRow {
                op,
                kernel_name,
                gpu: found.gpu,
                queue: found.queue,
                sequence: found.sequence,
                analyzer: &analysis.analyzer,
                messages: analysis.messages,
                bytes: analysis.bytes,
                dropped: analysis.dropped,
                incomplete: !found.completed,
                reason: &analysis.reason,
            };
            appender.instrumentation(&row, &analysis.findings)?;
        }
        *is_written = true;
        Ok(())
    }

    /// A new session began, which has none of the operations.
    pub(super) fn forget(&mut self) {
        self.ops.clear();
        self.open.clear();
    }

    /// The open transaction is in the file.
    pub(super) fn commit(&mut self) {
        self.open.clear();
        for waiting in self.waiting.iter().filter(|waiting| waiting.is_written) {
            self.ops.remove(&place(&waiting.found));
        }
        self.waiting.retain(|waiting| !waiting.is_written);
    }

    /// The open transaction is not in the file.
    pub(super) fn roll_back(&mut self) {
        for place in self.open.drain(..) {
            self.ops.remove(&place);
        }
        self.waiting.iter_mut().for_each(|waiting| waiting.is_written = false);
    }
}

fn place(found: &InstrumentedText) -> DispatchPlace {
    (found.gpu, found.queue, found.sequence)
}
