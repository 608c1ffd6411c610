//! Comparing what two kernels left in a buffer.

use half::{bf16, f16};
use rpd_settings::measure::{Element, Measure};

/// The value of an element; of a part of one none.
fn value(element: Element, bytes: &[u8]) -> Option<f64> {
    match element {
        Element::Byte => bytes.first().map(|byte| f64::from(*byte)),
        Element::F16 => bytes.try_into().ok().map(|bytes| f16::from_le_bytes(bytes).to_f64()),
        Element::Bf16 => bytes.try_into().ok().map(|bytes| bf16::from_le_bytes(bytes).to_f64()),
        Element::F32 => bytes.try_into().ok().map(|bytes| f64::from(f32::from_le_bytes(bytes))),
        Element::F64 => bytes.try_into().ok().map(f64::from_le_bytes),
    }
}

/// The value of an element in words.
fn text(element: Element, bytes: &[u8]) -> String {
    match (element, value(element, bytes)) {
        (Element::F32, Some(value)) => (value as f32).to_string(),
        (Element::F16 | Element::Bf16 | Element::F64, Some(value)) => value.to_string(),
        _ => bytes.iter().fold("0x".into(), |text: String, byte| format!("{text}{byte:02x}")),
    }
}

/// Whether what both left in an element is the same by that measure.
fn are_equal(measure: Measure, original: &[u8], candidate: &[u8]) -> bool {
    if original == candidate {
        return true;
    }
    let element = measure.element;
    let Some((a, b)) = value(element, original).zip(value(element, candidate)) else { return false };
    let far = measure.tolerance * a.abs().max(b.abs()).max(1.0);
    a == b || (a.is_nan() && b.is_nan()) || (far.is_finite() && (a - b).abs() <= far)
}

/// What was found in one buffer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ComparedBuffer {
    pub(super) elements: u64,
    /// Those that the original changed.
    pub(super) written: u64,
    pub(super) different: u64,
    /// Place of the first that differs, and what both left there.
    pub(super) first: Option<(i64, [String; 2])>,
    /// The largest difference, if any is a number.
    pub(super) largest: Option<f64>,
}

impl ComparedBuffer {
    /// Adds a stretch of elements, the first of them at `place`. All three are of one length: what was there before, what the original
    /// left and what the candidate left. The bytes at the end that are no whole element count as one.
    pub(super) fn add(&mut self, measure: Measure, place: i64, stretch: [&[u8]; 3]) {
        let [before, original, candidate] = stretch;
        let size = measure.element.size();
        self.elements += original.len().div_ceil(size) as u64;
        if before == original && original == candidate {
            return;
        }
        let elements = before.chunks(size).zip(original.chunks(size)).zip(candidate.chunks(size));
        for (number, ((before, original), candidate)) in elements.enumerate() {
            self.written += u64::from(before != original);
            if are_equal(measure, original, candidate) {
                continue;
            }
            self.different += 1;
            let element = measure.element;
            self.first.get_or_insert_with(|| {
                (place + number as i64, [original, candidate].map(|bytes| text(element, bytes)))
            });
            let values = value(element, original).zip(value(element, candidate));
            let difference = values.map(|(a, b)| (a - b).abs()).filter(|difference| difference.is_finite());
            self.largest = self.largest.into_iter().chain(difference).reduce(f64::max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn numbers_within_the_tolerance_are_equal() {
        let measure = Measure::parse("f32:1e-3").unwrap();
        let equal = |a: f32, b: f32| are_equal(measure, &a.to_le_bytes(), &b.to_le_bytes());
        assert!(equal(1000.0, 1000.9) && !equal(1000.0, 1001.1), "relative to large numbers");
        assert!(equal(0.0, 0.0009) && !equal(0.0, 0.0011), "absolute for small ones");
        assert!(equal(f32::NAN, -f32::NAN) && !equal(f32::NAN, 0.0) && !equal(f32::INFINITY, f32::MAX));
        assert!(equal(f32::INFINITY, f32::INFINITY) && equal(0.0, -0.0));
        let none = Measure::parse("f32").unwrap();
        assert!(are_equal(none, &0f32.to_le_bytes(), &(-0f32).to_le_bytes()));
    }

    #[test]
    fn differences_are_counted_and_the_first_is_named() {
        let before = bytes(&[1.0, 2.0, 3.0, 4.0]);
        let (original, candidate) = (bytes(&[1.0, 5.0, 6.0, 7.0]), bytes(&[1.0, 5.0, 6.5, 4.0]));
        let mut found = ComparedBuffer::default();
        found.add(Measure::parse("f32").unwrap(), -2, [&before, &original, &candidate]);
        found.add(Measure::parse("f32").unwrap(), 2, [&before, &before, &before]);
        let first = Some((0, ["6".to_string(), "6.5".to_string()]));
        assert_eq!(
            found,
            ComparedBuffer { elements: 8, written: 3, different: 2, first, largest: Some(3.0) }
        );
    }

    #[test]
    fn values_of_all_elements() {
        for (element, a, b, values) in [
            (Element::Byte, vec![7], vec![0xfe], ["0x07", "0xfe"]),
            (Element::F16, vec![0x00, 0x3c], vec![0x00, 0xc0], ["1", "-2"]),
            (Element::Bf16, vec![0x80, 0x3f], vec![0x00, 0xc0], ["1", "-2"]),
            (Element::F64, 1f64.to_le_bytes().to_vec(), (-2f64).to_le_bytes().to_vec(), ["1", "-2"]),
        ] {
            let mut found = ComparedBuffer::default();
            found.add(Measure { element, tolerance: 0.0 }, 0, [&a, &a, &b]);
            assert_eq!(found.first, Some((0, values.map(String::from))), "{element:?}");
            assert_eq!(found.largest, Some(if element == Element::Byte { 247.0 } else { 3.0 }));
        }
    }

    #[test]
    fn a_part_of_an_element_is_compared_as_bytes() {
        let mut found = ComparedBuffer::default();
        found.add(Measure::parse("f32:1e9").unwrap(), 5, [&[1, 2], &[1, 2], &[1, 3]]);
        let first = Some((5, ["0x0102".to_string(), "0x0103".to_string()]));
        assert_eq!(found, ComparedBuffer { elements: 1, written: 0, different: 1, first, largest: None });
    }
}
