//! As what two buffers are compared: RPDT_VALIDATE_AS and `rpd record --validate-as`.

/// As what memory is compared, and how far two values may be apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// What the memory is made of.
    pub element: Element,
    /// Two numbers a and b are equal where |a - b| is not above this, nor above this times the larger of |a| and |b|. Of bytes 0.
    pub tolerance: f64,
}

/// An element of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// 8 bits.
    Byte,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl Element {
    const ALL: [Element; 5] = [Element::Byte, Element::F16, Element::Bf16, Element::F32, Element::F64];

    /// Its name in options and in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Element::Byte => "bytes",
            Element::F16 => "f16",
            Element::Bf16 => "bf16",
            Element::F32 => "f32",
            Element::F64 => "f64",
        }
    }

    /// Bytes.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Element::Byte => 1,
            Element::F16 | Element::Bf16 => 2,
            Element::F32 => 4,
            Element::F64 => 8,
        }
    }
}

impl Measure {
    /// Bytes that must be the same.
    pub const BYTES: Measure = Measure { element: Element::Byte, tolerance: 0.0 };

    /// `bytes`, or `f32` and its like with `:` and a tolerance of 0 or more; 0 where none is given.
    ///
    /// # Errors
    /// What it must be.
    pub fn parse(text: &str) -> Result<Measure, String> {
        let must = "must be bytes, f16, bf16, f32 or f64; numbers may have :TOLERANCE, such as f32:1e-5";
        let (name, tolerance) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let element = Element::ALL.into_iter().find(|element| element.name() == name).ok_or(must)?;
        let Some(tolerance) = tolerance else { return Ok(Measure { element, tolerance: 0.0 }) };
        let tolerance: f64 = tolerance.parse().map_err(|_| must)?;
        let is_possible = element != Element::Byte && tolerance >= 0.0 && tolerance.is_finite();
        if is_possible { Ok(Measure { element, tolerance }) } else { Err(must.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_option() {
        assert_eq!(Measure::parse("bytes"), Ok(Measure::BYTES));
        let f32 = |tolerance| Ok(Measure { element: Element::F32, tolerance });
        assert_eq!((Measure::parse("f32"), Measure::parse("f32:1e-5")), (f32(0.0), f32(1e-5)));
        for wrong in ["", "f8", "f32:", "f32:x", "f32:-1", "f32:inf", "f32:nan", "bytes:1", "F32", "f32:1:2"]
        {
            assert!(Measure::parse(wrong).is_err(), "{wrong}");
        }
    }
}
