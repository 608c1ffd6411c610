//! The type of a column, from its values.

use arrow_schema::DataType;

/// What a column has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Nothing but NULL.
    Null,
    /// Integers.
    Integer,
    /// Numbers.
    Real,
    /// Texts that many rows share.
    SharedText,
    /// Texts, or values of several types as texts.
    Text,
    /// Bytes that are no text.
    Bytes,
}

impl ColumnKind {
    /// The type in Arrow.
    pub(super) fn arrow(self) -> DataType {
        match self {
            ColumnKind::Null => DataType::Null,
            ColumnKind::Integer => DataType::Int64,
            ColumnKind::Real => DataType::Float64,
            ColumnKind::SharedText => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
            ColumnKind::Text => DataType::Utf8,
            ColumnKind::Bytes => DataType::Binary,
        }
    }
}

/// Which types the values of a column have.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct SeenTypes {
    pub(super) integers: bool,
    /// Integers that a floating-point number would change.
    pub(super) long_integers: bool,
    pub(super) reals: bool,
    pub(super) bytes: bool,
    /// Texts that are kept once for all rows.
    pub(super) shared_texts: bool,
    /// Texts beyond those.
    pub(super) texts: bool,
}

impl SeenTypes {
    /// Takes note of an integer.
    pub(super) fn integer(&mut self, number: i64) {
        const EXACT: u64 = 1 << 53;
        self.integers = true;
        self.long_integers |= number.unsigned_abs() > EXACT;
    }

    /// The type that holds all of them; None where there is no value.
    pub(super) fn kind(self) -> Option<ColumnKind> {
        let SeenTypes { integers, long_integers, reals, bytes, shared_texts, texts } = self;
        let has_numbers = integers || reals;
        Some(match (shared_texts || texts, bytes, has_numbers) {
            (false, false, false) => return None,
            (false, false, true) if !reals => ColumnKind::Integer,
            (false, false, true) if !long_integers => ColumnKind::Real,
            (false, true, false) => ColumnKind::Bytes,
            (true, false, false) if !texts => ColumnKind::SharedText,
            _ => ColumnKind::Text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{ColumnKind, SeenTypes};

    #[test]
    fn a_column_has_the_type_that_holds_all_its_values() {
        let of = |fill: &dyn Fn(&mut SeenTypes)| {
            let mut seen = SeenTypes::default();
            fill(&mut seen);
            seen.kind()
        };
        assert_eq!(of(&|_| {}), None);
        assert_eq!(of(&|seen| seen.integer(i64::MIN)), Some(ColumnKind::Integer));
        assert_eq!(of(&|seen| seen.reals = true), Some(ColumnKind::Real));
        let mixed = |number| {
            of(&|seen| {
                seen.integer(number);
                seen.reals = true;
            })
        };
        assert_eq!([1 << 53, (1 << 53) + 1].map(mixed), [Some(ColumnKind::Real), Some(ColumnKind::Text)]);
        assert_eq!(of(&|seen| seen.bytes = true), Some(ColumnKind::Bytes));
        assert_eq!(of(&|seen| seen.shared_texts = true), Some(ColumnKind::SharedText));
        let others: [fn(&mut SeenTypes); 3] =
            [|seen| seen.integer(1), |seen| seen.bytes = true, |seen| seen.texts = true];
        for other in others {
            let mixed = of(&|seen| {
                seen.shared_texts = true;
                other(seen);
            });
            assert_eq!(mixed, Some(ColumnKind::Text));
        }
    }
}
