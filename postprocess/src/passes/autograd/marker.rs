//! The text of a marker that PyTorch's emit_nvtx pushed for an operator:
//! `NAME[, seq = S][, op_id = I][, sizes = [..]][, input_op_ids = [..]]`, at least one field, in this order.
//!
//! NAME may hold commas, so the fields are taken off from the end. A text that has the beginning of a field somewhere, but
//! cannot be taken apart and put together again to the same bytes, is a look-alike: it is not guessed at.

use std::fmt::{self, Display, Formatter};

const SEQ: &str = ", seq = ";
const OP_ID: &str = ", op_id = ";
const SIZES: &str = ", sizes = ";
const INPUT_OP_IDS: &str = ", input_op_ids = ";

/// What a marker's text is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MarkerText<'a> {
    /// Has no field of an operator.
    Plain,
    /// Has the beginning of one, but is no operator.
    LookAlike,
    /// An operator.
    Operator(Operator<'a>),
}

/// An operator and what is said of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Operator<'a> {
    /// Name, not empty.
    pub(crate) name: &'a str,
    /// Sequence number that ties forward to backward.
    pub(crate) seq: Option<i64>,
    /// Number of the call.
    pub(crate) op_id: Option<i64>,
    /// Shapes of the inputs, in brackets.
    pub(crate) sizes: Option<&'a str>,
    /// Which calls made the inputs, in brackets.
    pub(crate) input_op_ids: Option<&'a str>,
}

impl<'a> MarkerText<'a> {
    /// What this text is.
    pub(crate) fn of(text: &'a str) -> MarkerText<'a> {
        let has_field =
            |text: &str| [SEQ, OP_ID, SIZES, INPUT_OP_IDS].iter().any(|field| text.contains(field));
        if !has_field(text) {
            return MarkerText::Plain;
        }
        let mut name = text;
        let input_op_ids = take(&mut name, INPUT_OP_IDS, |value| is_list(value).then_some(value));
        let sizes = take(&mut name, SIZES, |value| is_list(value).then_some(value));
        let op_id = take(&mut name, OP_ID, number);
        let seq = take(&mut name, SEQ, number);
        if name.is_empty() || has_field(name) {
            return MarkerText::LookAlike;
        }
        MarkerText::Operator(Operator { name, seq, op_id, sizes, input_op_ids })
    }
}

/// The value of the last field, if it is this one, which goes from the text.
fn take<'a, T>(text: &mut &'a str, field: &str, value: impl Fn(&'a str) -> Option<T>) -> Option<T> {
    let (before, after) = text.rsplit_once(field)?;
    let value = value(after)?;
    *text = before;
    Some(value)
}

/// A number that is written as it would be written again.
fn number(text: &str) -> Option<i64> {
    let number: i64 = text.parse().ok()?;
    let is_canonical = text == "0" || text.starts_with(|c: char| ('1'..='9').contains(&c));
    is_canonical.then_some(number)
}

/// `[..]` with every bracket closed and no other field inside.
fn is_list(text: &str) -> bool {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' if depth == 0 => return false,
            ']' => depth -= 1,
            '=' => return false,
            _ => {}
        }
        if depth == 0 && at + 1 < text.len() {
            return false;
        }
    }
    depth == 0 && text.starts_with('[')
}

impl Display for Operator<'_> {
    /// The marker's text.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        self.seq.map_or(Ok(()), |seq| write!(f, "{SEQ}{seq}"))?;
        self.op_id.map_or(Ok(()), |op_id| write!(f, "{OP_ID}{op_id}"))?;
        self.sizes.map_or(Ok(()), |sizes| write!(f, "{SIZES}{sizes}"))?;
        self.input_op_ids.map_or(Ok(()), |ids| write!(f, "{INPUT_OP_IDS}{ids}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_of_fields_is_taken_apart_and_put_together_again() {
        for name in ["aten::mm", "a, b, c", "Optimizer.step#AdamW.step", " x ", "f(a = 1)", "核 'q\" --\n"] {
            for fields in 1..16 {
                let field = |bit: u32| fields >> bit & 1 == 1;
                let operator = Operator {
                    name,
                    seq: field(0).then_some(12),
                    op_id: field(1).then_some(0),
                    sizes: field(2).then_some("[[1, 2], [], [3]]"),
                    input_op_ids: field(3).then_some("[(7,0), (8,1)]"),
                };
                let text = operator.to_string();
                assert_eq!(MarkerText::of(&text), MarkerText::Operator(operator), "{text}");
            }
        }
    }

    #[test]
    fn look_alikes_are_not_guessed_at() {
        for text in [
            "it's, seq = not a number, op_id = x",
            "x, seq = ",
            "x, seq = 007",
            "x, seq = +7",
            "x, seq = -7",
            "x, seq = 7 ",
            "x, op_id = 9223372036854775808",
            "x, op_id = 1, seq = 2",
            "x, seq = 1, seq = 2",
            "x, seq = no, op_id = 2",
            "x, sizes = [[1, 2]",
            "x, sizes = []]",
            "x, sizes = [], []",
            "x, sizes = [a = 1]",
            "x, sizes = 5",
            ", seq = 1",
            "x, input_op_ids = [], sizes = []",
        ] {
            assert_eq!(MarkerText::of(text), MarkerText::LookAlike, "{text}");
        }
        for text in ["", "x", "x,seq = 1", "seq = 1", "x, seq=1", "forward"] {
            assert_eq!(MarkerText::of(text), MarkerText::Plain, "{text}");
        }
    }

    #[test]
    fn whatever_the_bytes_an_operator_is_its_text_again() {
        let mut state = 1_u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let parts = [
            SEQ,
            OP_ID,
            SIZES,
            INPUT_OP_IDS,
            "[",
            "]",
            "(1,0)",
            "7",
            "0",
            " ",
            ",",
            "=",
            "aten::mm",
            "é",
            "\n",
            "-",
        ];
        let mut operators = 0;
        for _ in 0..200_000 {
            let text: String = (0..random(9)).map(|_| parts[random(parts.len())]).collect();
            if let MarkerText::Operator(operator) = MarkerText::of(&text) {
                operators += 1;
                assert_eq!(operator.to_string(), text);
            }
        }
        assert!(operators > 500, "{operators}");
    }
}
