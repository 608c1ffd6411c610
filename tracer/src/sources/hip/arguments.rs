//! The arguments of a call: kept as bytes when it ends, read again by the writer.
//!
//! Keeping is part of the call's cost: a few copies into a buffer on the stack, no formatting. What a call wrote to the places it was
//! given for results is kept as well; those are the application's variables, valid until the call returns.

use std::ffi::c_char;
use std::fmt::Write;
use std::ptr;

use rpd_preload::memory::{self, Copied};

use super::description::{Api, ArgumentField, FieldClass, RowKind, Structure};

/// Bytes kept of one call at most.
pub(super) const MOST: usize = 768;
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

/// Keeps the arguments of one call to `api`; how many bytes they take.
///
/// # Safety
/// `data` is a hip_api_data_t that HIP has filled for this function, or such memory with anything in it if `call` may have been left.
pub(super) unsafe fn keep(api: &Api, data: *const u8, call: CallState, into: &mut [u8; MOST]) -> usize {
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
    /// What [`keep`] wrote.
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
