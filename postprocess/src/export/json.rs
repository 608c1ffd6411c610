//! Texts and numbers as JSON has them.

use rpd_escape::{is_unsafe, json};

/// Appends `text` as it is between the quotes of a JSON string; what could disturb a terminal is written as `\uXXXX`.
pub(super) fn escape_into(escaped: &mut Vec<u8>, text: &str) {
    // All bytes are looked at, not only those up to the first that is not: so the compiler takes many at a time.
    let is_plain = text.bytes().fold(true, |is_plain, byte| {
        is_plain & (0x20..0x7f).contains(&byte) & (byte != b'"') & (byte != b'\\')
    });
    if is_plain {
        escaped.extend_from_slice(text.as_bytes());
        return;
    }
    for c in text.chars() {
        match c {
            '"' => escaped.extend_from_slice(b"\\\""),
            '\\' => escaped.extend_from_slice(b"\\\\"),
            '\n' => escaped.extend_from_slice(b"\\n"),
            '\t' => escaped.extend_from_slice(b"\\t"),
            c if c < ' ' => escaped.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes()),
            c if is_unsafe(c) => escaped.extend_from_slice(json(c.to_string()).as_bytes()),
            c => escaped.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Appends the digits of a number.
pub(super) fn digits(bytes: &mut Vec<u8>, number: i64) {
    bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends a time of `ns` in us: whole ones, or with three decimals; never by way of a floating-point number.
pub(super) fn microseconds(bytes: &mut Vec<u8>, ns: i64) {
    if ns < 0 {
        bytes.push(b'-');
    }
    let ns = ns.unsigned_abs();
    bytes.extend_from_slice(itoa::Buffer::new().format(ns / 1000).as_bytes());
    let rest = ns % 1000;
    if rest != 0 {
        let digit = |of: u64| b'0' + (rest / of % 10) as u8;
        bytes.extend_from_slice(&[b'.', digit(100), digit(10), digit(1)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_a_json_string_of_the_same_value() {
        let every: String = (0..0x3000_u32).filter_map(char::from_u32).collect();
        for text in ["", "plain <int, 4>", "q\"b\\s", "\u{1b}[2J\u{202e}\u{7f}\u{9b}\u{e0001}é核", &every] {
            let mut quoted = vec![b'"'];
            escape_into(&mut quoted, text);
            quoted.push(b'"');
            let escaped = String::from_utf8(quoted).unwrap();
            assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
            assert!(!escaped.chars().any(is_unsafe), "{escaped:?}");
        }
    }

    #[test]
    fn times_have_every_digit() {
        for (ns, us) in [
            (0, "0"),
            (1, "0.001"),
            (999, "0.999"),
            (1000, "1"),
            (1010, "1.010"),
            (3_489_389_197_956_317, "3489389197956.317"),
            (i64::MAX, "9223372036854775.807"),
            (-1, "-0.001"),
            (i64::MIN, "-9223372036854775.808"),
        ] {
            let mut bytes = Vec::new();
            microseconds(&mut bytes, ns);
            assert_eq!(String::from_utf8(bytes).unwrap(), us);
        }
    }
}
