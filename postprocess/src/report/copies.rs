//! Copies and fills by kind and size, with their bandwidth.
//!
//! How many bytes an operation moved is known of those that a call caused which says it (`rocpd_copyapi`); a call that became several
//! copies shares its bytes out.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;
use rpd_schema::Version;
use rusqlite::Connection;
use serde::Serialize;

use super::by_id::{ById, integer};
use super::caused::CausedOps;
use super::gpu_time::{LeftOut, OpName, OpTexts};
use crate::region::Selected;
use crate::trace::op_kind::OpKind;

/// Where classes of sizes begin, bytes.
pub const CLASSES: [u64; 7] = [0, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20, 1 << 30];

/// The copies of a trace, and what could not be counted.
#[derive(Debug)]
pub struct Copies {
    /// Most time first.
    pub kinds: Vec<CopyKind>,
    /// Operations that count nowhere.
    pub left_out: LeftOut,
}

/// Copies of a kind; those of its sizes add up to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CopyKind {
    /// The type of the operations: `CopyHostToDevice`.
    pub kind: String,
    /// All of them.
    #[serde(flatten)]
    pub all: CopySums,
    /// By size, smallest first, those of unknown size last.
    pub sizes: Vec<CopySize>,
}

/// Copies of a kind and a size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CopySize {
    /// The smallest size that counts, bytes; none of those whose size is not known.
    pub from_bytes: Option<u64>,
    /// The smallest that does not count any more, bytes; none of the last class.
    pub to_bytes: Option<u64>,
    /// All of them.
    #[serde(flatten)]
    pub all: CopySums,
}

/// Copies added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CopySums {
    /// How many.
    pub copies: u64,
    /// What they moved, bytes, as far as it is known.
    pub bytes: u64,
    /// Sum of their durations, ns.
    pub total_ns: u64,
    /// The part of that of copies whose sizes are known, ns.
    pub sized_ns: u64,
    /// Bytes over that time, GB (10^9 bytes) a second; none where it is not known.
    pub gb_per_s: Option<f64>,
    /// Of the fastest one.
    pub best_gb_per_s: Option<f64>,
}

impl CopySums {
    fn add(&mut self, other: CopySums) {
        self.copies += other.copies;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.sized_ns = self.sized_ns.saturating_add(other.sized_ns);
        let best = [self.best_gb_per_s, other.best_gb_per_s].into_iter().flatten();
        self.best_gb_per_s = best.reduce(f64::max);
        self.gb_per_s = rate(self.bytes, self.sized_ns);
    }
}

/// GB a second: the same number as bytes a nanosecond.
fn rate(bytes: u64, ns: u64) -> Option<f64> {
    (ns > 0 && bytes > 0).then(|| bytes as f64 / ns as f64)
}

/// Copies of one call and one name.
#[derive(Clone, Copy)]
struct OfCall {
    copies: u64,
    total_ns: u64,
    shortest_ns: u64,
}

/// Adds up what calls have caused.
struct Adding<'trace> {
    texts: OpTexts<'trace>,
    found: BTreeMap<(String, usize), CopySums>,
}

/// The class of copies of unknown size.
const UNKNOWN: usize = CLASSES.len();

impl Adding<'_> {
    /// The copies of one call, of `size` bytes together.
    fn call(&mut self, size: Option<u64>, copies: &mut BTreeMap<OpName, OfCall>) -> rusqlite::Result<()> {
        let mut left = copies.values().map(|of| of.copies).sum::<u64>();
        let mut bytes_left = size;
        for (name, of) in std::mem::take(copies) {
            // What is left is shared by what is left, so that nothing is lost by rounding.
            let bytes =
                bytes_left.map(|bytes| (u128::from(bytes) * u128::from(of.copies) / u128::from(left)) as u64);
            left -= of.copies;
            bytes_left = bytes_left.zip(bytes).map(|(all, part)| all - part);
            let each = bytes.map(|bytes| bytes / of.copies);
            let class = each.map_or(UNKNOWN, |each| CLASSES.partition_point(|from| *from <= each) - 1);
            let mut sums = CopySums { copies: of.copies, total_ns: of.total_ns, ..CopySums::default() };
            if let (Some(bytes), Some(each)) = (bytes, each) {
                sums.bytes = bytes;
                sums.sized_ns = of.total_ns;
                sums.best_gb_per_s = rate(each, of.shortest_ns);
            }
            let (_, kind) = self.texts.description_and_type(name)?;
            self.found.entry((kind, class)).or_default().add(sums);
        }
        Ok(())
    }
}

impl Copies {
    /// Reads the copies of a part of a trace.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub fn of(trace: &Connection, version: Version, selected: &Selected) -> Result<Copies> {
        let ops = CausedOps::of(trace, selected)?;
        let left_out = ops.left_out;
        let mut sizes = match version {
            Version::V1 => ById::none(),
            _ => ById::of(trace, "rocpd_copyapi", "api_ptr_id", "size")?,
        };
        let mut sizes = sizes.rows()?;
        let mut adding = Adding { texts: OpTexts::of(trace)?, found: BTreeMap::new() };
        let mut texts = OpTexts::of(trace)?;
        let mut is_copy: BTreeMap<OpName, bool> = BTreeMap::new();
        let mut current: Option<(i64, Option<u64>)> = None;
        let mut of_call: BTreeMap<OpName, OfCall> = BTreeMap::new();
        ops.each(|op, call| {
            let copies = match is_copy.get(&op.name) {
                Some(copies) => *copies,
                None => {
                    let (_, kind) = texts.description_and_type(op.name)?;
                    let copies = matches!(OpKind::of(&kind), OpKind::Copy | OpKind::Fill);
                    is_copy.insert(op.name, copies);
                    copies
                }
            };
            if !copies {
                return Ok(());
            }
            if current.map(|(id, _)| id) != call.map(|call| call.id) {
                adding.call(current.and_then(|(_, size)| size), &mut of_call)?;
                current = match call {
                    None => None,
                    Some(call) => {
                        let size = sizes.at(call.id)?.and_then(|values| integer(values, 0));
                        Some((call.id, size.and_then(|size| u64::try_from(size).ok())))
                    }
                };
            }
            let ns = op.duration();
            let of =
                of_call.entry(op.name).or_insert(OfCall { copies: 0, total_ns: 0, shortest_ns: u64::MAX });
            of.copies += 1;
            of.total_ns = of.total_ns.saturating_add(ns);
            of.shortest_ns = of.shortest_ns.min(ns);
            Ok(())
        })?;
        adding.call(current.and_then(|(_, size)| size), &mut of_call)?;
        Ok(Copies { kinds: kinds(adding.found), left_out })
    }
}

fn kinds(found: BTreeMap<(String, usize), CopySums>) -> Vec<CopyKind> {
    let mut kinds: Vec<CopyKind> = Vec::new();
    for ((kind, class), sums) in found {
        if kinds.last().is_none_or(|last| last.kind != kind) {
            kinds.push(CopyKind { kind, all: CopySums::default(), sizes: Vec::new() });
        }
        if let Some(last) = kinds.last_mut() {
            last.all.add(sums);
            let (from_bytes, to_bytes) = (CLASSES.get(class).copied(), CLASSES.get(class + 1).copied());
            last.sizes.push(CopySize { from_bytes, to_bytes, all: sums });
        }
    }
    kinds.sort_by_key(|kind| Reverse(kind.all.total_ns));
    kinds
}
