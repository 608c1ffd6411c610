//! What each GPU does at each moment: computing, communicating, copying, or nothing; and how much of the one hides behind the other.
//!
//! By unions of intervals, never by sums of durations: two kernels that run at once take the time of one. Communication and copies
//! cost a program only what no computing covers: their exposed time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use anyhow::Result;
use regex::Regex;
use rusqlite::Connection;
use serde::Serialize;

use super::gpu_time::{GpuOp, GpuOps, LeftOut, OpTexts};
use crate::region::Selected;
use crate::trace::op_kind::OpKind;

/// Names of kernels that communicate between GPUs, unless told otherwise: those of NCCL, RCCL and MSCCL++, and what inference engines
/// have in their place.
pub const COMMUNICATION: &str =
    "(?i)nccl|rccl|msccl|(all|cross_device)_?reduce|all_?gather|reduce_?scatter|all_?to_?all";

/// Kinds of work, as bits of what a GPU does at a moment.
const KINDS: usize = 3;
const COMPUTE: usize = 0;
const COMMUNICATE: usize = 1;
const COPY: usize = 2;

/// What each GPU did, and what could not be counted.
#[derive(Debug)]
pub struct Overlap {
    /// By number.
    pub gpus: Vec<GpuOverlap>,
    /// Operations that count nowhere.
    pub left_out: LeftOut,
}

/// The time of one GPU, ns. `compute + exposed_communication + exposed_copies = busy`, `busy + idle = span`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GpuOverlap {
    /// Its number, `gpuId`.
    pub gpu: i64,
    /// Its operations.
    pub operations: u64,
    /// First start, on the trace's clock.
    pub start_ns: i64,
    /// Last end.
    pub end_ns: i64,
    /// From the one to the other.
    pub span_ns: u64,
    /// In which anything ran.
    pub busy_ns: u64,
    /// In which nothing ran.
    pub idle_ns: u64,
    /// Operations that compute: kernels that do not communicate, and what is of no kind known.
    pub compute_operations: u64,
    /// In which one of them ran.
    pub compute_ns: u64,
    /// Kernels that communicate.
    pub communication_operations: u64,
    /// In which one of them ran.
    pub communication_ns: u64,
    /// The part of that in which computing went on.
    pub hidden_communication_ns: u64,
    /// The part in which none did.
    pub exposed_communication_ns: u64,
    /// Copies and fills.
    pub copies_operations: u64,
    /// In which one of them ran.
    pub copies_ns: u64,
    /// The part of that in which computing or communication went on.
    pub hidden_copies_ns: u64,
    /// The part in which neither did.
    pub exposed_copies_ns: u64,
}

impl Overlap {
    /// Reads the operations of a part of a trace of any schema version; `communication` matches the names of kernels that communicate.
    ///
    /// # Errors
    /// When the trace, or a temporary file for sorting, cannot be read.
    pub fn of(trace: &Connection, selected: &Selected, communication: &Regex) -> Result<Overlap> {
        let GpuOps { mut ops, left_out } = GpuOps::of(trace, selected)?;
        let mut texts = OpTexts::of(trace)?;
        let mut kinds = HashMap::new();
        let mut gpus = Vec::new();
        let mut current: Option<Sweep> = None;
        while let Some(op) = ops.next()? {
            let kind = match kinds.get(&op.name) {
                Some(kind) => *kind,
                None => {
                    let (description, op_type) = texts.description_and_type(op.name)?;
                    let kind = work((&description, &op_type), communication);
                    kinds.insert(op.name, kind);
                    kind
                }
            };
            if current.as_ref().is_some_and(|sweep| sweep.gpu != op.gpu) {
                gpus.extend(current.take().map(Sweep::finished));
            }
            current.get_or_insert_with(|| Sweep::from(&op)).begin(&op, kind);
        }
        gpus.extend(current.map(Sweep::finished));
        Ok(Overlap { gpus, left_out })
    }
}

/// The kind of work, by description and type of an operation.
pub(super) fn work((description, op_type): (&str, &str), communication: &Regex) -> usize {
    match OpKind::of(op_type) {
        OpKind::Copy | OpKind::Fill => COPY,
        OpKind::Kernel if communication.is_match(description) => COMMUNICATE,
        OpKind::Kernel | OpKind::Other => COMPUTE,
    }
}

/// One GPU from its first operation on.
pub(super) struct Sweep {
    pub(super) gpu: i64,
    start: i64,
    /// What is below has been counted.
    now: i64,
    /// How many operations of each kind run.
    running: [u64; KINDS],
    ends: BinaryHeap<Reverse<(i64, usize)>>,
    operations: [u64; KINDS],
    /// Time by the set of kinds that ran.
    spent: [u64; 1 << KINDS],
}

impl Sweep {
    pub(super) fn from(op: &GpuOp) -> Sweep {
        Sweep {
            gpu: op.gpu,
            start: op.start,
            now: op.start,
            running: [0; KINDS],
            ends: BinaryHeap::new(),
            operations: [0; KINDS],
            spent: [0; 1 << KINDS],
        }
    }

    pub(super) fn begin(&mut self, op: &GpuOp, kind: usize) {
        while let Some(&Reverse((end, ended))) = self.ends.peek()
            && end <= op.start
        {
            self.ends.pop();
            self.end(end, ended);
        }
        self.advance(op.start);
        self.running[kind] += 1;
        self.operations[kind] += 1;
        self.ends.push(Reverse((op.end, kind)));
    }

    fn end(&mut self, time: i64, kind: usize) {
        self.advance(time);
        self.running[kind] -= 1;
    }

    fn advance(&mut self, time: i64) {
        let set = (0..KINDS).filter(|kind| self.running[*kind] > 0).map(|kind| 1 << kind).sum::<usize>();
        self.spent[set] += time.abs_diff(self.now);
        self.now = time;
    }

    pub(super) fn finished(mut self) -> GpuOverlap {
        while let Some(Reverse((end, kind))) = self.ends.pop() {
            self.end(end, kind);
        }
        let time = |counts: &dyn Fn(&[bool; KINDS]) -> bool| -> u64 {
            let sets = (0..1 << KINDS).map(|set| std::array::from_fn(|kind| set & (1 << kind) != 0));
            sets.zip(self.spent).filter(|(set, _)| counts(set)).map(|(_, spent)| spent).sum()
        };
        let idle_ns = self.spent[0];
        let span_ns = self.now.abs_diff(self.start);
        GpuOverlap {
            gpu: self.gpu,
            operations: self.operations.iter().sum(),
            start_ns: self.start,
            end_ns: self.now,
            span_ns,
            busy_ns: span_ns - idle_ns,
            idle_ns,
            compute_operations: self.operations[COMPUTE],
            compute_ns: time(&|runs| runs[COMPUTE]),
            communication_operations: self.operations[COMMUNICATE],
            communication_ns: time(&|runs| runs[COMMUNICATE]),
            hidden_communication_ns: time(&|runs| runs[COMMUNICATE] && runs[COMPUTE]),
            exposed_communication_ns: time(&|runs| runs[COMMUNICATE] && !runs[COMPUTE]),
            copies_operations: self.operations[COPY],
            copies_ns: time(&|runs| runs[COPY]),
            hidden_copies_ns: time(&|runs| runs[COPY] && (runs[COMPUTE] || runs[COMMUNICATE])),
            exposed_copies_ns: time(&|runs| runs[COPY] && !runs[COMPUTE] && !runs[COMMUNICATE]),
        }
    }
}
