//! PyTorch's operators with what they launched: by operator, operation and shapes.
//!
//! An operation belongs to the innermost operator around its launch. Where the autograd pass has taken shapes off the markers, its table
//! has them.

use anyhow::Result;
use rusqlite::{Connection, OptionalExtension, Statement};
use rustc_hash::FxHashMap;

use super::super::call_tree::{Frame, FrameNames, REMEMBERED, Thread, Trees};
use crate::passes::autograd::marker::MarkerText;
use crate::trace::has_table;

/// Operations of one operator, name and shapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OperatorKernel {
    pub(super) operator: String,
    pub(super) kernel: String,
    pub(super) shapes: String,
    pub(super) calls: u64,
    /// Sum of their durations, ns.
    pub(super) total_ns: u64,
}

/// Operator, name of the operation, and shapes, by numbers of texts.
type Key = (u32, u32, u32);

/// What a frame's name is.
#[derive(Clone, Copy)]
enum Named {
    /// A marker of an operator, with the shapes in its text.
    Operator(u32, u32),
    Operation(u32),
    Other,
}

/// Adds them up, as trees are walked.
pub(super) struct Operators<'trace> {
    /// What the pass took off a marker.
    noted: Option<Statement<'trace>>,
    texts: Vec<String>,
    numbers: FxHashMap<String, u32>,
    names: FxHashMap<Frame, Named>,
    /// Around each open frame: the operator and its shapes.
    open: Vec<Option<(u32, u32)>>,
    running: Option<(Key, i64)>,
    sums: FxHashMap<Key, (u64, u64)>,
}

impl<'trace> Operators<'trace> {
    /// None yet.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn of(trace: &'trace Connection) -> Result<Operators<'trace>> {
        let noted = "SELECT N.string, A.sizes FROM ext_autogradapi A JOIN rocpd_string N ON N.id = A.autogradName_id WHERE A.api_ptr_id = ?1";
        Ok(Operators {
            noted: has_table(trace, "ext_autogradapi")?.then(|| trace.prepare(noted)).transpose()?,
            texts: Vec::new(),
            numbers: FxHashMap::default(),
            names: FxHashMap::default(),
            open: Vec::new(),
            running: None,
            sums: FxHashMap::default(),
        })
    }

    fn text(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.to_string());
        self.numbers.insert(text.to_string(), number);
        number
    }

    /// The operator that the pass took off a marker, with its shapes.
    fn noted(&mut self, call: i64) -> Result<Option<(u32, u32)>> {
        let Some(noted) = &mut self.noted else { return Ok(None) };
        let text = |row: &rusqlite::Row<'_>, column| {
            Ok::<_, rusqlite::Error>(rpd_schema::text::text_of(row.get_ref(column)?).into_owned())
        };
        let found = noted.query_row([call], |row| Ok((text(row, 0)?, text(row, 1)?))).optional()?;
        Ok(found.map(|(operator, shapes)| (self.text(&operator), self.text(&shapes))))
    }

    /// What a frame's name is.
    fn named(&mut self, frame: Frame, names: &mut FrameNames<'_>) -> Result<Named> {
        if let Some(named) = self.names.get(&frame) {
            return Ok(*named);
        }
        let named = match frame {
            Frame::Marker(_) => match MarkerText::of(&names.text(frame)?) {
                MarkerText::Operator(operator) => {
                    Named::Operator(self.text(operator.name), self.text(operator.sizes.unwrap_or("")))
                }
                _ => Named::Other,
            },
            Frame::Operation(..) => Named::Operation(self.text(&names.text(frame)?)),
            Frame::Function(_) => Named::Other,
        };
        if self.names.len() == REMEMBERED {
            self.names.clear();
        }
        self.names.insert(frame, named);
        Ok(named)
    }

    /// What was added up, those with the most time first.
    pub(super) fn into_rows(self) -> Vec<OperatorKernel> {
        let text = |number: u32| self.texts[number as usize].clone();
        let mut rows: Vec<OperatorKernel> = self
            .sums
            .iter()
            .map(|((operator, kernel, shapes), (calls, total_ns))| OperatorKernel {
                operator: text(*operator),
                kernel: text(*kernel),
                shapes: text(*shapes),
                calls: *calls,
                total_ns: *total_ns,
            })
            .collect();
        rows.sort_by(|one, other| {
            (other.total_ns, &one.operator, &one.kernel, &one.shapes).cmp(&(
                one.total_ns,
                &other.operator,
                &other.kernel,
                &other.shapes,
            ))
        });
        rows
    }
}

impl Trees for Operators<'_> {
    fn thread(&mut self, _: &Thread<'_>, _: i64) -> Result<()> {
        self.open.clear();
        Ok(())
    }

    fn enter(&mut self, names: &mut FrameNames<'_>, frame: Frame, call: i64, now: i64) -> Result<()> {
        let around = self.open.last().copied().flatten();
        let noted = if matches!(frame, Frame::Marker(_)) { self.noted(call)? } else { None };
        let own = match self.named(frame, names)? {
            Named::Operator(operator, shapes) => noted.or(Some((operator, shapes))),
            Named::Operation(name) => {
                self.running = around.map(|(operator, shapes)| ((operator, name, shapes), now));
                None
            }
            Named::Other => noted,
        };
        self.open.push(own.or(around));
        Ok(())
    }

    fn leave(&mut self, now: i64) -> Result<()> {
        self.open.pop();
        if let Some((key, begin)) = self.running.take() {
            let (calls, total_ns) = self.sums.entry(key).or_default();
            *calls += 1;
            *total_ns = total_ns.saturating_add(now.abs_diff(begin));
        }
        Ok(())
    }
}
