//! The protocol of the two processes: numbers as eight bytes, texts and bytes with their length in front.

use std::io::{self, Read, Write};

/// Nothing that is said is longer.
const MAX_LENGTH: u64 = 2 << 30;

pub(crate) fn write_number(out: &mut impl Write, number: u64) -> io::Result<()> {
    out.write_all(&number.to_le_bytes())
}

pub(crate) fn read_number(input: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

pub(crate) fn write_bytes(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    write_number(out, bytes.len() as u64)?;
    out.write_all(bytes)
}

pub(crate) fn read_bytes(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let length = read_number(input)?;
    if length > MAX_LENGTH {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    match input.take(length).read_to_end(&mut bytes)? as u64 == length {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
