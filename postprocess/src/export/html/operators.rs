//! PyTorch's operators with what they launched: by operator, operation and shapes.
//!
//! An operation belongs to the innermost operator around its launch. Where the autograd pass has taken shapes off the markers, its table
//! has them.

use anyhow::Result;
use rusqlite::{Connection, OptionalExtension, Statement};
use rustc_hash::FxHashMap;

use super::super::call_tree::{Frame, FrameNames, Thread, Trees};
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

/// Adds them up, as trees are walked.
pub(super) struct Operators<'trace> {
    /// What the pass took off a marker.
    noted: Option<Statement<'trace>>,
    texts: Vec<String>,
    numbers: FxHashMap<String, u32>,
    /// By the numbers of frames: that of the name.
    names: Vec<u32>,
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
            names: Vec::new(),
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

    /// The operator that a marker is, with its shapes.
    fn operator(&mut self, call: i64, name: u32) -> Result<Option<(u32, u32)>> {
        if let Some(noted) = &mut self.noted {
            let text = |row: &rusqlite::Row<'_>, column| {
                Ok::<_, rusqlite::Error>(rpd_schema::text::text_of(row.get_ref(column)?).into_owned())
            };
            let found = noted.query_row([call], |row| Ok((text(row, 0)?, text(row, 1)?))).optional()?;
            if let Some((operator, shapes)) = found {
                return Ok(Some((self.text(&operator), self.text(&shapes))));
            }
        }
        let marker = self.texts[name as usize].clone();
        Ok(match MarkerText::of(&marker) {
            MarkerText::Operator(operator) => {
                Some((self.text(operator.name), self.text(operator.sizes.unwrap_or(""))))
            }
            _ => None,
        })
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
            let key = |row: &OperatorKernel| (row.operator.clone(), row.kernel.clone(), row.shapes.clone());
            other.total_ns.cmp(&one.total_ns).then_with(|| key(one).cmp(&key(other)))
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
        let number = names.number(frame, |name| {
            let text = self.text(name);
            self.names.push(text);
            Ok(())
        })?;
        let name = self.names[number as usize];
        let own = match frame {
            Frame::Marker(_) => self.operator(call, name)?,
            Frame::Operation(..) => {
                self.running = around.map(|(operator, shapes)| ((operator, name, shapes), now));
                None
            }
            Frame::Function(_) => None,
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
