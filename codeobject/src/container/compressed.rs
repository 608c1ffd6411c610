//! Compressed offload bundles (`CCOB`): versions 1 to 3, with zlib or zstd.
//!
//! Their head says how many bytes the bundle has. It is believed up to a limit, and nothing is set aside for it before the bytes come.

use std::io::{self, BufReader, Read};
use std::ops::Range;

use flate2::read::ZlibDecoder;
use ruzstd::decoding::StreamingDecoder;

use super::read_at::ReadAt;
use crate::Error;

/// What a compressed bundle begins with.
pub(super) const MAGIC: &[u8] = b"CCOB";
const WHAT: &str = "compressed offload bundle";
/// Bytes of the longest head.
const HEAD: u64 = 32;
/// Bytes that a bundle may have, whatever it was compressed to: as many as one code object, for which it was made.
const MAX_SIZE: u64 = 2 << 30;
/// Real bundles shrink to a twentieth at most. Beyond these, a small file could fill memory.
const MAX_RATIO: u64 = 1024;
const FREE_SIZE: u64 = 16 << 20;

/// What the head says.
struct Head {
    /// Bytes of the head itself.
    length: u64,
    /// Bytes of head and compressed bytes; version 1 does not say.
    file_size: Option<u64>,
    /// Bytes of the bundle.
    size: u64,
    method: u16,
}

fn damaged(why: impl Into<String>) -> Error {
    Error::malformed(WHAT, why)
}

/// The bundle that `place` begins with, and where its compressed bytes end.
pub(super) fn bundle(file: &(impl ReadAt + ?Sized), place: Range<u64>) -> Result<(Vec<u8>, u64), Error> {
    let head = head(
        &file.read(place.start, (place.end - place.start).min(HEAD) as usize).map_err(Error::unreadable)?,
    )?;
    let start = place.start + head.length;
    let end = head.file_size.map_or(Some(place.end), |size| place.start.checked_add(size));
    let end = end
        .filter(|end| (start..=place.end).contains(end))
        .ok_or_else(|| damaged("it goes beyond the end of its file or section"))?;
    if head.size > MAX_SIZE || head.size > FREE_SIZE.max((end - start).saturating_mul(MAX_RATIO)) {
        let limit = MAX_SIZE.min(FREE_SIZE.max((end - start).saturating_mul(MAX_RATIO)));
        return Err(Error::TooLarge {
            part: "what a compressed offload bundle stands for, in bytes,",
            limit: limit as usize,
        });
    }
    let mut compressed = FileRange { file, at: start, end };
    let bytes = match head.method {
        0 => exactly(head.size, ZlibDecoder::new(BufReader::new(&mut compressed))),
        1 => {
            let decoder = StreamingDecoder::new(BufReader::new(&mut compressed));
            exactly(head.size, decoder.map_err(|error| damaged(error.to_string()))?)
        }
        method => {
            return Err(Error::Unsupported {
                what: format!("an offload bundle compressed by method {method}"),
                advice: "this knows zlib (0) and zstd (1); unpack it with clang-offload-bundler --unbundle",
            });
        }
    }?;
    // Version 1 does not say where it ends, and the decoder reads ahead: the next begins at the next page or later.
    Ok((bytes, if head.file_size.is_some() { end } else { start }))
}

fn head(bytes: &[u8]) -> Result<Head, Error> {
    let number = |at: usize, length: usize| {
        let field = bytes.get(at..at + length).ok_or_else(|| damaged("its head is cut off"))?;
        Ok(field.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    let method = number(6, 2)? as u16;
    Ok(match number(4, 2)? {
        // A hash of 8 bytes ends each.
        1 => Head { length: 20, file_size: None, size: number(8, 4)?, method },
        2 => Head { length: 24, file_size: Some(number(8, 4)?), size: number(12, 4)?, method },
        3 => Head { length: 32, file_size: Some(number(8, 8)?), size: number(16, 8)?, method },
        version => {
            return Err(Error::Unsupported {
                what: format!("a compressed offload bundle of version {version}"),
                advice: "this knows versions 1 to 3; unpack it with clang-offload-bundler --unbundle",
            });
        }
    })
}

/// The bytes of `decoder`, which must be as many as the head says.
fn exactly(size: u64, decoder: impl Read) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = decoder.take(size.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| damaged(format!("its bytes cannot be decompressed: {error}")))?;
    match (bytes.len() as u64).cmp(&size) {
        std::cmp::Ordering::Equal => Ok(bytes),
        std::cmp::Ordering::Less => Err(damaged(format!("it has {} bytes and not {size}", bytes.len()))),
        std::cmp::Ordering::Greater => Err(damaged(format!("it has more than {size} bytes"))),
    }
}

/// A stretch of a file, read from its beginning to its end.
struct FileRange<'a, B: ?Sized> {
    file: &'a B,
    at: u64,
    end: u64,
}

impl<B: ReadAt + ?Sized> Read for FileRange<'_, B> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = (self.end - self.at).min(buffer.len() as u64) as usize;
        buffer[..length].copy_from_slice(&self.file.read(self.at, length)?);
        self.at += length as u64;
        Ok(length)
    }
}
