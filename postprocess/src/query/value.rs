//! Values of an answer as texts, the same in every form that has no types.

/// What SQLite has for a number that is none; it has no NaN.
#[must_use]
pub fn infinite(number: f64) -> &'static str {
    if number > 0.0 { "Inf" } else { "-Inf" }
}

/// A number with all its digits.
#[must_use]
pub fn number(number: f64) -> String {
    match serde_json::Number::from_f64(number) {
        Some(finite) => finite.to_string(),
        None => infinite(number).to_string(),
    }
}

/// Bytes that are no text as SQL writes them: `x'0a0b'`.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    format!("x'{}'", digits(bytes))
}

/// Two digits for each byte.
#[must_use]
pub fn digits(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}
