//! PyTorch's operators with what they launched: by operator, operation and shapes.
//!
//! An operation belongs to the innermost operator around its launch. Where the autograd pass has taken shapes off the markers, its table
//! has them. Memory does not grow with the number of operators, operations and shapes: texts are compared by their keys, and read again when
//! they are shown.

use std::hash::{BuildHasher, RandomState};

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rpd_schema::Version;
use rusqlite::{Connection, OptionalExtension, Statement};
use rustc_hash::FxHashMap;

use super::super::call_tree::{FrameNames, REMEMBERED, Thread, TreeFrame, Trees};
use crate::pass::parts::{Key, Parts, Summand};
use crate::pass::sorted::{Sorted, Sorter};
use crate::passes::autograd::marker::MarkerText;
use crate::trace::has_table;

/// Rows of the same time that are put in the order of their names at once.
const SAME_TIMES: usize = 1 << 16;

/// Operations of one operator, name and shapes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OperatorKernel {
    pub(super) operator: String,
    /// Empty in the sum of an operator.
    pub(super) kernel: String,
    pub(super) shapes: String,
    pub(super) calls: u64,
    /// Sum of their durations, ns.
    pub(super) total_ns: u64,
}

/// Where an operator's name and shapes are: in the text of a marker, by the text's id, or with what the pass took off a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct OperatorIds {
    /// 0 for a text, 1 for a call.
    is_call: u64,
    id: i64,
}

/// An operator around launches.
#[derive(Debug, Clone, Copy)]
struct Operator {
    name: Key,
    shapes: Key,
    ids: OperatorIds,
}

/// What a frame's name is.
#[derive(Clone, Copy)]
enum Named {
    /// A marker of an operator, with the shapes in its text.
    Operator(Operator),
    Operation(Key),
    Other,
}

/// Operations of one operator, name and shapes, or of one operator, or some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct OperatorSums {
    key: Key,
    ids: OperatorIds,
    /// Description and type of an operation.
    operation: [i64; 2],
    calls: u64,
    total_ns: u64,
}

impl Summand for OperatorSums {
    fn key(&self) -> Key {
        self.key
    }

    fn add(&mut self, more: &OperatorSums) {
        // Whatever is read first: the same ids name it.
        self.ids = self.ids.min(more.ids);
        self.operation = self.operation.min(more.operation);
        self.calls += more.calls;
        self.total_ns = self.total_ns.saturating_add(more.total_ns);
    }
}

/// Sums in the order in which they are shown, but for those of the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Shown {
    not_total_ns: u64,
    ids: OperatorIds,
    operation: [i64; 2],
    calls: u64,
}

/// Adds them up, as trees are walked.
pub(super) struct Operators<'trace> {
    texts: OperatorTexts<'trace>,
    hasher: RandomState,
    names: FxHashMap<TreeFrame, Named>,
    /// Around each open frame.
    open: Vec<Option<Operator>>,
    running: Option<(Operator, Key, [i64; 2], i64)>,
    by_operator: Parts<OperatorSums>,
    by_kernel: Parts<OperatorSums>,
}

impl<'trace> Operators<'trace> {
    /// None yet.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn of((trace, version): (&'trace Connection, Version)) -> Result<Operators<'trace>> {
        let noted = "SELECT N.string, A.sizes FROM ext_autogradapi A JOIN rocpd_string N ON N.id = A.autogradName_id WHERE A.api_ptr_id = ?1";
        let noted = has_table(trace, "ext_autogradapi")?.then(|| trace.prepare(noted)).transpose()?;
        Ok(Operators {
            texts: OperatorTexts { noted, names: FrameNames::of(trace, version, true)? },
            hasher: RandomState::new(),
            names: FxHashMap::default(),
            open: Vec::new(),
            running: None,
            by_operator: Parts::new(),
            by_kernel: Parts::new(),
        })
    }

    fn key(&self, text: &str) -> Key {
        [0, 1].map(|half| self.hasher.hash_one((half, text)))
    }

    fn operator(&self, name: &str, shapes: &str, ids: OperatorIds) -> Operator {
        Operator { name: self.key(name), shapes: self.key(shapes), ids }
    }

    /// The operator that the pass took off a marker.
    fn noted(&mut self, call: i64) -> Result<Option<Operator>> {
        let found = self.texts.noted(call)?;
        let ids = OperatorIds { is_call: 1, id: call };
        Ok(found.map(|(operator, shapes)| self.operator(&operator, &shapes, ids)))
    }

    /// What a frame's name is.
    fn named(&mut self, frame: TreeFrame, names: &mut FrameNames<'_>) -> Result<Named> {
        if let Some(named) = self.names.get(&frame) {
            return Ok(*named);
        }
        let named = match frame {
            TreeFrame::Marker(id) => match MarkerText::of(&names.text(frame)?) {
                MarkerText::Operator(operator) => {
                    let ids = OperatorIds { is_call: 0, id };
                    Named::Operator(self.operator(operator.name, operator.sizes.unwrap_or(""), ids))
                }
                _ => Named::Other,
            },
            TreeFrame::Operation(..) => Named::Operation(self.key(&names.text(frame)?)),
            TreeFrame::Function(_) => Named::Other,
        };
        if self.names.len() == REMEMBERED {
            self.names.clear();
        }
        self.names.insert(frame, named);
        Ok(named)
    }

    /// What was added up, by operator, then by operator, operation and shapes.
    ///
    /// # Errors
    /// When a temporary file cannot be written or read.
    pub(super) fn into_sums(self) -> Result<(OperatorTexts<'trace>, AllOperatorSums, AllOperatorSums)> {
        Ok((self.texts, AllOperatorSums::of(self.by_operator)?, AllOperatorSums::of(self.by_kernel)?))
    }
}

impl Trees for Operators<'_> {
    fn thread(&mut self, _: &Thread<'_>, _: i64) -> Result<()> {
        self.open.clear();
        Ok(())
    }

    fn enter(&mut self, names: &mut FrameNames<'_>, frame: TreeFrame, call: i64, now: i64) -> Result<()> {
        let around = self.open.last().copied().flatten();
        let noted = if matches!(frame, TreeFrame::Marker(_)) { self.noted(call)? } else { None };
        let own = match self.named(frame, names)? {
            Named::Operator(operator) => noted.or(Some(operator)),
            Named::Operation(name) => {
                let ids = if let TreeFrame::Operation(description, of) = frame {
                    [description, of]
                } else {
                    [0; 2]
                };
                self.running = around.map(|operator| (operator, name, ids, now));
                None
            }
            Named::Other => noted,
        };
        self.open.push(own.or(around));
        Ok(())
    }

    fn leave(&mut self, now: i64) -> Result<()> {
        self.open.pop();
        if let Some((operator, name, operation, begin)) = self.running.take() {
            let Operator { name: key, shapes, ids } = operator;
            let all = OperatorSums { key, ids, operation: [0; 2], calls: 1, total_ns: now.abs_diff(begin) };
            self.by_operator.add(all)?;
            let key = [0, 1].map(|half| self.hasher.hash_one((half, key, name, shapes)));
            self.by_kernel.add(OperatorSums { key, operation, ..all })?;
        }
        Ok(())
    }
}

/// The texts of operators and of what they launched.
pub(super) struct OperatorTexts<'trace> {
    /// What the pass took off a marker.
    noted: Option<Statement<'trace>>,
    names: FrameNames<'trace>,
}

impl OperatorTexts<'_> {
    fn noted(&mut self, call: i64) -> Result<Option<(String, String)>> {
        let Some(noted) = &mut self.noted else { return Ok(None) };
        let text = |row: &rusqlite::Row<'_>, column| {
            Ok::<_, rusqlite::Error>(rpd_schema::text::text_of(row.get_ref(column)?).into_owned())
        };
        Ok(noted.query_row([call], |row| Ok((text(row, 0)?, text(row, 1)?))).optional()?)
    }

    /// Name and shapes.
    fn operator(&mut self, ids: OperatorIds) -> Result<(String, String)> {
        if ids.is_call == 1 {
            return Ok(self.noted(ids.id)?.unwrap_or_default());
        }
        let text = self.names.text(TreeFrame::Marker(ids.id))?;
        Ok(match MarkerText::of(&text) {
            MarkerText::Operator(operator) => {
                (operator.name.to_string(), operator.sizes.unwrap_or("").to_string())
            }
            _ => (text, String::new()),
        })
    }
}

/// The sums of all operators, those with the most time first, then in the order of names.
pub(super) struct AllOperatorSums {
    sorted: Sorted<Shown>,
    next: Option<Shown>,
    pub(super) count: u64,
    /// Of all, ns.
    pub(super) total_ns: u64,
}

impl AllOperatorSums {
    fn of(parts: Parts<OperatorSums>) -> Result<AllOperatorSums> {
        let (mut sums, mut sorter) = (parts.sums()?, Sorter::new());
        let (mut count, mut total_ns) = (0, 0_u64);
        while let Some(OperatorSums { ids, operation, calls, total_ns: ns, .. }) = sums.next()? {
            count += 1;
            total_ns = total_ns.saturating_add(ns);
            sorter.push(Shown { not_total_ns: !ns, ids, operation, calls })?;
        }
        let mut sorted = sorter.sorted()?;
        Ok(AllOperatorSums { next: sorted.next()?, sorted, count, total_ns })
    }

    /// The rows. Kernels and shapes are left out of the sums `by_operator`.
    pub(super) fn rows(
        mut self,
        texts: &mut OperatorTexts<'_>,
        by_operator: bool,
    ) -> impl Iterator<Item = Result<OperatorKernel>> {
        let mut ready = Vec::new().into_iter();
        std::iter::from_fn(move || {
            if ready.as_slice().is_empty() {
                match self.same_time(texts, by_operator) {
                    Ok(rows) => ready = rows.into_iter(),
                    Err(error) => return Some(Err(error)),
                }
            }
            ready.next().map(Ok)
        })
    }

    /// The next ones, which have the same time; none behind the last.
    fn same_time(&mut self, texts: &mut OperatorTexts<'_>, by_operator: bool) -> Result<Vec<OperatorKernel>> {
        let Some(first) = self.next else { return Ok(Vec::new()) };
        let has_its_time = |other: &Shown| other.not_total_ns == first.not_total_ns;
        let group = self.sorted.group(&mut self.next, SAME_TIMES, has_its_time)?;
        let mut rows = Vec::with_capacity(group.len());
        for Shown { not_total_ns, ids, operation: [description, op_type], calls } in group {
            let (operator, shapes) = texts.operator(ids)?;
            let (kernel, shapes) = match by_operator {
                true => (String::new(), String::new()),
                false => (texts.names.text(TreeFrame::Operation(description, op_type))?, shapes),
            };
            rows.push(OperatorKernel { operator, kernel, shapes, calls, total_ns: !not_total_ns });
        }
        rows.sort_unstable();
        Ok(rows)
    }
}
