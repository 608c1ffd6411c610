//! The encoding of Protocol Buffers: fields with their numbers, one behind the other.

/// Appends a number in as many bytes as it needs.
pub(super) fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends a field with a number. Negative ones are as their 64 bits without a sign.
pub(super) fn number(bytes: &mut Vec<u8>, field: u32, value: u64) {
    varint(bytes, u64::from(field) << 3);
    varint(bytes, value);
}

/// Appends a field of 64 bits.
pub(super) fn fixed(bytes: &mut Vec<u8>, field: u32, value: u64) {
    varint(bytes, u64::from(field) << 3 | 1);
    bytes.extend_from_slice(&value.to_le_bytes());
}

/// Appends a field with a text or a message.
pub(super) fn content(bytes: &mut Vec<u8>, field: u32, content: &[u8]) {
    varint(bytes, u64::from(field) << 3 | 2);
    varint(bytes, content.len() as u64);
    bytes.extend_from_slice(content);
}

/// Appends a field with the message that `fill` appends.
pub(super) fn message(bytes: &mut Vec<u8>, field: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    varint(bytes, u64::from(field) << 3 | 2);
    let begin = bytes.len();
    fill(bytes);
    let length = bytes.len() - begin;
    varint(bytes, length as u64);
    let digits = bytes.len() - begin - length;
    bytes[begin..].rotate_right(digits);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_messages_are_as_the_encoding_has_them() {
        let mut bytes = Vec::new();
        // The examples of the encoding's specification.
        number(&mut bytes, 1, 150);
        content(&mut bytes, 2, b"testing");
        message(&mut bytes, 3, |bytes| number(bytes, 1, 150));
        assert_eq!(bytes, b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01");
        let mut bytes = Vec::new();
        fixed(&mut bytes, 47, 1);
        number(&mut bytes, 4, -2_i64 as u64);
        assert_eq!(
            bytes,
            b"\xf9\x02\x01\0\0\0\0\0\0\0\x20\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01".as_slice()
        );
        let mut long = Vec::new();
        message(&mut long, 1, |bytes| content(bytes, 2, &[7; 300]));
        assert_eq!(long[..6], [0x0a, 0xaf, 0x02, 0x12, 0xac, 0x02]);
        assert_eq!(long.len(), 306);
    }
}
