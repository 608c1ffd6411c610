//! The arguments of a call: kept as bytes when it ends, read again by the writer.
//!
//! Kept are the registers and words of the stack that the function is passed, then its result, then what its arguments lead to: handles that it has made,
//! lengths, scalars. That memory is the program's, and is looked at where the call has succeeded, which has looked at it as well; a scalar
//! that is not on the thread's own stack only by way of the kernel.

use std::fmt::Write;

use rpd_preload::memory::{self, Copied};

use super::communicators::Communicator;
use super::description::{
    self, Argument, ArgumentClass, ArgumentPlace, Library, LibraryFunction, ReturnedNumber, Scalar,
};
use super::trampoline::Saved;
use crate::call::frame::Frame;

/// Bytes kept of one call at most.
pub(super) const MOST: usize = 768;
/// Handles of one array that are kept.
const MOST_HANDLES: u64 = 16;
/// Numbers of one array that are kept.
const MOST_NUMBERS: u64 = 4;
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

    fn has_succeeded(&self, result: u64) -> bool {
        self.status.is_some()
            && (result as i32 == 0 || self.library == Library::Nccl && result as i32 == IN_PROGRESS)
    }

    /// An argument as it was passed.
    fn value(&self, argument: &Argument, kept: &[u8]) -> Option<u64> {
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
    for (number, argument) in function.arguments.iter().enumerate().filter(|(_, argument)| !argument.hidden) {
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
            ArgumentClass::Numbers(_) => value(number.wrapping_sub(1)).unwrap_or(0).min(MOST_NUMBERS),
            ArgumentClass::Scalar(scalar) => {
                on_host.then(|| parts(scalar, function, &value)).flatten().map_or(0, |(parts, _)| parts)
            }
            _ => continue,
        };
        let size = match argument.class {
            ArgumentClass::Result(size) | ArgumentClass::Numbers(size) => size,
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
                    4 => from.cast::<u32>().read_unaligned().into(),
                    _ => from.cast::<u64>().read_unaligned(),
                }
            });
        }
    }
    room.end
}

/// Of how many numbers of how many bytes a scalar is made; nothing where that is not known, or they are of another kind than float and double.
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

/// Each argument that is shown, as it was passed, with the words that it leads to.
fn each<'a>(
    function: &'a LibraryFunction,
    kept: &'a [u8],
) -> impl Iterator<Item = (&'a Argument, u64, Words<'a>)> {
    let mut rest = kept.get(WORD * (function.passed() + 1)..).unwrap_or_default();
    function.arguments.iter().filter(|argument| !argument.hidden).map_while(move |argument| {
        let value = function.value(argument, kept)?;
        let words = match argument.class {
            ArgumentClass::Result(_)
            | ArgumentClass::Results
            | ArgumentClass::Numbers(_)
            | ArgumentClass::Scalar(_) => {
                let length = WORD * word(rest, 0).unwrap_or(0) as usize;
                let (words, behind) =
                    rest.get(WORD..).and_then(|rest| rest.split_at_checked(length)).unwrap_or_default();
                rest = behind;
                words
            }
            _ => &[][..],
        };
        Some((argument, value, words))
    })
}

/// As `key=value | key=value`, with the status where the call has failed, or the number that it returned.
pub(super) fn text(function: &LibraryFunction, kept: &[u8]) -> String {
    let mut text = String::new();
    for (argument, value, words) in each(function, kept) {
        if argument.class == ArgumentClass::Structure {
            continue;
        }
        let separator = if text.is_empty() { "" } else { " | " };
        // Writing to a String cannot fail.
        let _ = write!(text, "{separator}{}=", argument.name);
        let _ = write_value(&mut text, argument, value, words);
    }
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

fn write_value(text: &mut String, argument: &Argument, value: u64, words: Words<'_>) -> std::fmt::Result {
    let numbers = || (0..words.len() / WORD).filter_map(|place| word(words, place));
    match &argument.class {
        ArgumentClass::Signed(size) => write!(text, "{}", extended(value, *size)),
        ArgumentClass::Unsigned(size) => {
            write!(text, "{}", value & (u64::MAX >> (64 - 8 * u32::from(*size).clamp(1, 8))))
        }
        ArgumentClass::Float(4) => write!(text, "{}", f32::from_bits(value as u32)),
        ArgumentClass::Float(_) => write!(text, "{}", f64::from_bits(value)),
        ArgumentClass::Enumeration(enumeration) => write_enumeration(text, *enumeration, value as i32),
        ArgumentClass::Numbers(_) if !words.is_empty() => {
            list(text, numbers().map(|number| number.to_string()))
        }
        ArgumentClass::Result(_) | ArgumentClass::Results if !words.is_empty() => {
            list(text, numbers().map(|handle| format!("{handle:#x}")))
        }
        ArgumentClass::Scalar(scalar) if !words.is_empty() => {
            let is_double = matches!(scalar, Scalar::Real(8) | Scalar::Complex(8));
            let is_float = matches!(scalar, Scalar::Real(4) | Scalar::Complex(4));
            list(
                text,
                // The upper half of a float's word is zero; a double's is, where all of the double is.
                numbers().map(|number| match is_float || !is_double && number >> 32 == 0 {
                    true => f32::from_bits(number as u32).to_string(),
                    false => f64::from_bits(number).to_string(),
                }),
            )
        }
        _ => write!(text, "{value:#x}"),
    }
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

    /// What is kept of a call with these integers, of which those behind the sixth are on the stack.
    fn kept(name: &str, integers: &[u64], result: u64, on_host: bool) -> String {
        let place = description::get().place(name).unwrap();
        let function = &description::get().functions[place];
        // SAFETY: all-zero is a valid Saved.
        let mut saved: Saved = unsafe { std::mem::zeroed() };
        let (registers, stack) = integers.split_at(integers.len().min(6));
        saved.integers[..registers.len()].copy_from_slice(registers);
        saved.result[0] = result;
        let mut room = [0; MOST];
        // SAFETY: as many words as the function is passed.
        let length = unsafe { keep(function, &saved, stack.as_ptr(), on_host, &mut room) };
        text(function, &room[..length])
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
