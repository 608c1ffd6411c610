//! Arguments of launches, copies, fills and allocations, where they are asked for (`args` in RPDT_CUDA_APIS).
//!
//! CUPTI's records of calls have none. It calls back where a call returns, and hands over a structure whose fields are the function's
//! arguments. [`FUNCTIONS`] says which of them are kept, and as what, after NVIDIA's headers of 12.0 to 13.5.

use std::ffi::c_void;
use std::fmt::Write;

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// An address, a handle or a number of bytes.
    Word,
    /// Where the function puts an address.
    Place,
    Number,
    Byte,
    /// dim3.
    Grid,
}

impl Class {
    /// Bytes, and at what they are aligned.
    const fn layout(self) -> (usize, usize) {
        match self {
            Class::Word | Class::Place => (8, 8),
            Class::Number => (4, 4),
            Class::Byte => (1, 1),
            Class::Grid => (12, 4),
        }
    }
}

/// A name, and what it is.
pub(super) type Argument = (&'static str, Class);

/// Bytes of arguments that are kept at most.
pub(super) const MOST: usize = 64;

use Class::{Byte, Grid, Number, Place, Word};

const GRID: [Argument; 6] = [
    ("gridDimX", Number),
    ("gridDimY", Number),
    ("gridDimZ", Number),
    ("blockDimX", Number),
    ("blockDimY", Number),
    ("blockDimZ", Number),
];
const DRIVER_LAUNCH: &[Argument] = &[
    ("f", Word),
    GRID[0],
    GRID[1],
    GRID[2],
    GRID[3],
    GRID[4],
    GRID[5],
    ("sharedMemBytes", Number),
    ("hStream", Word),
];
const RUNTIME_LAUNCH: &[Argument] = &[
    ("func", Word),
    ("gridDim", Grid),
    ("blockDim", Grid),
    ("args", Word),
    ("sharedMem", Word),
    ("stream", Word),
];

/// The first arguments of each function, as far as they say something.
const FUNCTIONS: &[(&str, &[Argument])] = &[
    ("cuLaunchKernel", DRIVER_LAUNCH),
    ("cuLaunchCooperativeKernel", DRIVER_LAUNCH),
    ("cuLaunchKernelEx", &[("config", Word), ("f", Word)]),
    ("cudaLaunchKernel", RUNTIME_LAUNCH),
    ("cudaLaunchCooperativeKernel", RUNTIME_LAUNCH),
    ("cudaLaunchKernelExC", &[("config", Word), ("func", Word)]),
    ("cuGraphLaunch", &[("hGraph", Word), ("hStream", Word)]),
    ("cudaGraphLaunch", &[("graphExec", Word), ("stream", Word)]),
    ("cudaMemcpy", &[("dst", Word), ("src", Word), ("count", Word), ("kind", Number)]),
    ("cudaMemcpyAsync", &[("dst", Word), ("src", Word), ("count", Word), ("kind", Number), ("stream", Word)]),
    (
        "cudaMemcpyPeerAsync",
        &[
            ("dst", Word),
            ("dstDevice", Number),
            ("src", Word),
            ("srcDevice", Number),
            ("count", Word),
            ("stream", Word),
        ],
    ),
    ("cuMemcpy", &[("dst", Word), ("src", Word), ("ByteCount", Word)]),
    ("cuMemcpyAsync", &[("dst", Word), ("src", Word), ("ByteCount", Word), ("hStream", Word)]),
    ("cuMemcpyHtoD_v2", &[("dstDevice", Word), ("srcHost", Word), ("ByteCount", Word)]),
    ("cuMemcpyDtoH_v2", &[("dstHost", Word), ("srcDevice", Word), ("ByteCount", Word)]),
    ("cuMemcpyDtoD_v2", &[("dstDevice", Word), ("srcDevice", Word), ("ByteCount", Word)]),
    (
        "cuMemcpyHtoDAsync_v2",
        &[("dstDevice", Word), ("srcHost", Word), ("ByteCount", Word), ("hStream", Word)],
    ),
    (
        "cuMemcpyDtoHAsync_v2",
        &[("dstHost", Word), ("srcDevice", Word), ("ByteCount", Word), ("hStream", Word)],
    ),
    (
        "cuMemcpyDtoDAsync_v2",
        &[("dstDevice", Word), ("srcDevice", Word), ("ByteCount", Word), ("hStream", Word)],
    ),
    ("cudaMemset", &[("devPtr", Word), ("value", Number), ("count", Word)]),
    ("cudaMemsetAsync", &[("devPtr", Word), ("value", Number), ("count", Word), ("stream", Word)]),
    ("cuMemsetD8_v2", &[("dstDevice", Word), ("uc", Byte), ("N", Word)]),
    ("cuMemsetD32_v2", &[("dstDevice", Word), ("ui", Number), ("N", Word)]),
    ("cuMemsetD8Async", &[("dstDevice", Word), ("uc", Byte), ("N", Word), ("hStream", Word)]),
    ("cuMemsetD32Async", &[("dstDevice", Word), ("ui", Number), ("N", Word), ("hStream", Word)]),
    ("cudaMalloc", &[("devPtr", Place), ("size", Word)]),
    ("cudaMallocManaged", &[("devPtr", Place), ("size", Word), ("flags", Number)]),
    ("cudaMallocAsync", &[("devPtr", Place), ("size", Word), ("hStream", Word)]),
    ("cudaFree", &[("devPtr", Word)]),
    ("cudaFreeAsync", &[("devPtr", Word), ("hStream", Word)]),
    ("cudaMallocHost", &[("ptr", Place), ("size", Word)]),
    ("cudaHostAlloc", &[("pHost", Place), ("size", Word), ("flags", Number)]),
    ("cudaFreeHost", &[("ptr", Word)]),
    ("cuMemAlloc_v2", &[("dptr", Place), ("bytesize", Word)]),
    ("cuMemAllocManaged", &[("dptr", Place), ("bytesize", Word), ("flags", Number)]),
    ("cuMemAllocAsync", &[("dptr", Place), ("bytesize", Word), ("hStream", Word)]),
    ("cuMemFree_v2", &[("dptr", Word)]),
    ("cuMemFreeAsync", &[("dptr", Word), ("hStream", Word)]),
    ("cuMemHostAlloc", &[("pp", Place), ("bytesize", Word), ("Flags", Number)]),
    ("cuMemAllocHost_v2", &[("pp", Place), ("bytesize", Word)]),
    ("cuMemFreeHost", &[("p", Word)]),
];

/// The arguments of that function that can be kept; nothing where none can.
pub(super) fn of(function: &str) -> Option<&'static [Argument]> {
    let plain = function.strip_suffix("_ptsz").or_else(|| function.strip_suffix("_ptds")).unwrap_or(function);
    FUNCTIONS.iter().find(|(name, _)| *name == plain).map(|(_, arguments)| *arguments)
}

/// Where each argument lies among the others, in C.
fn placed(arguments: &'static [Argument]) -> impl Iterator<Item = (&'static str, Class, usize)> {
    arguments.iter().scan(0usize, |end, (name, class)| {
        let (size, alignment) = class.layout();
        let begin = end.next_multiple_of(alignment);
        *end = begin + size;
        Some((*name, *class, begin))
    })
}

fn length(arguments: &'static [Argument]) -> usize {
    placed(arguments).last().map_or(0, |(_, class, begin)| begin + class.layout().0)
}

/// Copies the arguments into `bytes`; how many bytes they are. For a place, it copies what the function has put there, if it `succeeded`.
///
/// # Safety
/// `parameters` is the structure of that function's arguments, and the function has returned.
pub(super) unsafe fn copy(
    arguments: &'static [Argument],
    parameters: *const c_void,
    succeeded: bool,
    bytes: &mut [u8; MOST],
) -> usize {
    let parameters = parameters.cast::<u8>();
    let mut end = 0;
    for (_, class, begin) in placed(arguments) {
        let (size, _) = class.layout();
        end = begin + size;
        // SAFETY: the caller's promise: the structure is as long as its arguments.
        unsafe { parameters.add(begin).copy_to_nonoverlapping(bytes[begin..end].as_mut_ptr(), size) };
        if class == Place {
            let place = u64::from_ne_bytes(bytes[begin..end].try_into().unwrap_or_default());
            // SAFETY: a function that has succeeded had a place for its result.
            let result = if succeeded && place != 0 { unsafe { *(place as *const u64) } } else { 0 };
            bytes[begin..end].copy_from_slice(&result.to_ne_bytes());
        }
    }
    end
}

/// As `name=value | name=value`; empty where the bytes are not those of these arguments.
pub(super) fn text(arguments: &'static [Argument], bytes: &[u8]) -> String {
    let mut text = String::new();
    if bytes.len() != length(arguments) {
        return text;
    }
    for (name, class, begin) in placed(arguments) {
        // Where a kernel's arguments lay is of no use to anybody later.
        if name == "args" {
            continue;
        }
        let separator = if text.is_empty() { "" } else { " | " };
        let number = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
        // Writing to a String cannot fail.
        let _ = match class {
            Word | Place => {
                let word = u64::from_ne_bytes(bytes[begin..begin + 8].try_into().unwrap_or_default());
                write!(text, "{separator}{name}={word:#x}")
            }
            Number => write!(text, "{separator}{name}={}", number(begin)),
            Byte => write!(text, "{separator}{name}={}", bytes[begin]),
            Grid => {
                let [x, y, z] = [0, 4, 8].map(|axis| number(begin + axis));
                write!(text, "{separator}{name}={x},{y},{z}")
            }
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fit_and_have_names_of_their_own() {
        for (place, (name, arguments)) in FUNCTIONS.iter().enumerate() {
            assert!(length(arguments) <= MOST, "{name}");
            assert!(FUNCTIONS[..place].iter().all(|(other, _)| other != name), "{name}");
        }
        assert_eq!(of("cudaLaunchKernel_ptsz"), of("cudaLaunchKernel"));
        assert_eq!(of("cuCtxSynchronize"), None);
    }

    #[test]
    fn arguments_lie_where_c_has_them() {
        #[repr(C)]
        struct Fill {
            to: u64,
            value: u8,
            count: u64,
            stream: u64,
        }
        let fill = Fill { to: 0x7000, value: 7, count: 64, stream: 0x10 };
        let arguments = of("cuMemsetD8Async").unwrap();
        let mut bytes = [0; MOST];
        // SAFETY: laid out as that function's arguments.
        let end = unsafe { copy(arguments, (&raw const fill).cast(), true, &mut bytes) };
        assert_eq!(end, size_of::<Fill>());
        assert_eq!(text(arguments, &bytes[..end]), "dstDevice=0x7000 | uc=7 | N=0x40 | hStream=0x10");
        assert_eq!(text(arguments, &bytes[..end - 1]), "");

        #[repr(C)]
        struct Launch {
            function: u64,
            grid: [u32; 3],
            block: [u32; 3],
            arguments: u64,
            shared: u64,
            stream: u64,
        }
        let launch = Launch {
            function: 0x1,
            grid: [3, 2, 1],
            block: [64, 1, 1],
            arguments: 5,
            shared: 128,
            stream: 0,
        };
        let arguments = of("cudaLaunchKernel").unwrap();
        // SAFETY: laid out as that function's arguments.
        let end = unsafe { copy(arguments, (&raw const launch).cast(), true, &mut bytes) };
        let expected = "func=0x1 | gridDim=3,2,1 | blockDim=64,1,1 | sharedMem=0x80 | stream=0x0";
        assert_eq!(text(arguments, &bytes[..end]), expected);
    }

    #[test]
    fn a_place_is_what_was_put_there() {
        let result = 0x5000u64;
        let parameters = [(&raw const result).expose_provenance() as u64, 256];
        let arguments = of("cudaMalloc").unwrap();
        let mut bytes = [0; MOST];
        let mut copied = |succeeded| {
            // SAFETY: laid out as that function's arguments.
            let end = unsafe { copy(arguments, parameters.as_ptr().cast(), succeeded, &mut bytes) };
            text(arguments, &bytes[..end])
        };
        assert_eq!(copied(true), "devPtr=0x5000 | size=0x100");
        assert_eq!(copied(false), "devPtr=0x0 | size=0x100");
    }
}
