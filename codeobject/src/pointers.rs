//! The places in a kernel's arguments that have addresses of buffers, or may have.

use crate::{Argument, Kernel};

/// A word of the arguments that is an address, or may be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointerPlace {
    /// Place of the argument among the explicit ones, from 0.
    pub argument: u32,
    /// Bytes from the start of the arguments.
    pub offset: u32,
    /// A pointer by its kind; otherwise 8 bytes of a value such as a structure, in which there may be one.
    pub is_pointer: bool,
}

const WORD: u32 = 8;

/// The places of a kernel whose metadata has been read, by their offsets.
///
/// # Errors
/// What else the kernel is given through which it could write: images, queues, the host's functions.
pub fn pointer_places(kernel: &Kernel) -> Result<Vec<PointerPlace>, String> {
    let mut places = Vec::new();
    let explicit = kernel.args.iter().filter(|argument| !argument.is_hidden());
    for (number, argument) in explicit.enumerate() {
        let number = number as u32;
        match argument.value_kind.as_str() {
            "global_buffer" if argument.size == WORD => {
                places.push(PointerPlace { argument: number, offset: argument.offset, is_pointer: true });
            }
            "by_value" => places.extend(words(number, argument)),
            // An offset into LDS.
            "dynamic_shared_pointer" => {}
            kind => return Err(format!("argument {number} is of the kind {kind}")),
        }
    }
    for host in ["hidden_hostcall_buffer", "hidden_printf_buffer", "hidden_default_queue"] {
        if kernel.args.iter().any(|argument| argument.value_kind == host) {
            return Err(format!("it has {host}, through which it would act twice"));
        }
    }
    Ok(places)
}

/// The aligned words of a value.
fn words(argument: u32, value: &Argument) -> impl Iterator<Item = PointerPlace> {
    let end = value.offset.saturating_add(value.size).min(crate::replacement::MOST_ARGUMENTS);
    let first = value.offset.checked_next_multiple_of(WORD).unwrap_or(u32::MAX);
    (first..end)
        .step_by(WORD as usize)
        .filter(move |offset| offset + WORD <= end)
        .map(move |offset| PointerPlace { argument, offset, is_pointer: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(arguments: &[(&str, u32, u32)]) -> Kernel {
        let argument = |(kind, offset, size): &(&str, u32, u32)| Argument {
            value_kind: kind.to_string(),
            offset: *offset,
            size: *size,
            ..Argument::default()
        };
        Kernel { args: arguments.iter().map(argument).collect(), ..Kernel::default() }
    }

    #[test]
    fn pointers_and_words_of_structures() {
        let found = pointer_places(&kernel(&[
            ("global_buffer", 0, 8),
            ("by_value", 8, 4),
            ("by_value", 12, 24),
            ("dynamic_shared_pointer", 36, 4),
            ("by_value", 40, 8),
            ("hidden_global_offset_x", 48, 8),
        ]));
        let place = |argument, offset, is_pointer| PointerPlace { argument, offset, is_pointer };
        let expected = [(0, 0, true), (2, 16, false), (2, 24, false), (4, 40, false)];
        assert_eq!(found.unwrap(), expected.map(|(number, offset, sure)| place(number, offset, sure)));
    }

    #[test]
    fn what_writes_elsewhere_is_named() {
        for (kind, said) in [
            ("image", "argument 0 is of the kind image"),
            ("hidden_hostcall_buffer", "it has hidden_hostcall_buffer, through which it would act twice"),
        ] {
            assert_eq!(pointer_places(&kernel(&[(kind, 0, 8)])).unwrap_err(), said);
        }
    }

    #[test]
    fn a_size_that_cannot_be_is_no_endless_list() {
        let found =
            pointer_places(&kernel(&[("by_value", u32::MAX - 3, u32::MAX), ("by_value", 0, u32::MAX)]));
        assert_eq!(found.unwrap().len(), (crate::replacement::MOST_ARGUMENTS / WORD) as usize);
    }
}
