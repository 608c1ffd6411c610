//! Instrumented dispatches: what analyzers found comes before or after the row of the operation, and is written when both are there.

use std::collections::HashMap;

use rpd_schema::{Appender, Error, InstrumentationRow, OpId, StringId};

use crate::records::{Analyzed, Dispatch, KernelId};
use crate::source::AnalysisText;

/// Dispatches that may wait for their operations; where more do, none waits any longer.
const MOST_WAITING: usize = 1 << 16;

/// A dispatch, by its GPU, its queue and its place there.
type DispatchPlace = (u32, u32, u64);

#[derive(Default)]
pub(super) struct Instrumented {
    /// Operations of instrumented dispatches that have not been analyzed yet.
    ops: HashMap<DispatchPlace, OpId>,
    /// Those of them whose rows came with the open transaction.
    open: Vec<DispatchPlace>,
    /// What is not in the file.
    waiting: Vec<Waiting>,
}

struct Waiting {
    dispatch: Analyzed,
    analyses: Vec<AnalysisText>,
    /// It came out of its ring for the open transaction, which counts it where it fails.
    is_new: bool,
    /// The open transaction has its rows.
    is_written: bool,
}

impl Instrumented {
    /// The dispatch is that operation.
    pub(super) fn ran(&mut self, dispatch: &Dispatch, op: OpId) {
        let place = (dispatch.gpu, dispatch.queue, dispatch.sequence);
        self.ops.insert(place, op);
        self.open.push(place);
    }

    /// The dispatch was analyzed.
    pub(super) fn analyzed(&mut self, dispatch: Analyzed, analyses: Vec<AnalysisText>) {
        self.waiting.push(Waiting { dispatch, analyses, is_new: true, is_written: false });
    }

    /// What can be written: where the operation has its row, or all of it where no other operation will have one.
    pub(super) fn ready(&self, ends: bool) -> Vec<usize> {
        let all = ends || self.waiting.len() > MOST_WAITING;
        let is_ready = |waiting: &Waiting| {
            let dispatch = &waiting.dispatch;
            !waiting.is_written && (all || dispatch.completed == 0 || self.ops.contains_key(&place(dispatch)))
        };
        (0..self.waiting.len()).filter(|place| is_ready(&self.waiting[*place])).collect()
    }

    /// The kernel of what waits at that place.
    pub(super) fn kernel(&self, place: usize) -> KernelId {
        self.waiting[place].dispatch.kernel
    }

    /// Writes what waits at that place, of the kernel of that name.
    pub(super) fn write(
        &mut self,
        at: usize,
        kernel_name: StringId,
        appender: &mut Appender,
    ) -> Result<(), Error> {
        let Waiting { dispatch, analyses, is_written, .. } = &mut self.waiting[at];
        let op = self.ops.get(&place(dispatch)).copied();
        for analysis in analyses {
            let row = InstrumentationRow {
                op,
                kernel_name,
                gpu: dispatch.gpu,
                queue: dispatch.queue,
                sequence: dispatch.sequence,
                analyzer: &analysis.analyzer,
                messages: analysis.messages,
                bytes: analysis.bytes,
                dropped: analysis.dropped,
                incomplete: dispatch.completed == 0,
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
            self.ops.remove(&place(&waiting.dispatch));
        }
        self.waiting.retain(|waiting| !waiting.is_written);
        self.waiting.iter_mut().for_each(|waiting| waiting.is_new = false);
    }

    /// The open transaction is not in the file.
    pub(super) fn roll_back(&mut self) {
        for place in self.open.drain(..) {
            self.ops.remove(&place);
        }
        self.waiting.retain(|waiting| !waiting.is_new);
        self.waiting.iter_mut().for_each(|waiting| waiting.is_written = false);
    }

    /// Nothing more is written: how many dispatches this is of.
    pub(super) fn discard(&mut self) -> u64 {
        std::mem::take(&mut self.waiting).len() as u64
    }
}

fn place(dispatch: &Analyzed) -> DispatchPlace {
    (dispatch.gpu, dispatch.queue, dispatch.sequence)
}
