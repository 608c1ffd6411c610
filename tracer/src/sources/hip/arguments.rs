//! The arguments of a call: kept as bytes when it ends, read again by the writer.
//!
//! Keeping is part of the call's cost: a few copies into a buffer on the stack, no formatting. What a call wrote to the places it was
//! given for results is kept as well; those are the application's variables, valid until the call returns.

use std::ffi::c_char;
use std::fmt::Write;
use std::mem::MaybeUninit;
use std::ptr;

use rpd_preload::memory::{self, Copied};

use super::description::{Api, ArgumentField, FieldClass, RowKind, Structure};

/// Bytes kept of one call at most.
const MOST: usize = 768;
/// Bytes kept of a text at most.
const TEXT: usize = 256;
/// No variable of a program lies below.
const FIRST_ADDRESS: u64 = 4096;

/// What is known of the call whose arguments are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CallState {
    /// It is under way: what its arguments point to is there.
    Open,
    /// It may have been left without returning: what its arguments point to may be gone. Texts are not looked at.
    MaybeLeft,
}

/// Room for the arguments of one call.
pub(super) struct Room([MaybeUninit<u8>; MOST]);

impl Room {
    #[inline]
    pub(super) fn new() -> Room {
        Room([const { MaybeUninit::uninit() }; MOST])
    }

    /// Keeps the arguments of one call to `api`.
    ///
    /// # Safety
    /// `data` is a hip_api_data_t that HIP has filled for this function, or such memory with anything in it if `call` may have been left.
    #[inline]
    pub(super) unsafe fn keep(&mut self, api: &Api, data: *const u8, call: CallState) -> &[u8] {
        match &api.plain {
            // SAFETY: the caller's promise, and the pieces are those of this function's arguments.
            Some(pieces) => unsafe { self.keep_plain(pieces, data) },
            // SAFETY: the caller's promise.
            None => unsafe { self.keep_each(api, data, call) },
        }
    }

    /// # Safety
    /// Each piece is of `data`, and together they are [`MOST`] at most.
    #[inline]
    unsafe fn keep_plain(&mut self, pieces: &[(usize, usize)], data: *const u8) -> &[u8] {
        let room = self.0.as_mut_ptr().cast::<u8>();
        let mut end = 0;
        for (offset, size) in pieces {
            // SAFETY: the caller's promise.
            unsafe { ptr::copy_nonoverlapping(data.add(*offset), room.add(end), *size) };
            end += size;
        }
        // SAFETY: so many bytes were written just now.
        unsafe { std::slice::from_raw_parts(room, end) }
    }

    /// # Safety
    /// As for [`Room::keep`].
    unsafe fn keep_each(&mut self, api: &Api, data: *const u8, call: CallState) -> &[u8] {
        self.0.fill(MaybeUninit::new(0));
        // SAFETY: filled just now.
        let room = unsafe { &mut *(&raw mut self.0).cast::<[u8; MOST]>() };
        // SAFETY: the caller's promise.
        let end = unsafe { keep_each(api, data, call, room) };
        &room[..end]
    }
}

/// The pieces of hip_api_data_t, by offset and size, that are together what is kept of these arguments. None where it takes more than to copy:
/// texts, and what arguments point to.
pub(super) fn pieces(fields: &[ArgumentField]) -> Option<Vec<(usize, usize)>> {
    let mut pieces: Vec<(usize, usize)> = vec![];
    for field in fields {
        if field.result || matches!(field.class, FieldClass::Text | FieldClass::Structure(_)) {
            return None;
        }
        let size = stored_size(field);
        match pieces.last_mut() {
            Some((offset, before)) if *offset + *before == field.offset => *before += size,
            _ => pieces.push((field.offset, size)),
        }
    }
    let all: usize = pieces.iter().map(|(_, size)| size).sum();
    (all + TEXT < MOST).then_some(pieces)
}

/// Keeps one argument after the other; how many bytes they take.
///
/// # Safety
/// As for [`Room::keep`].
unsafe fn keep_each(api: &Api, data: *const u8, call: CallState, into: &mut [u8; MOST]) -> usize {
    let mut end = 0;
    for field in &api.fields {
        let size = stored_size(field);
        if end + size.max(2 + TEXT) > MOST {
            break;
        }
        let to = &mut into[end..];
        // SAFETY: the offset is that of this argument in HIP's own structure.
        let at = unsafe { data.add(field.offset) };
        if field.class == FieldClass::Text {
            // SAFETY: as above, a pointer.
            let text = unsafe { at.cast::<*const c_char>().read_unaligned() };
            let text = if call == CallState::Open { text } else { ptr::null() };
            // SAFETY: null, or HIP has read this text in the call.
            end += unsafe { keep_text(text, to) };
            continue;
        }
        let structure = matches!(field.class, FieldClass::Structure(_));
        let from = if field.result || structure {
            // SAFETY: as above, a pointer.
            let place = unsafe { at.cast::<u64>().read_unaligned() };
            if place < FIRST_ADDRESS { ptr::null() } else { place as *const u8 }
        } else {
            at
        };
        if from.is_null() {
            to[..size].fill(0);
        } else if call == CallState::MaybeLeft && from != at {
            if memory::copy(from as usize, &mut to[..size]) != Copied::All {
                to[..size].fill(0);
            }
        } else {
            // SAFETY: an argument of that size, or the application's variable of it.
            unsafe { ptr::copy_nonoverlapping(from, to.as_mut_ptr(), size) };
        }
        end += size;
    }
    end
}

/// Length and beginning of a text.
///
/// # Safety
/// `text` is null or NUL-terminated.
unsafe fn keep_text(text: *const c_char, to: &mut [u8]) -> usize {
    let length = if (text as u64) < FIRST_ADDRESS {
        0
    } else {
        // SAFETY: the caller's promise; no byte behind the NUL is looked at.
        unsafe { libc::strnlen(text, TEXT) }
    };
    to[..2].copy_from_slice(&(length as u16).to_le_bytes());
    if length > 0 {
        // SAFETY: that many bytes are the text's.
        to[2..2 + length].copy_from_slice(unsafe { std::slice::from_raw_parts(text.cast(), length) });
    }
    2 + length
}

/// Bytes kept of `field`; of a text its length's.
fn stored_size(field: &ArgumentField) -> usize {
    match field.class {
        FieldClass::Opaque => 0,
        FieldClass::Text => 2,
        _ => field.size,
    }
}

/// The arguments of one call as they were kept.
pub(crate) struct Arguments<'a> {
    api: &'a Api,
    bytes: &'a [u8],
}

impl<'a> Arguments<'a> {
    /// What [`Room::keep`] wrote.
    pub(crate) fn new(api: &'a Api, bytes: &'a [u8]) -> Arguments<'a> {
        Arguments { api, bytes }
    }

    /// Each argument with its bytes.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&'a ArgumentField, &'a [u8])> + use<'a> {
        let mut rest = self.bytes;
        self.api.fields.iter().map_while(move |field| {
            let mut size = stored_size(field);
            if field.class == FieldClass::Text {
                size += usize::from(u16::from_le_bytes(rest.get(..2)?.try_into().ok()?));
            }
            let (bytes, behind) = rest.split_at_checked(size)?;
            rest = behind;
            Some((field, bytes))
        })
    }

    /// As `key=value | key=value`, without what is in the row that the call fills.
    pub(crate) fn text(&self) -> String {
        if let Some(keys) = spaced(self.api.name) {
            let shown = self.each().filter_map(|(field, bytes)| {
                let (_, key) = keys.iter().find(|(name, _)| *name == field.name)?;
                Some(format!("{key} = {}", Shown(field, bytes)))
            });
            return shown.collect::<Vec<_>>().join(" | ");
        }
        let in_row = matches!(self.api.row, RowKind::Kernel | RowKind::Copy { .. });
        let mut text = String::new();
        for (field, bytes) in self.each() {
            let launch_arguments = self.api.row == RowKind::Kernel && is_argument_list(field.name);
            if field.class == FieldClass::Opaque || in_row && field.role.is_some() || launch_arguments {
                continue;
            }
            if matches!(field.class, FieldClass::Structure(Structure::Launch | Structure::LaunchConfig)) {
                continue;
            }
            let separator = if text.is_empty() { "" } else { " | " };
            // Writing to a String cannot fail.
            let _ = write!(text, "{separator}{}={}", field.name, Shown(field, bytes));
        }
        text
    }
}

/// Addresses of a kernel's arguments on the caller's stack: of no use to anybody later.
fn is_argument_list(name: &str) -> bool {
    matches!(name, "args" | "kernelParams" | "params" | "extra")
}

/// Calls that readers of the format know as `key = value`, with the keys that they have there (rocmProfileData, schema 2).
fn spaced(api: &str) -> Option<&'static [(&'static str, &'static str)]> {
    Some(match api {
        "hipStreamBeginCapture" | "hipStreamBeginCapture_spt" => &[("stream", "stream"), ("mode", "mode")],
        "hipStreamEndCapture" | "hipStreamEndCapture_spt" => &[("stream", "stream"), ("pGraph", "graph")],
        "hipGraphInstantiate" | "hipGraphInstantiateWithFlags" => {
            &[("pGraphExec", "graphExec"), ("graph", "graph")]
        }
        "hipGraphLaunch" | "hipGraphLaunch_spt" => &[("graphExec", "graphExec"), ("stream", "stream")],
        _ => return None,
    })
}

/// An argument as text.
struct Shown<'a>(&'a ArgumentField, &'a [u8]);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Shown(field, bytes) = *self;
        match field.class {
            FieldClass::Pointer | FieldClass::Size => write!(to, "{:#x}", unsigned(bytes)),
            FieldClass::Unsigned => write!(to, "{}", unsigned(bytes)),
            FieldClass::Signed => write!(to, "{}", signed(bytes)),
            FieldClass::Float => match bytes.len() {
                4 => write!(to, "{}", f32::from_bits(unsigned(bytes) as u32)),
                _ => write!(to, "{}", f64::from_bits(unsigned(bytes))),
            },
            FieldClass::Dim3 => list(to, bytes.chunks(4)),
            FieldClass::Extent => list(to, bytes.chunks(8)),
            FieldClass::Text => to.write_str(&String::from_utf8_lossy(bytes.get(2..).unwrap_or_default())),
            FieldClass::Structure(_) | FieldClass::Opaque => Ok(()),
        }
    }
}

fn list<'a>(to: &mut std::fmt::Formatter<'_>, numbers: impl Iterator<Item = &'a [u8]>) -> std::fmt::Result {
    for (place, number) in numbers.enumerate() {
        write!(to, "{}{}", if place > 0 { "," } else { "" }, unsigned(number))?;
    }
    Ok(())
}

/// A number of up to 8 bytes.
pub(crate) fn unsigned(bytes: &[u8]) -> u64 {
    let mut number = [0; 8];
    let size = bytes.len().min(8);
    number[..size].copy_from_slice(&bytes[..size]);
    u64::from_le_bytes(number)
}

/// A signed number of up to 8 bytes.
fn signed(bytes: &[u8]) -> i64 {
    let shift = 64 - 8 * bytes.len().clamp(1, 8) as u32;
    (unsigned(bytes) << shift) as i64 >> shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::hip::description;

    #[test]
    fn pieces_are_what_the_arguments_are_one_by_one() {
        let data: Vec<u8> = (0..2048_u32).map(|byte| (byte * 7 / 4) as u8).collect();
        let mut plain = 0;
        for api in description::get().apis.iter().filter(|api| api.plain.is_some()) {
            let (mut room, mut each) = (Room::new(), [0; MOST]);
            // SAFETY: more data than any function has, of which no address is followed.
            let kept = unsafe { room.keep(api, data.as_ptr(), CallState::Open) };
            // SAFETY: as above.
            let end = unsafe { keep_each(api, data.as_ptr(), CallState::Open, &mut each) };
            assert_eq!(kept, &each[..end], "{}", api.name);
            plain += 1;
        }
        let find = |name: &str| description::get().apis.iter().find(|api| api.name == name).unwrap();
        assert!(plain > 200, "{plain}");
        assert_eq!(find("hipLaunchKernel").plain, Some(vec![(16, 40), (64, 16)]));
        assert_eq!(find("hipModuleLoad").plain, None, "a text");
        assert_eq!(find("hipMalloc").plain, None, "a result");
    }
}
