//! The type of a column, from its values.

use arrow_schema::DataType;

/// What a column has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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

impl Kind {
    /// The type in Arrow.
    pub(super) fn arrow(self) -> DataType {
        match self {
            Kind::Null => DataType::Null,
            Kind::Integer => DataType::Int64,
            Kind::Real => DataType::Float64,
            Kind::SharedText => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Kind::Text => DataType::Utf8,
            Kind::Bytes => DataType::Binary,
        }
    }
}

/// Which types the values of a column have.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Seen {
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

impl Seen {
    /// Takes note of an integer.
    pub(super) fn integer(&mut self, number: i64) {
        const EXACT: u64 = 1 << 53;
        self.integers = true;
        self.long_integers |= number.unsigned_abs() > EXACT;
    }

    /// The type that holds all of them; None where there is no value.
    pub(super) fn kind(self) -> Option<Kind> {
        let Seen { integers, long_integers, reals, bytes, shared_texts, texts } = self;
        let has_numbers = integers || reals;
        Some(match (shared_texts || texts, bytes, has_numbers) {
            (false, false, false) => return None,
            (false, false, true) if !reals => Kind::Integer,
            (false, false, true) if !long_integers => Kind::Real,
            (false, true, false) => Kind::Bytes,
            (true, false, false) if !texts => Kind::SharedText,
            _ => Kind::Text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Seen};

    #[test]
    fn a_column_has_the_type_that_holds_all_its_values() {
        let of = |fill: &dyn Fn(&mut Seen)| {
            let mut seen = Seen::default();
            fill(&mut seen);
            seen.kind()
        };
        assert_eq!(of(&|_| {}), None);
        assert_eq!(of(&|seen| seen.integer(i64::MIN)), Some(Kind::Integer));
        assert_eq!(of(&|seen| seen.reals = true), Some(Kind::Real));
        let mixed = |number| {
            of(&|seen| {
                seen.integer(number);
                seen.reals = true;
            })
        };
        assert_eq!([1 << 53, (1 << 53) + 1].map(mixed), [Some(Kind::Real), Some(Kind::Text)]);
        assert_eq!(of(&|seen| seen.bytes = true), Some(Kind::Bytes));
        assert_eq!(of(&|seen| seen.shared_texts = true), Some(Kind::SharedText));
        let others: [fn(&mut Seen); 3] =
            [|seen| seen.integer(1), |seen| seen.bytes = true, |seen| seen.texts = true];
        for other in others {
            let mixed = of(&|seen| {
                seen.shared_texts = true;
                other(seen);
            });
            assert_eq!(mixed, Some(Kind::Text));
        }
    }
}
