//! The arguments of a call: kept as bytes when it ends, read again by the writer.
//!
//! Kept are the registers and words of the stack that the function is passed, then its result, then what its arguments lead to: handles that it has made,
//! lengths, scalars. That memory is the program's, and is looked at where the call has succeeded, which has looked at it as well; a scalar
//! that is not on the thread's own stack only by way of the kernel.

use std::fmt::Write;

use half::f16;
use rpd_preload::memory::{self, Copied};

use super::communicators::Communicator;
use super::description::{
    self, ArgumentClass, ArgumentPlace, Library, LibraryArgument, LibraryFunction, ReturnedNumber, Scalar,
};
use super::descriptors::{self, Said};
use super::trampoline::Saved;
use crate::call::frame::Frame;

/// Bytes kept of one call at most.
pub(super) const MOST: usize = 768;
/// Handles of one array that are kept.
const MOST_HANDLES: u64 = 16;
/// Numbers of one array that are kept.
const MOST_NUMBERS: u64 = 5;
/// No variable of a program lies below.
const FIRST_ADDRESS: u64 = 4096;
const WORD: usize = 8;
/// ncclInProgress: the communicator is there, and is not ready.
const IN_PROGRESS: i32 = 7;

/// Words that an argument leads to. Behind the result is kept, for each argument that leads to something, how many they are, then the words.
type Words<'a> = &'a [u8];

impl LibraryFunction {
    /// Words in front of the result.
    fn passed(&self) -> usize {
        usize::from(self.integers) + usize::from(self.floats) + usize::from(self.words)
    }

    /// Whether a call that returned `result` has done what it was asked for.
    pub(super) fn has_succeeded(&self, result: u64) -> bool {
        self.status.is_some()
            && (result as i32 == 0 || self.library == Library::Nccl && result as i32 == IN_PROGRESS)
    }

    /// An argument as it was passed.
    fn value(&self, argument: &LibraryArgument, kept: &[u8]) -> Option<u64> {
        let (integers, floats) = (usize::from(self.integers), usize::from(self.floats));
        word(
            kept,
            match argument.place {
                ArgumentPlace::Integer(register) => register.into(),
                ArgumentPlace::Float(register) => integers + usize::from(register),
                ArgumentPlace::Stack(word) => integers + floats + usize::from(word),
            },
        )
    }

    /// The argument of that name.
    fn named(&self, name: &str, kept: &[u8]) -> Option<u64> {
        let argument = self.arguments.iter().find(|argument| argument.name == name && !argument.hidden)?;
        self.value(argument, kept)
    }
}

fn word(bytes: &[u8], place: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(WORD * place..)?.first_chunk().copied()?))
}

/// Keeps the arguments of a call that is about to return; how many bytes they take. `on_host`: scalars lie in the host's memory.
///
/// # Safety
/// `saved` is of this call, whose words of the stack begin at `words`.
pub(super) unsafe fn keep(
    function: &LibraryFunction,
    saved: &Saved,
    words: *const u64,
    on_host: bool,
    into: &mut [u8; MOST],
) -> usize {
    let mut room = Room { into, end: 0 };
    for register in saved.integers.iter().take(function.integers.into()) {
        room.put(*register);
    }
    for register in saved.floats.iter().take(function.floats.into()) {
        room.put(register[0]);
    }
    for place in 0..usize::from(function.words) {
        // SAFETY: the caller's promise: the call was passed that many.
        room.put(unsafe { words.add(place).read() });
    }
    room.put(saved.result[0]);
    if !function.has_succeeded(saved.result[0]) {
        return room.end;
    }
    for number in function.leading.iter().copied() {
        let Some(argument) = function.arguments.get(number) else { continue };
        let value = |number: usize| {
            let argument = function.arguments.get(number)?;
            function.value(argument, &room.into[..room.end])
        };
        let address = value(number).unwrap_or(0);
        let count = match argument.class {
            ArgumentClass::Result(_) => 1,
            ArgumentClass::Results => {
                value(number + 1).map_or(0, |count| u64::from(count as u32)).min(MOST_HANDLES)
            }
            ArgumentClass::Numbers(_, count) => {
                value(count).map_or(0, |count| u64::from(count as u32)).min(MOST_NUMBERS)
            }
            ArgumentClass::Bits(count) => u64::from(matches!(value(count), Some(1 | 4 | 8))),
            ArgumentClass::Scalar(scalar) => {
                on_host.then(|| parts(scalar, function, &value)).flatten().map_or(0, |(parts, _)| parts)
            }
            _ => continue,
        };
        let size = match argument.class {
            ArgumentClass::Result(size) | ArgumentClass::Numbers(size, _) => size,
            ArgumentClass::Bits(count) => value(count).map_or(0, |bytes| bytes as u8),
            ArgumentClass::Scalar(scalar) => parts(scalar, function, &value).map_or(0, |(_, size)| size),
            _ => WORD as u8,
        };
        let count = if address < FIRST_ADDRESS { 0 } else { count };
        // A call that has nothing to do has not looked at its scalars: they may be anywhere.
        let mut scalar = [0; 2 * WORD];
        let from = match argument.class {
            ArgumentClass::Scalar(_) if !Frame::of_place(address as *const u8).is_on_own_stack() => {
                let bytes = &mut scalar[..count as usize * usize::from(size)];
                if memory::copy(address as usize, bytes) != Copied::All {
                    room.put(0);
                    continue;
                }
                scalar.as_ptr()
            }
            _ => address as *const u8,
        };
        room.put(count);
        for place in 0..count as usize {
            let from = from.wrapping_add(place * usize::from(size));
            // SAFETY: on this thread's stack, in the copy, or where a call that has succeeded has written or read that many of that size.
            room.put(unsafe {
                match size {
                    1 => from.read().into(),
                    2 => from.cast::<u16>().read_unaligned().into(),
                    4 => from.cast::<u32>().read_unaligned().into(),
                    _ => from.cast::<u64>().read_unaligned(),
                }
            });
        }
    }
    if function.subject.is_none() {
        return room.end;
    }
    let own = room.end;
    let mut words = [0; descriptors::MOST_WORDS];
    let mut further = 0;
    descriptors::keep(function, &room.into[..own], &mut |word| {
        if let Some(place) = words.get_mut(further) {
            (*place, further) = (word, further + 1);
        }
    });
    words[..further].iter().for_each(|word| room.put(*word));
    room.end
}

/// The number of `size` bytes that a call which has succeeded has read at `address`; nothing where it lies in no memory of the host's.
pub(super) fn real(address: u64, size: u8) -> Option<f64> {
    let mut bytes = [0; WORD];
    let bytes = bytes.get_mut(..usize::from(size))?;
    if address < FIRST_ADDRESS {
        return None;
    }
    let from = address as *const u8;
    if Frame::of_place(from).is_on_own_stack() {
        // SAFETY: on this thread's stack, where the call has read so many.
        unsafe { from.copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
    } else if memory::copy(address as usize, bytes) != Copied::All {
        return None;
    }
    match *bytes {
        [a, b] => Some(f16::from_le_bytes([a, b]).into()),
        [a, b, c, d] => Some(f32::from_le_bytes([a, b, c, d]).into()),
        _ => Some(f64::from_le_bytes((*bytes).try_into().ok()?)),
    }
}

/// What a call was given, for whoever looks for an argument by its name.
pub(super) struct Given<'a> {
    pub(super) function: &'a LibraryFunction,
    /// What [`keep`] has kept.
    pub(super) kept: &'a [u8],
}

impl Given<'_> {
    /// A number, value or address, as it was passed.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        let argument = self.argument(name)?;
        let value = self.function.value(argument, self.kept)?;
        Some(match argument.class {
            ArgumentClass::Signed(4) | ArgumentClass::Enumeration(_) => u64::from(value as u32),
            _ => value,
        })
    }

    /// The argument at that place, as it was passed.
    pub(super) fn at(&self, place: usize) -> Option<u64> {
        self.function.value(self.function.arguments.get(place)?, self.kept)
    }

    /// The name of an enumeration's value.
    pub(super) fn enumerated(&self, name: &str) -> Option<&'static str> {
        let argument = self.argument(name)?;
        let ArgumentClass::Enumeration(enumeration) = argument.class else { return None };
        description::get().value(enumeration, self.function.value(argument, self.kept)? as i32)
    }

    /// The numbers of an array.
    pub(super) fn numbers(&self, name: &str) -> Vec<u64> {
        self.words(name).map_or_else(Vec::new, |words| {
            (0..words.len() / WORD).filter_map(|place| word(words, place)).collect()
        })
    }

    /// The number that an argument leads to.
    pub(super) fn pointed(&self, name: &str) -> Option<u64> {
        word(self.words(name)?, 0)
    }

    /// The handle that the call has made or was passed first.
    pub(super) fn first_handle(&self) -> Option<u64> {
        let (argument, value, words) = each(self.function, self.kept).next()?;
        match argument.class {
            ArgumentClass::Result(_) => word(words, 0),
            _ => Some(value),
        }
    }

    fn argument(&self, name: &str) -> Option<&LibraryArgument> {
        self.function.arguments.iter().find(|argument| argument.name == name && !argument.hidden)
    }

    fn words(&self, name: &str) -> Option<Words<'_>> {
        each(self.function, self.kept).find(|(argument, ..)| argument.name == name).map(|(.., words)| words)
    }
}

/// Of how many numbers of how many bytes a scalar is made; nothing where that is not known, or they are of another kind than half precision, float and double.
fn parts(
    scalar: Scalar,
    function: &LibraryFunction,
    value: &impl Fn(usize) -> Option<u64>,
) -> Option<(u64, u8)> {
    let number = match scalar {
        Scalar::Real(size) => return Some((1, size)),
        Scalar::Complex(size) => return Some((2, size)),
        Scalar::AsArgument(number) => number,
    };
    let ArgumentClass::Enumeration(enumeration) = function.arguments.get(number)?.class else { return None };
    let name = description::get().value(enumeration, value(number)? as i32)?;
    let is = |types: &[&str]| types.iter().any(|end| name.ends_with(end));
    match () {
        () if is(&["_f16_r", "_R_16F", "COMPUTE_16F", "COMPUTE_16F_PEDANTIC"]) => Some((1, 2)),
        () if is(&["_f32_r", "_R_32F", "COMPUTE_32F", "_type_f32"]) => Some((1, 4)),
        () if is(&["_f64_r", "_R_64F", "COMPUTE_64F"]) => Some((1, 8)),
        () if is(&["_f32_c", "_C_32F"]) => Some((2, 4)),
        () if is(&["_f64_c", "_C_64F"]) => Some((2, 8)),
        () => None,
    }
}

struct Room<'a> {
    into: &'a mut [u8; MOST],
    end: usize,
}

impl Room<'_> {
    /// Nothing where there is no room: what follows is not kept either, and the reader stops there.
    fn put(&mut self, word: u64) {
        match self.into.get_mut(self.end..self.end + WORD) {
            Some(room) => {
                room.copy_from_slice(&word.to_le_bytes());
                self.end += WORD;
            }
            None => self.end = MOST,
        }
    }
}

/// What the call's descriptors say.
fn said(function: &LibraryFunction, kept: &[u8]) -> Option<Said> {
    function.subject?;
    let led_to: usize = each(function, kept)
        .filter(|(argument, ..)| argument.class.leads_to_words())
        .map(|(.., words)| WORD + words.len())
        .sum();
    let behind = kept.get(WORD * (function.passed() + 1) + led_to..)?;
    let words: Vec<u64> = (0..behind.len() / WORD).filter_map(|place| word(behind, place)).collect();
    Said::by(function, &words)
}

/// Each argument that is shown, as it was passed, with the words that it leads to.
fn each<'a>(
    function: &'a LibraryFunction,
    kept: &'a [u8],
) -> impl Iterator<Item = (&'a LibraryArgument, u64, Words<'a>)> {
    let mut rest = kept.get(WORD * (function.passed() + 1)..).unwrap_or_default();
    function.arguments.iter().filter(|argument| !argument.hidden).map_while(move |argument| {
        let value = function.value(argument, kept)?;
        let words = if argument.class.leads_to_words() {
            let length = WORD * word(rest, 0).unwrap_or(0) as usize;
            let (words, behind) =
                rest.get(WORD..).and_then(|rest| rest.split_at_checked(length)).unwrap_or_default();
            rest = behind;
            words
        } else {
            &[][..]
        };
        Some((argument, value, words))
    })
}

/// As `key=value | key=value`, with the status where the call has failed, or the number that it returned.
pub(super) fn text(function: &LibraryFunction, kept: &[u8]) -> String {
    let mut text = String::new();
    let said = said(function, kept);
    for (argument, value, words) in each(function, kept) {
        if argument.class == ArgumentClass::Structure {
            continue;
        }
        let separator = if text.is_empty() { "" } else { " | " };
        // Writing to a String cannot fail.
        let _ = write!(text, "{separator}{}=", argument.name);
        let _ = match said.as_ref().and_then(|said| said.scalar(argument.name)) {
            Some(scalar) => write!(text, "{scalar}"),
            None => match argument.class {
                ArgumentClass::Scalar(scalar) if !words.is_empty() => {
                    let value = |number: usize| function.value(function.arguments.get(number)?, kept);
                    write_scalar(
                        &mut text,
                        parts(scalar, function, &value).map_or(8, |(_, size)| size),
                        words,
                    )
                }
                _ => write_value(&mut text, argument, value, words),
            },
        };
    }
    text.push_str(said.as_ref().map_or("", |said| &said.text));
    let result = word(kept, function.passed()).unwrap_or(0);
    let separator = if text.is_empty() { "" } else { " | " };
    if let Some(status) = function.status.filter(|_| result as i32 != 0) {
        let _ = write!(text, "{separator}status=");
        let _ = write_enumeration(&mut text, status, result as i32);
    }
    let _ = match function.returns_number {
        Some(ReturnedNumber::Signed64) => write!(text, "{separator}result={}", result as i64),
        Some(ReturnedNumber::Unsigned64) => write!(text, "{separator}result={result}"),
        Some(ReturnedNumber::Unsigned32) => write!(text, "{separator}result={}", result as u32),
        None => Ok(()),
    };
    text
}

fn write_enumeration(text: &mut String, enumeration: usize, value: i32) -> std::fmt::Result {
    match description::get().value(enumeration, value) {
        Some(name) => text.write_str(name),
        None => write!(text, "{value}"),
    }
}

fn write_value(
    text: &mut String,
    argument: &LibraryArgument,
    value: u64,
    words: Words<'_>,
) -> std::fmt::Result {
    let numbers = || (0..words.len() / WORD).filter_map(|place| word(words, place));
    match &argument.class {
        ArgumentClass::Signed(size) => write!(text, "{}", extended(value, *size)),
        ArgumentClass::Unsigned(size) => {
            write!(text, "{}", value & (u64::MAX >> (64 - 8 * u32::from(*size).clamp(1, 8))))
        }
        ArgumentClass::Float(4) => write!(text, "{}", f32::from_bits(value as u32)),
        ArgumentClass::Float(_) => write!(text, "{}", f64::from_bits(value)),
        ArgumentClass::Enumeration(enumeration) => write_enumeration(text, *enumeration, value as i32),
        ArgumentClass::Numbers(..) if !words.is_empty() => {
            list(text, numbers().map(|number| number.to_string()))
        }
        ArgumentClass::Result(_) | ArgumentClass::Results if !words.is_empty() => {
            list(text, numbers().map(|handle| format!("{handle:#x}")))
        }
        _ => write!(text, "{value:#x}"),
    }
}

/// A scalar, whose parts have so many bytes.
fn write_scalar(text: &mut String, size: u8, words: Words<'_>) -> std::fmt::Result {
    let parts = (0..words.len() / WORD).filter_map(|place| word(words, place));
    list(
        text,
        parts.map(|part| match size {
            2 => f16::from_bits(part as u16).to_f32().to_string(),
            4 => f32::from_bits(part as u32).to_string(),
            _ => f64::from_bits(part).to_string(),
        }),
    )
}

fn extended(value: u64, size: u8) -> i64 {
    let shift = 64 - 8 * u32::from(size).clamp(1, 8);
    (value << shift) as i64 >> shift
}

fn list(text: &mut String, items: impl Iterator<Item = String>) -> std::fmt::Result {
    for (place, item) in items.enumerate() {
        write!(text, "{}{item}", if place > 0 { "," } else { "" })?;
    }
    Ok(())
}

/// The communicator that a call is about.
pub(super) fn communicator(function: &LibraryFunction, kept: &[u8]) -> Option<u64> {
    let is_nccl = function.library == Library::Nccl && !function.makes_communicators;
    function.named("comm", kept).filter(|_| is_nccl)
}

/// The communicators that a call has made.
pub(super) fn made_communicators(function: &LibraryFunction, kept: &[u8]) -> Vec<Communicator> {
    let number = |name| function.named(name, kept).map(|number| number as u32);
    let ranks = number("nranks").or_else(|| number("ndev")).unwrap_or(0);
    let rank = number("rank").or_else(|| number("myrank"));
    let made = each(function, kept)
        .find(|(argument, ..)| matches!(argument.class, ArgumentClass::Result(_) | ArgumentClass::Results));
    let Some((_, _, handles)) = made else { return Vec::new() };
    let handle = |place: usize| word(handles, place);
    (0..handles.len() / WORD)
        .filter_map(|place| {
            Some(Communicator { handle: handle(place)?, ranks, rank: rank.unwrap_or(place as u32) })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function, and what is kept of its call with these integers, of which those behind the sixth are on the stack.
    fn passed(
        name: &str,
        integers: &[u64],
        result: u64,
        on_host: bool,
    ) -> (&'static LibraryFunction, Vec<u8>) {
        let place = description::get().place(name, "").unwrap();
        let function = &description::get().functions[place];
        // SAFETY: all-zero is a valid Saved.
        let mut saved: Saved = unsafe { std::mem::zeroed() };
        let (registers, stack) = integers.split_at(integers.len().min(6));
        saved.integers[..registers.len()].copy_from_slice(registers);
        saved.result[0] = result;
        let mut room = [0; MOST];
        // SAFETY: as many words as the function is passed.
        let length = unsafe { keep(function, &saved, stack.as_ptr(), on_host, &mut room) };
        (function, room[..length].to_vec())
    }

    /// The text of such a call.
    fn kept(name: &str, integers: &[u64], result: u64, on_host: bool) -> String {
        let (function, bytes) = passed(name, integers, result, on_host);
        text(function, &bytes)
    }

    /// A call that is looked at for its descriptor has succeeded.
    fn note(name: &str, integers: &[u64]) {
        let (function, bytes) = passed(name, integers, 0, false);
        descriptors::note(function, &bytes);
    }

    #[test]
    fn arguments_are_words() {
        let (alpha, beta) = (2.5_f32, 0.0_f32);
        let gemm = [
            16,
            112,
            111,
            32,
            64,
            48,
            &raw const alpha as u64,
            0xa000,
            48,
            0xb000,
            48,
            &raw const beta as u64,
            0xc000,
            32,
        ];
        let text = kept("rocblas_sgemm", &gemm, 0, true);
        assert_eq!(
            text,
            "handle=0x10 | transA=rocblas_operation_transpose | transB=rocblas_operation_none | m=32 | n=64 | k=48 | alpha=2.5 | \
             A=0xa000 | lda=48 | B=0xb000 | ldb=48 | beta=0 | C=0xc000 | ldc=32"
        );
        let on_device = kept("rocblas_sgemm", &gemm, 0, false);
        assert!(
            on_device.contains(&format!("alpha={:#x} | A=0xa000", &raw const alpha as u64)),
            "{on_device}"
        );
        let failed = kept("rocblas_sgemm", &[1; 14], 4, true);
        assert!(
            failed.contains("alpha=0x1 |") && failed.ends_with(" | status=rocblas_status_invalid_size"),
            "{failed}"
        );
    }

    #[test]
    fn scalars_are_of_the_type_that_the_call_computes_in() {
        let (alpha, beta) = ([f16::from_f32(0.1).to_bits(), 0x7e00], [0xc000_u16, 0x7e00]);
        let (alpha, beta) = (alpha.as_ptr() as u64, beta.as_ptr() as u64);
        let half = [16, 111, 111, 2, 3, 4, alpha, 0xa, 2, 0xb, 4, beta, 0xc, 2];
        for (name, count) in [("rocblas_hgemm", 14), ("hipblasHgemm", 14), ("rocblas_hgemm_batched", 15)] {
            let text = kept(name, &[&half[..], &[5]].concat()[..count], 0, true);
            assert!(text.contains(" | alpha=0.099975586 | ") && text.contains(" | beta=-2 | "), "{text}");
        }
        let axpy = kept("rocblas_haxpy", &[16, 10, alpha, 0xa, 1, 0xb, 1], 0, true);
        assert!(axpy.contains("n=10 | alpha=0.099975586 | "), "{axpy}");
        // rocblas_datatype_f16_r is 150, f32_r 151, f64_r 152.
        let (one, half) = (1_f32, 0.5_f64);
        for (compute, alpha, shown) in [
            (150, alpha, "0.099975586"),
            (151, &raw const one as u64, "1"),
            (152, &raw const half as u64, "0.5"),
        ] {
            let product = [
                16, 111, 111, 2, 3, 4, alpha, 0xa, 150, 2, 0xb, 150, 4, alpha, 0xc, 150, 2, 0xd, 150, 2,
                compute, 0, 0, 0,
            ];
            let text = kept("rocblas_gemm_ex", &product, 0, true);
            let expected = [format!(" | alpha={shown} | "), format!(" | beta={shown} | ")];
            assert!(expected.iter().all(|part| text.contains(part)), "{text}");
        }
    }

    #[test]
    fn products_say_what_their_descriptors_are() {
        let set = |name: &str, handle: u64, attribute: u64, value: u64, bytes: u64| {
            note(name, &[handle, attribute, &raw const value as u64, bytes]);
        };
        let made = |name: &str, handle: u64, rest: &[u64]| {
            note(name, &[&[&raw const handle as u64], rest].concat());
        };
        let matmul = |alpha: u64, beta: u64| {
            let integers =
                [1, 0x100, alpha, 0xa, 0x200, 0xb, 0x210, beta, 0xc, 0x220, 0xd, 0x220, 0, 0, 0, 0];
            kept("hipblasLtMatmul", &integers, 0, true)
        };
        let (one, zero) = (1_f32, 0_f32);
        let scalars = || matmul(&raw const one as u64, &raw const zero as u64);
        assert!(!scalars().contains(" | m="), "no descriptor is known");
        // HIPBLAS_COMPUTE_32F, HIP_R_32F, HIP_R_16F.
        made("hipblasLtMatmulDescCreate", 0x100, &[2, 0]);
        made("hipblasLtMatrixLayoutCreate", 0x200, &[2, 48, 32, 50]);
        made("hipblasLtMatrixLayoutCreate", 0x210, &[2, 48, 64, 48]);
        made("hipblasLtMatrixLayoutCreate", 0x220, &[2, 32, 64, 32]);
        set("hipblasLtMatmulDescSetAttribute", 0x100, 0, 112, 4);
        let text = scalars();
        let expected = " | transA=HIPBLAS_OP_T | transB=HIPBLAS_OP_N | m=32 | n=64 | k=48 | a_type=HIP_R_16F | b_type=HIP_R_16F | c_type=HIP_R_16F \
                        | d_type=HIP_R_16F | compute_type=HIPBLAS_COMPUTE_32F | scale_type=HIP_R_32F | lda=50 | ldb=48 | ldc=32 | ldd=32";
        assert!(text.ends_with(expected), "{text}");
        assert!(text.contains(" | alpha=1 | ") && text.contains(" | beta=0 | "), "{text}");
        // Three of them, with bias, and scalars in the GPU's memory.
        for layout in [0x200, 0x210, 0x220] {
            set("hipblasLtMatrixLayoutSetAttribute", layout, 0, 3, 4);
            set("hipblasLtMatrixLayoutSetAttribute", layout, 1, 5000, 8);
        }
        set("hipblasLtMatmulDescSetAttribute", 0x100, 2, 4, 4);
        set("hipblasLtMatmulDescSetAttribute", 0x100, 13, 1, 4);
        let text = scalars();
        assert!(text.ends_with(" | ldd=32 | batch_count=3 | stride_a=5000 | stride_b=5000 | stride_c=5000 | stride_d=5000 | epilogue=4"), "{text}");
        assert!(text.contains(&format!("alpha={:#x} | ", &raw const one as u64)), "{text}");
        note("hipblasLtMatrixLayoutDestroy", &[0x210]);
        assert!(!scalars().contains(" | m="), "the next one there may be another");
    }

    #[test]
    fn convolutions_say_what_their_descriptors_are() {
        note("miopenSet4dTensorDescriptor", &[0x300, 1, 2, 3, 8, 16]);
        note("miopenSet4dTensorDescriptor", &[0x310, 1, 4, 3, 3, 5]);
        let (lengths, strides) = ([2_i32, 4, 6, 12], [288_i32, 1, 48, 4]);
        note("miopenSetTensorDescriptor", &[0x320, 1, 4, lengths.as_ptr() as u64, strides.as_ptr() as u64]);
        note("miopenInitConvolutionDescriptor", &[0x330, 0, 1, 2, 1, 1, 1, 1]);
        let forward = [1, 0, 0x300, 0xa, 0x310, 0xb, 0x330, 1, 0, 0x320, 0xc, 0, 0];
        let text = kept("miopenConvolutionForward", &forward, 0, true);
        let expected = " | data_type=miopenFloat | mode=miopenConvolution | in=2,3,8,16 | filter=4,3,3,5 | out=2,4,6,12 | out_layout=channels_last \
                        | pad=1,2 | stride=1,1 | dilation=1,1 | groups=1";
        assert!(text.ends_with(expected), "{text}");
        note("miopenSetConvolutionGroupCount", &[0x330, 3]);
        let (pads, others) = ([1_i32, 2, 3], [1_i32; 3]);
        let three = [pads.as_ptr() as u64, others.as_ptr() as u64, others.as_ptr() as u64];
        let weights = [1, 0, 0x320, 0xa, 0x300, 0xb, 0x330, 1, 0, 0x310, 0xc, 0, 0];
        let text = kept("miopenConvolutionBackwardWeights", &weights, 0, true);
        assert!(
            text.contains(" | in=2,3,8,16 | filter=4,3,3,5 | out=2,4,6,12 | ")
                && text.ends_with(" | groups=3"),
            "{text}"
        );
        note("miopenInitConvolutionNdDescriptor", &[&[0x330, 3], &three[..], &[0]].concat());
        let text = kept("miopenConvolutionForward", &forward, 0, true);
        assert!(text.contains(" | pad=1,2,3 | stride=1,1,1 | "), "{text}");
        note("miopenDestroyConvolutionDescriptor", &[0x330]);
        assert!(!kept("miopenConvolutionForward", &forward, 0, true).contains("filter="));
    }

    #[test]
    fn convolutions_of_cudnn_say_what_their_descriptors_are() {
        // CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF.
        note("cudnnSetTensor4dDescriptor", &[0x400, 1, 2, 2, 6, 8, 16]);
        note("cudnnSetFilter4dDescriptor", &[0x410, 2, 0, 4, 3, 3, 5]);
        let (lengths, strides) = ([2_i32, 4, 8, 14], [448_i32, 112, 14, 1]);
        note("cudnnSetTensorNdDescriptor", &[0x420, 2, 4, lengths.as_ptr() as u64, strides.as_ptr() as u64]);
        // Groups stay where the rest is set after them. CUDNN_CROSS_CORRELATION.
        note("cudnnSetConvolutionGroupCount", &[0x430, 2]);
        let forward = [1, 0, 0x400, 0xa, 0x410, 0xb, 0x430, 1, 0, 0, 0, 0x420, 0xc];
        let said = || kept("cudnnConvolutionForward", &forward, 0, true);
        assert!(!said().contains(" | in="), "it has no sizes yet");
        note("cudnnSetConvolution2dDescriptor", &[0x430, 1, 1, 1, 2, 1, 1, 1, 0]);
        let sizes = " | data_type=CUDNN_DATA_HALF | mode=CUDNN_CROSS_CORRELATION | in=2,6,8,16 | in_layout=channels_last | filter=4,3,3,5 | \
                     out=2,4,8,14 | pad=1,1 | stride=1,2 | dilation=1,1 | groups=2";
        assert!(said().ends_with(sizes), "{}", said());
        let data = [1, 0, 0x410, 0xa, 0x420, 0xb, 0x430, 1, 0, 0, 0, 0x400, 0xc];
        let filter = [1, 0, 0x400, 0xa, 0x420, 0xb, 0x430, 1, 0, 0, 0, 0x410, 0xc];
        for (name, integers) in
            [("cudnnConvolutionBackwardData", data), ("cudnnConvolutionBackwardFilter", filter)]
        {
            let text = kept(name, &integers, 0, true);
            assert!(text.ends_with(sizes), "{name}: {text}");
        }
        // Three dimensions in space.
        let volume = [[2_i32, 6, 4, 8, 16], [4, 3, 1, 3, 5], [2, 4, 4, 8, 14]];
        let of = |place: usize| volume[place].as_ptr() as u64;
        note("cudnnSetTensorNdDescriptorEx", &[0x400, 0, 0, 5, of(0)]);
        note("cudnnSetFilterNdDescriptor", &[0x410, 0, 0, 5, of(1)]);
        note("cudnnSetTensorNdDescriptorEx", &[0x420, 0, 0, 5, of(2)]);
        let spatial = [[0_i32, 1, 1], [1, 1, 2], [1, 1, 1]];
        let lists = spatial.each_ref().map(|list| list.as_ptr() as u64);
        note("cudnnSetConvolutionNdDescriptor", &[&[0x430, 3], &lists[..], &[0, 0]].concat());
        let sizes = " | data_type=CUDNN_DATA_FLOAT | mode=CUDNN_CONVOLUTION | in=2,6,4,8,16 | filter=4,3,1,3,5 | out=2,4,4,8,14 | pad=0,1,1 | \
                     stride=1,1,2 | dilation=1,1,1 | groups=2";
        assert!(said().ends_with(sizes), "{}", said());
        // More dimensions than are kept.
        let many = [1_i32; 6];
        note("cudnnSetTensorNdDescriptorEx", &[0x420, 0, 0, 6, many.as_ptr() as u64]);
        assert!(!said().contains(" | in="), "{}", said());
        note("cudnnSetTensorNdDescriptorEx", &[0x420, 0, 0, 5, of(2)]);
        note("cudnnDestroyFilterDescriptor", &[0x410]);
        assert!(!said().contains(" | in="), "its filter is gone: {}", said());
    }

    #[test]
    fn what_a_call_makes_is_named() {
        let (handles, lengths) = ([0x1000_u64, 0x2000], [64_u64, 32]);
        let all = kept("ncclCommInitAll", &[handles.as_ptr() as u64, 2, 0], 0, true);
        assert_eq!(all, "comm=0x1000,0x2000 | ndev=2 | devlist=0x0");
        let plan = [handles.as_ptr() as u64, 0, 0, 1, 2, lengths.as_ptr() as u64, 3, 0];
        let plan = kept("rocfft_plan_create", &plan, 0, true);
        assert!(plan.starts_with("plan=0x1000 | placement=rocfft_placement_inplace | "), "{plan}");
        assert!(plan.ends_with("precision=rocfft_precision_double | dimensions=2 | lengths=64,32 | number_of_transforms=3 | description=0x0"), "{plan}");
    }
}
