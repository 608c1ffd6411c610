//! The names of frames, by numbers.

use anyhow::Result;
use rpd_schema::Version;
use rusqlite::Connection;
use rustc_hash::FxHashMap;

use crate::passes::autograd::marker::MarkerText;
use crate::trace::Strings;
use crate::trace::marker::MARKER;

/// The name of what has none.
const NAMELESS: &str = "(no name in the file)";

/// Frames whose names' meaning is remembered at once.
pub(in crate::export) const REMEMBERED: usize = 1 << 16;

/// What a frame is named by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::export) enum TreeFrame {
    /// A function of a runtime or of the program: id of its name.
    Function(i64),
    /// A marker: id of its text.
    Marker(i64),
    /// An operation: ids of its description and, where that is empty, its type.
    Operation(i64, i64),
}

impl TreeFrame {
    pub(super) fn function(name: i64) -> TreeFrame {
        TreeFrame::Function(name)
    }

    pub(super) fn marker(text: i64) -> TreeFrame {
        TreeFrame::Marker(text)
    }

    pub(super) fn operation(description: i64, op_type: i64) -> TreeFrame {
        TreeFrame::Operation(description, op_type)
    }
}

/// Gives the names of frames numbers, equal names equal ones, until [`FrameNames::forget`].
pub(in crate::export) struct FrameNames<'trace> {
    names: Strings<'trace>,
    /// Of markers.
    texts: Strings<'trace>,
    by_operator: bool,
    known: FxHashMap<TreeFrame, u32>,
    numbers: FxHashMap<Box<str>, u32>,
    next: u32,
    bytes: usize,
}

impl<'trace> FrameNames<'trace> {
    /// Those of a trace; unless `exact`, PyTorch's operators (`aten::mm, op_id = 7`) have their names alone.
    ///
    /// # Errors
    /// When it has no texts.
    pub(in crate::export) fn of(
        trace: &'trace Connection,
        version: Version,
        exact: bool,
    ) -> Result<FrameNames<'trace>> {
        let texts = if version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" };
        Ok(FrameNames {
            names: Strings::of(trace)?,
            texts: Strings::in_table(trace, texts)?,
            by_operator: !exact,
            known: FxHashMap::default(),
            numbers: FxHashMap::default(),
            next: 0,
            bytes: 0,
        })
    }

    /// A frame's name, as it is in the trace.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(in crate::export) fn text(&mut self, frame: TreeFrame) -> Result<String> {
        let text = match frame {
            TreeFrame::Function(name) => self.names.get(name)?,
            TreeFrame::Marker(text) => self.texts.get(text)?.map(|text| {
                // As `rpd top` and `rpd markers` name it: by its function.
                if text.is_empty() { MARKER.to_string() } else { text }
            }),
            TreeFrame::Operation(description, op_type) => {
                let description = self.names.get(description)?.filter(|name| !name.is_empty());
                if description.is_some() { description } else { self.names.get(op_type)? }
            }
        };
        Ok(text.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| NAMELESS.to_string()))
    }

    /// The number of a frame's name. `new` gets the name if it has none so far.
    ///
    /// # Errors
    /// When the trace cannot be read, or what `new` fails with.
    pub(in crate::export) fn number(
        &mut self,
        frame: TreeFrame,
        new: impl FnOnce(&str) -> Result<()>,
    ) -> Result<u32> {
        if let Some(number) = self.known.get(&frame) {
            return Ok(*number);
        }
        let text = self.text(frame)?;
        let name = match (frame, MarkerText::of(&text)) {
            (TreeFrame::Marker(_), MarkerText::Operator(operator)) if self.by_operator => operator.name,
            _ => &text,
        };
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => {
                new(name)?;
                let number = self.next;
                self.next += 1;
                self.bytes += name.len() + size_of::<(Box<str>, u32)>() * 2;
                self.numbers.insert(name.into(), number);
                number
            }
        };
        if self.known.len() == REMEMBERED {
            self.known.clear();
        }
        self.known.insert(frame, number);
        Ok(number)
    }

    /// What the names take, bytes.
    pub(in crate::export) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets all names: each gets another number when it comes again.
    pub(in crate::export) fn forget(&mut self) {
        self.known.clear();
        self.numbers.clear();
        self.bytes = 0;
    }
}
