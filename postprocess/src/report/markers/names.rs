//! Numbers of the texts that markers have, each pair of ids looked up once.

use std::collections::HashMap;

use rusqlite::Connection;
use rustc_hash::FxHashMap;

use crate::passes::autograd::marker::MarkerText;
use crate::report::named::{NAMELESS, NameIds, NameTexts};

/// Pairs of ids that are remembered at once.
const REMEMBERED: usize = 1 << 16;

/// The texts met so far, by their numbers.
pub(super) struct Names<'trace> {
    texts: NameTexts<'trace>,
    known: FxHashMap<NameIds, usize>,
    /// Several pairs of ids may have one text.
    numbers: HashMap<Box<str>, usize>,
    /// Whether PyTorch's operators are named without their numbers and sizes.
    by_operator: bool,
}

impl Names<'_> {
    /// No names yet; their first texts are in the table `texts`. With `by_operator` those of PyTorch's operators (`aten::mm, op_id = 7`) are
    /// the operators' names alone.
    ///
    /// # Errors
    /// When there is no such table.
    pub(super) fn of<'trace>(
        trace: &'trace Connection,
        texts: &str,
        by_operator: bool,
    ) -> rusqlite::Result<Names<'trace>> {
        let texts = NameTexts::of(trace, texts)?;
        Ok(Names { texts, known: FxHashMap::default(), numbers: HashMap::new(), by_operator })
    }

    /// The number of a name.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn number(&mut self, ids: NameIds) -> rusqlite::Result<usize> {
        if let Some(number) = self.known.get(&ids) {
            return Ok(*number);
        }
        let text = self.texts.get(ids)?;
        let text = text.as_deref().unwrap_or(NAMELESS);
        let name = match MarkerText::of(text) {
            MarkerText::Operator(operator) if self.by_operator => operator.name,
            _ => text,
        };
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => {
                let next = self.numbers.len();
                self.numbers.insert(name.into(), next);
                next
            }
        };
        if self.known.len() == REMEMBERED {
            self.known.clear();
        }
        self.known.insert(ids, number);
        Ok(number)
    }

    /// The names by their numbers.
    pub(super) fn into_names(self) -> Vec<Box<str>> {
        let mut names = vec![Box::default(); self.numbers.len()];
        for (name, number) in self.numbers {
            names[number] = name;
        }
        names
    }
}
