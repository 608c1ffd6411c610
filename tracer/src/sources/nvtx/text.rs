//! The text of a marker, from the forms that NVTX has for it.

use std::borrow::Cow;

use super::abi::{EventAttributes, message_type, payload_type};
use crate::guard;

/// A wide string as UTF-8; what is no character becomes U+FFFD.
///
/// # Safety
/// `text` is null or ends with a 0.
pub(super) unsafe fn wide(text: *const u32) -> Vec<u8> {
    let mut out = String::new();
    if !text.is_null() {
        let mut at = text;
        // SAFETY: everything up to the 0 may be read.
        while let unit @ 1.. = unsafe { *at } {
            out.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
            // SAFETY: `at` is not yet at the 0.
            at = unsafe { at.add(1) };
        }
    }
    out.into_bytes()
}

/// The message of an event; its payload as a number where it has no message.
///
/// # Safety
/// `event` is null or leads to attributes as NVTX defines them, which stay as they are for the caller's use of the result.
pub(super) unsafe fn of_event<'a>(event: *const EventAttributes) -> Cow<'a, [u8]> {
    // SAFETY: the caller's promise: version and size are always there.
    if event.is_null() || usize::from(unsafe { (*event).size }) < size_of::<EventAttributes>() {
        return Cow::Borrowed(&[]);
    }
    // SAFETY: the structure has at least the size of ours.
    let event = unsafe { &*event };
    // SAFETY: the type says which member of the union is set; strings end with 0; handles are those that we gave.
    unsafe {
        match event.message_type {
            message_type::ASCII => Cow::Borrowed(guard::bytes(event.message.ascii)),
            message_type::UNICODE => Cow::Owned(wide(event.message.unicode)),
            message_type::REGISTERED => match event.message.registered.as_ref() {
                Some(registered) => Cow::Borrowed(&registered.0),
                None => Cow::Borrowed(&[]),
            },
            _ => Cow::Owned(payload(event).into_bytes()),
        }
    }
}

fn payload(event: &EventAttributes) -> String {
    // SAFETY: every pattern of bits is a value of each member.
    unsafe {
        match event.payload_type {
            payload_type::U64 => event.payload.u64.to_string(),
            payload_type::I64 => event.payload.i64.to_string(),
            payload_type::F64 => event.payload.f64.to_string(),
            payload_type::U32 => event.payload.u32.to_string(),
            payload_type::I32 => event.payload.i32.to_string(),
            payload_type::F32 => event.payload.f32.to_string(),
            _ => String::new(),
        }
    }
}
