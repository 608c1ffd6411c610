//! The metadata note of ABI versions 3 and later: a MessagePack map with one map per kernel.
//!
//! Libraries carry notes of tens of megabytes, so the array of kernels is decoded one kernel at a time, and each is
//! measured before it is decoded: memory is bounded by the largest kernel and not by what a length field claims.

use rmp::{Marker, decode};
use rmpv::ValueRef;

use crate::{Argument, Error, Kernel};

/// Real kernels nest three deep: kernel, arguments, one argument. The decoder counts each level more than once.
const MAX_DEPTH: usize = 32;
/// Bytes of one kernel's entry. One with a hundred arguments has about 10 KB.
const MAX_VALUE: usize = 1 << 20;

/// What the note says.
pub(crate) struct Metadata {
    /// Major and minor version of the metadata itself: 1.0 for ABI version 3, 1.1 for 4, 1.2 for 5 and 6.
    pub(crate) version: Option<(u32, u32)>,
    pub(crate) kernels: Vec<Kernel>,
}

fn damaged(why: impl Into<String>) -> Error {
    Error::malformed("AMDGPU metadata", why)
}

/// Decodes the note's descriptor.
pub(crate) fn read(mut note: &[u8]) -> Result<Metadata, Error> {
    let rest = &mut note;
    let mut metadata = Metadata { version: None, kernels: Vec::new() };
    let pairs = decode::read_map_len(rest).map_err(|_| damaged("it is not a map"))?;
    for _ in 0..pairs {
        let key = value(rest)?;
        match as_text(&key) {
            Some("amdhsa.kernels") => {
                let count =
                    decode::read_array_len(rest).map_err(|_| damaged("the kernels are not an array"))?;
                for _ in 0..count {
                    metadata.kernels.push(kernel(value(rest)?)?);
                }
            }
            Some("amdhsa.version") => metadata.version = version(&value(rest)?),
            _ => skip(rest)?,
        }
    }
    Ok(metadata)
}

/// Bytes of the value that `bytes` begin with, all that is nested in it included.
fn length(bytes: &[u8], limit: usize) -> Result<usize, Error> {
    let window = &bytes[..bytes.len().min(limit)];
    let cut = || match window.len() < bytes.len() {
        true => Error::TooLarge { part: "one value of the AMDGPU metadata, in bytes,", limit },
        false => damaged("a value is cut off"),
    };
    let mut rest = window;
    let mut missing = 1_u64;
    while missing > 0 {
        let (head, payload, inside) = extent(rest)?.ok_or_else(cut)?;
        rest = usize::try_from(payload)
            .ok()
            .and_then(|payload| rest.get(head..)?.get(payload..))
            .ok_or_else(cut)?;
        // Cannot overflow: a value counts for fewer than 2^33, and takes a byte.
        missing = missing - 1 + inside;
    }
    Ok(window.len() - rest.len())
}

/// Extent of a value, less what is nested in it: bytes of marker and length field, bytes of contents, number of values
/// nested directly. `None` if the length field is cut off.
fn extent(bytes: &[u8]) -> Result<Option<(usize, u64, u64)>, Error> {
    let Some(first) = bytes.first() else { return Ok(None) };
    let field = |width: usize| {
        let field = bytes.get(1..=width)?;
        Some((1 + width, field.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))))
    };
    let contents = |width: usize, more: u64| field(width).map(|(head, length)| (head, length + more, 0));
    let nested = |width: usize, each: u64| field(width).map(|(head, length)| (head, 0, length * each));
    Ok(match Marker::from_u8(*first) {
        Marker::FixPos(_) | Marker::FixNeg(_) | Marker::Null | Marker::True | Marker::False => {
            Some((1, 0, 0))
        }
        Marker::U8 | Marker::I8 => Some((1, 1, 0)),
        Marker::U16 | Marker::I16 => Some((1, 2, 0)),
        Marker::U32 | Marker::I32 | Marker::F32 => Some((1, 4, 0)),
        Marker::U64 | Marker::I64 | Marker::F64 => Some((1, 8, 0)),
        Marker::FixStr(length) => Some((1, length.into(), 0)),
        Marker::Str8 | Marker::Bin8 => contents(1, 0),
        Marker::Str16 | Marker::Bin16 => contents(2, 0),
        Marker::Str32 | Marker::Bin32 => contents(4, 0),
        // An extension has a byte for its kind.
        Marker::FixExt1 => Some((1, 2, 0)),
        Marker::FixExt2 => Some((1, 3, 0)),
        Marker::FixExt4 => Some((1, 5, 0)),
        Marker::FixExt8 => Some((1, 9, 0)),
        Marker::FixExt16 => Some((1, 17, 0)),
        Marker::Ext8 => contents(1, 1),
        Marker::Ext16 => contents(2, 1),
        Marker::Ext32 => contents(4, 1),
        Marker::FixArray(length) => Some((1, 0, length.into())),
        Marker::Array16 => nested(2, 1),
        Marker::Array32 => nested(4, 1),
        Marker::FixMap(length) => Some((1, 0, 2 * u64::from(length))),
        Marker::Map16 => nested(2, 2),
        Marker::Map32 => nested(4, 2),
        Marker::Reserved => return Err(damaged("a value begins with the reserved byte")),
    })
}

fn value<'a>(rest: &mut &'a [u8]) -> Result<ValueRef<'a>, Error> {
    let (mut taken, after) = rest.split_at(length(rest, MAX_VALUE)?);
    *rest = after;
    rmpv::decode::read_value_ref_with_max_depth(&mut taken, MAX_DEPTH)
        .map_err(|error| damaged(error.to_string()))
}

/// Passes over a value of any size, such as the strings of printf, without decoding it.
fn skip(rest: &mut &[u8]) -> Result<(), Error> {
    *rest = &rest[length(rest, usize::MAX)?..];
    Ok(())
}

fn version(value: &ValueRef<'_>) -> Option<(u32, u32)> {
    let ValueRef::Array(parts) = value else { return None };
    let part = |at: usize| parts.get(at)?.as_u64().and_then(|part| u32::try_from(part).ok());
    Some((part(0)?, part(1)?))
}

/// A field's number, which the ABI keeps in 32 bits.
fn number(key: &str, value: &ValueRef<'_>) -> Result<u32, Error> {
    value
        .as_u64()
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(|| damaged(format!("{key} is not a number of 32 bits")))
}

/// The text of a string value; strings that are not UTF-8 are no text.
fn as_text<'a>(value: &ValueRef<'a>) -> Option<&'a str> {
    match value {
        ValueRef::String(text) => text.into_str(),
        _ => None,
    }
}

fn text(key: &str, value: &ValueRef<'_>) -> Result<String, Error> {
    as_text(value).map(str::to_string).ok_or_else(|| damaged(format!("{key} is not text")))
}

fn flag(key: &str, value: &ValueRef<'_>) -> Result<bool, Error> {
    match value {
        ValueRef::Boolean(flag) => Ok(*flag),
        // Compilers of version 3 write some flags as numbers.
        other => number(key, other).map(|number| number != 0),
    }
}

fn pairs<'a>(what: &str, value: ValueRef<'a>) -> Result<Vec<(ValueRef<'a>, ValueRef<'a>)>, Error> {
    match value {
        ValueRef::Map(pairs) => Ok(pairs),
        _ => Err(damaged(format!("{what} is not a map"))),
    }
}

fn kernel(value: ValueRef<'_>) -> Result<Kernel, Error> {
    let mut kernel = Kernel::named(String::new(), String::new());
    for (key, value) in pairs("a kernel", value)? {
        // Keys are text; an unknown one belongs to a newer compiler and is its business.
        let Some(key) = as_text(&key) else { continue };
        match key {
            ".symbol" => kernel.symbol = text(key, &value)?,
            ".name" => kernel.name = text(key, &value)?,
            ".kernarg_segment_size" => kernel.kernarg_segment_size = number(key, &value)?,
            ".kernarg_segment_align" => kernel.kernarg_segment_align = number(key, &value)?,
            ".group_segment_fixed_size" => kernel.group_segment_fixed_size = number(key, &value)?,
            ".private_segment_fixed_size" => kernel.private_segment_fixed_size = number(key, &value)?,
            ".vgpr_count" => kernel.vgpr_count = number(key, &value)?,
            ".agpr_count" => kernel.agpr_count = number(key, &value)?,
            ".sgpr_count" => kernel.sgpr_count = number(key, &value)?,
            ".vgpr_spill_count" => kernel.vgpr_spill_count = number(key, &value)?,
            ".sgpr_spill_count" => kernel.sgpr_spill_count = number(key, &value)?,
            ".wavefront_size" => kernel.wavefront_size = number(key, &value)?,
            ".max_flat_workgroup_size" => kernel.max_flat_workgroup_size = number(key, &value)?,
            ".uses_dynamic_stack" => kernel.uses_dynamic_stack = flag(key, &value)?,
            ".workgroup_processor_mode" => kernel.workgroup_processor_mode = flag(key, &value)?,
            ".reqd_workgroup_size" => kernel.reqd_workgroup_size = Some(three(key, &value)?),
            ".language" => kernel.language = Some(text(key, &value)?),
            ".args" => kernel.args = arguments(value)?,
            _ => {}
        }
    }
    match (kernel.symbol.is_empty(), kernel.name.is_empty()) {
        (true, _) => Err(damaged("a kernel has no .symbol")),
        (false, true) => {
            kernel.name = kernel.symbol.strip_suffix(".kd").unwrap_or(&kernel.symbol).to_string();
            Ok(kernel)
        }
        (false, false) => Ok(kernel),
    }
}

fn three(key: &str, value: &ValueRef<'_>) -> Result<[u32; 3], Error> {
    match value {
        ValueRef::Array(parts) if parts.len() == 3 => {
            Ok([number(key, &parts[0])?, number(key, &parts[1])?, number(key, &parts[2])?])
        }
        _ => Err(damaged(format!("{key} is not an array of three"))),
    }
}

fn arguments(value: ValueRef<'_>) -> Result<Vec<Argument>, Error> {
    let ValueRef::Array(values) = value else { return Err(damaged(".args is not an array")) };
    values.into_iter().map(argument).collect()
}

fn argument(value: ValueRef<'_>) -> Result<Argument, Error> {
    let mut argument = Argument::default();
    for (key, value) in pairs("an argument", value)? {
        let Some(key) = as_text(&key) else { continue };
        match key {
            ".name" => argument.name = Some(text(key, &value)?),
            ".type_name" => argument.type_name = Some(text(key, &value)?),
            ".offset" => argument.offset = number(key, &value)?,
            ".size" => argument.size = number(key, &value)?,
            ".value_kind" => argument.value_kind = text(key, &value)?,
            ".address_space" => argument.address_space = Some(text(key, &value)?),
            // What the optimiser found beats what the source promises.
            ".actual_access" => argument.access = Some(text(key, &value)?),
            ".access" if argument.access.is_none() => argument.access = Some(text(key, &value)?),
            ".is_const" => argument.is_const = flag(key, &value)?,
            _ => {}
        }
    }
    match argument.value_kind.is_empty() {
        true => Err(damaged("an argument has no .value_kind")),
        false => Ok(argument),
    }
}
