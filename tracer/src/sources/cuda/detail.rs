//! Details of a call beside CUPTI's record of it: its arguments, or what it allocates or waits for. It comes before or after that
//! record, by another way.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rpd_preload::memory::{self, Copied};
use rustc_hash::FxHashMap;

use super::arguments;
use super::functions::CudaFunction;
use super::record::CallDetail;

/// How many flushes it is kept for, if no record of its call comes.
const MOST_FLUSHES: u32 = 16;

/// First byte of what is kept: what follows.
const ARGUMENTS: u8 = 1;
const MEMORY: u8 = 2;
const SYNCHRONIZATION: u8 = 3;

/// Bytes of an allocation before the name of the file that asked for it, and bytes of that name at most.
const MEMORY_WORDS: usize = 8 + 8 + 4;
const LONGEST_FILE: usize = arguments::MOST - MEMORY_WORDS;

/// CUpti_ActivitySynchronizationType.
const WAITS_FOR_EVENT: u32 = 1;
const LETS_STREAM_WAIT: u32 = 2;
pub(super) const WAITS_FOR_STREAM: u32 = 3;
pub(super) const WAITS_FOR_CONTEXT: u32 = 4;

/// What is behind a call's record on its way to the file.
#[derive(Clone, Copy)]
pub(super) struct Behind {
    /// Arguments are of that function, by its number in records. Of a call that the runtime makes inside its own CUPTI has no record of its own.
    function: Option<u16>,
    length: u8,
    bytes: [u8; 1 + arguments::MOST],
}

impl Behind {
    fn of(what: u8, parts: &[&[u8]]) -> Behind {
        let mut behind = Behind { function: None, length: 1, bytes: [0; 1 + arguments::MOST] };
        behind.bytes[0] = what;
        for part in parts {
            let begin = usize::from(behind.length);
            behind.bytes[begin..begin + part.len()].copy_from_slice(part);
            behind.length += part.len() as u8;
        }
        behind
    }

    /// Arguments of that function, as [`arguments::copy`] has them.
    pub(super) fn arguments(function: u16, bytes: &[u8]) -> Behind {
        Behind { function: Some(function), ..Behind::of(ARGUMENTS, &[bytes]) }
    }

    /// By a record of CUPTI's.
    pub(super) fn detail(detail: &CallDetail) -> Behind {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        match *detail {
            CallDetail::Memory { kind, address, bytes, source } => {
                let file = file_name(source);
                let file = &file[..file.len().min(LONGEST_FILE)];
                Behind::of(MEMORY, &[&address.to_ne_bytes(), &bytes.to_ne_bytes(), &words(&[kind]), file])
            }
            CallDetail::Synchronization { kind, context, stream, event } => {
                Behind::of(SYNCHRONIZATION, &[&words(&[kind, context, stream, event])])
            }
        }
    }

    /// The stream that was waited for has this number in the file, by its context and CUPTI's number of it.
    pub(super) fn number_stream(&mut self, number: impl FnOnce(u32, u32) -> u32) {
        if self.bytes[0] != SYNCHRONIZATION {
            return;
        }
        // The words are the kind, the context, the stream and the event.
        let place = |word: usize| 1 + 4 * word..5 + 4 * word;
        let [context, stream] = [1, 2].map(|word| {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(&self.bytes[place(word)]);
            u32::from_ne_bytes(bytes)
        });
        self.bytes[place(2)].copy_from_slice(&number(context, stream).to_ne_bytes());
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// In words: `name=value | name=value`.
pub(super) fn text(function: &CudaFunction, bytes: &[u8]) -> String {
    let Some((what, bytes)) = bytes.split_first() else { return String::new() };
    let word = |place: usize| {
        let bytes = bytes.get(4 * place..4 * place + 4).and_then(|bytes| bytes.try_into().ok());
        u32::from_ne_bytes(bytes.unwrap_or_default())
    };
    let long = |place: usize| {
        let bytes = bytes.get(8 * place..8 * place + 8).and_then(|bytes| bytes.try_into().ok());
        u64::from_ne_bytes(bytes.unwrap_or_default())
    };
    match *what {
        ARGUMENTS => function.arguments.map_or_else(String::new, |known| arguments::text(known, bytes)),
        MEMORY => {
            let kind = memory_kind(word(4));
            let memory = format!("ptr={:#x} | size={:#x} | memory={kind}", long(0), long(1));
            match bytes.get(MEMORY_WORDS..) {
                Some(file) if !file.is_empty() => {
                    format!("{memory} | source={}", String::from_utf8_lossy(file))
                }
                _ => memory,
            }
        }
        SYNCHRONIZATION => match word(0) {
            WAITS_FOR_EVENT => format!("event={}", word(3)),
            LETS_STREAM_WAIT => format!("stream={:#x} | event={}", word(2), word(3)),
            WAITS_FOR_STREAM => format!("stream={:#x}", word(2)),
            WAITS_FOR_CONTEXT => format!("context={}", word(1)),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

/// The name of the file whose path lies there; nothing where no path of a file does. Nobody says for how long CUPTI keeps it: where the library
/// was closed meanwhile, anything may lie there, or no memory at all.
fn file_name(address: usize) -> Vec<u8> {
    let mut path = Vec::new();
    let mut piece = [0; 64];
    while address != 0 && path.len() < libc::PATH_MAX as usize {
        // Pieces do not cross pages: what is behind the path need not be there.
        let at = address + path.len();
        let piece = &mut piece[..64 - at % 64];
        if memory::copy(at, piece) != Copied::All {
            break;
        }
        let end = piece.iter().position(|byte| *byte == 0);
        path.extend_from_slice(&piece[..end.unwrap_or(piece.len())]);
        if end.is_some() {
            let path = Path::new(OsStr::from_bytes(&path));
            let name = path.file_name().filter(|_| path.is_absolute() && path.is_file());
            return name.map(|name| name.as_bytes().to_vec()).unwrap_or_default();
        }
    }
    Vec::new()
}

/// CUpti_ActivityMemoryKind.
fn memory_kind(kind: u32) -> &'static str {
    let names =
        ["unknown", "pageable", "pinned", "device", "array", "managed", "device_static", "managed_static"];
    names.get(kind as usize).copied().unwrap_or("unknown")
}

/// What waits for the record of its call, by CUPTI's number of it.
#[derive(Default)]
pub(super) struct Details {
    waiting: FxHashMap<u32, (u32, Behind)>,
    flushes: u32,
}

impl Details {
    /// For one call the first is kept: what a call does first it was called for. Of arguments it is the last: a call returns after those that
    /// it makes itself.
    pub(super) fn add(&mut self, call: u32, behind: Behind) {
        let (_, kept) = self.waiting.entry(call).or_insert((self.flushes, behind));
        if kept.function.is_some() && behind.function.is_some() {
            *kept = behind;
        }
    }

    /// What is known of that call of that function.
    pub(super) fn take(&mut self, call: u32, function: u16) -> Option<Behind> {
        if self.waiting.is_empty() {
            return None;
        }
        let (_, behind) = self.waiting.remove(&call)?;
        behind.function.is_none_or(|of| of == function).then_some(behind)
    }

    /// A flush is over.
    pub(super) fn flushed(&mut self) {
        self.flushes += 1;
        let now = self.flushes;
        if now.is_multiple_of(MOST_FLUSHES) {
            self.waiting.retain(|_, (came, _)| *came + MOST_FLUSHES > now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::*;
    use crate::sources::cuda::filter::CudaFilter;

    #[test]
    fn in_words() {
        let function = CudaFunction::new("cudaMalloc", &CudaFilter::default());
        let shown = |detail| text(&function, Behind::detail(&detail).bytes());
        let memory = |source: usize| CallDetail::Memory { kind: 3, address: 0x7f00, bytes: 512, source };
        let unnamed = "ptr=0x7f00 | size=0x200 | memory=device";
        assert_eq!(shown(memory(0)), unnamed);
        let path = std::env::current_exe().unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let there = CString::new(path.to_str().unwrap()).unwrap();
        assert_eq!(shown(memory(there.as_ptr() as usize)), format!("{unnamed} | source={name}"));
        // What lies there is something else by now, or nothing.
        for other in [c"a secret of the program", c"/no/such/file", c"", c"/proc"] {
            assert_eq!(shown(memory(other.as_ptr() as usize)), unnamed, "{other:?}");
        }
        assert_eq!([1, usize::MAX - 3].map(|address| shown(memory(address))), [unnamed; 2]);
        let waits = |kind| shown(CallDetail::Synchronization { kind, context: 1, stream: 13, event: 4 });
        assert_eq!([1, 2, 3, 4].map(waits), ["event=4", "stream=0xd | event=4", "stream=0xd", "context=1"]);
        assert_eq!(text(&function, &[]), "");
        assert_eq!(text(&function, &[9, 9]), "");
        let arguments: Vec<u8> = [0x10u64, 256].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(text(&function, Behind::arguments(7, &arguments).bytes()), "devPtr=0x10 | size=0x100");
    }

    #[test]
    fn what_nobody_asks_for_goes() {
        let mut details = Details::default();
        let detail = CallDetail::Synchronization { kind: WAITS_FOR_CONTEXT, context: 1, stream: 0, event: 0 };
        let behind = Behind::detail(&detail);
        details.add(7, behind);
        details.add(8, behind);
        assert!(details.take(7, 0).is_some() && details.take(7, 0).is_none());
        (0..2 * MOST_FLUSHES).for_each(|_| details.flushed());
        assert!(details.take(8, 0).is_none());
    }

    #[test]
    fn arguments_are_those_of_the_call_and_not_of_one_inside() {
        let mut details = Details::default();
        let [inner, outer] = [3u16, 4].map(|function| Behind::arguments(function, &[function as u8]));
        for call in [1, 2] {
            details.add(call, inner);
        }
        details.add(1, outer);
        assert_eq!(details.take(1, 4).map(|behind| behind.bytes().to_vec()), Some(vec![ARGUMENTS, 4]));
        assert!(details.take(2, 4).is_none(), "nobody has seen those of the outer one");
    }
}
