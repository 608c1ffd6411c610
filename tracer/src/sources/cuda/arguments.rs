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
    /// A word of a structure that means something under that condition. Otherwise the program need not have set it: it is left out.
    Where(Condition),
    /// Where the function puts an address.
    Place,
    /// What no reader of the file can use: it is not kept.
    Unused,
    Number,
    Byte,
    /// dim3.
    Grid,
    /// The address of a structure of which these fields are kept.
    Structure(&'static [Member]),
}

/// What another field of the same structure is, so many bytes into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// CU_MEMORYTYPE_HOST.
    Host(usize),
    /// CU_MEMORYTYPE_DEVICE or CU_MEMORYTYPE_UNIFIED.
    Device(usize),
    /// Null: there is no array.
    NoArray(usize),
}

impl Condition {
    /// # Safety
    /// `structure` points to one that has the field.
    unsafe fn holds(self, structure: *const u8) -> bool {
        // SAFETY: the caller's promise; the fields are so long.
        unsafe {
            match self {
                Condition::Host(place) => structure.add(place).cast::<u32>().read_unaligned() == 1,
                Condition::Device(place) => {
                    matches!(structure.add(place).cast::<u32>().read_unaligned(), 2 | 4)
                }
                Condition::NoArray(place) => structure.add(place).cast::<u64>().read_unaligned() == 0,
            }
        }
    }
}

impl Class {
    /// Bytes, and at what they are aligned, among the function's arguments.
    const fn layout(self) -> (usize, usize) {
        match self {
            Word | Where(_) | Place | Unused | Structure(_) => (8, 8),
            Number => (4, 4),
            Byte => (1, 1),
            Grid => (12, 4),
        }
    }
}

/// A name, and what it is.
pub(super) type Argument = (&'static str, Class);

/// A field of a structure: what it is, and how many bytes it lies behind the structure's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member(&'static str, Class, usize);

/// Bytes of arguments that are kept at most.
pub(super) const MOST: usize = 80;

use Class::{Byte, Grid, Number, Place, Structure, Unused, Where, Word};
use Condition::{Device, Host, NoArray};

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
    ("args", Unused),
    ("sharedMem", Word),
    ("stream", Word),
];
/// CUlaunchConfig.
const DRIVER_CONFIG: Class = Structure(&[
    Member("gridDimX", Number, 0),
    Member("gridDimY", Number, 4),
    Member("gridDimZ", Number, 8),
    Member("blockDimX", Number, 12),
    Member("blockDimY", Number, 16),
    Member("blockDimZ", Number, 20),
    Member("sharedMemBytes", Number, 24),
    Member("hStream", Word, 32),
]);
/// cudaLaunchConfig_t.
const RUNTIME_CONFIG: Class = Structure(&[
    Member("gridDim", Grid, 0),
    Member("blockDim", Grid, 12),
    Member("dynamicSmemBytes", Word, 24),
    Member("stream", Word, 32),
]);
/// CUDA_MEMCPY2D.
const RECTANGLE: Class = Structure(&[
    Member("srcMemoryType", Number, 16),
    Member("srcHost", Where(Host(16)), 24),
    Member("srcDevice", Where(Device(16)), 32),
    Member("dstMemoryType", Number, 72),
    Member("dstHost", Where(Host(72)), 80),
    Member("dstDevice", Where(Device(72)), 88),
    Member("WidthInBytes", Word, 112),
    Member("Height", Word, 120),
]);
/// CUDA_MEMCPY3D.
const BOX: Class = Structure(&[
    Member("srcMemoryType", Number, 32),
    Member("srcHost", Where(Host(32)), 40),
    Member("srcDevice", Where(Device(32)), 48),
    Member("dstMemoryType", Number, 120),
    Member("dstHost", Where(Host(120)), 128),
    Member("dstDevice", Where(Device(120)), 136),
    Member("WidthInBytes", Word, 176),
    Member("Height", Word, 184),
    Member("Depth", Word, 192),
]);
/// cudaMemcpy3DParms.
const RUNTIME_BOX: Class = Structure(&[
    Member("srcPtr.ptr", Where(NoArray(0)), 32),
    Member("srcPtr.pitch", Where(NoArray(0)), 40),
    Member("dstPtr.ptr", Where(NoArray(64)), 96),
    Member("dstPtr.pitch", Where(NoArray(64)), 104),
    Member("extent.width", Word, 128),
    Member("extent.height", Word, 136),
    Member("extent.depth", Word, 144),
    Member("kind", Number, 152),
]);
const RUNTIME_RECTANGLE: [Argument; 8] = [
    ("dst", Word),
    ("dpitch", Word),
    ("src", Word),
    ("spitch", Word),
    ("width", Word),
    ("height", Word),
    ("kind", Number),
    ("stream", Word),
];
const RUNTIME_FILL: [Argument; 6] = [
    ("devPtr", Word),
    ("pitch", Word),
    ("value", Number),
    ("width", Word),
    ("height", Word),
    ("stream", Word),
];
const PEER: [Argument; 6] = [
    ("dst", Word),
    ("dstDevice", Number),
    ("src", Word),
    ("srcDevice", Number),
    ("count", Word),
    ("stream", Word),
];
const DRIVER_PEER: [Argument; 6] = [
    ("dstDevice", Word),
    ("dstContext", Word),
    ("srcDevice", Word),
    ("srcContext", Word),
    ("ByteCount", Word),
    ("hStream", Word),
];
/// `fill` is a byte or a number.
const fn driver_fill(fill: Argument) -> [Argument; 6] {
    [("dstDevice", Word), ("dstPitch", Word), fill, ("Width", Word), ("Height", Word), ("hStream", Word)]
}
const BYTES_OF_ROWS: [Argument; 6] = driver_fill(("uc", Byte));
const NUMBERS_OF_ROWS: [Argument; 6] = driver_fill(("ui", Number));

/// The first arguments of each function, as far as they say something.
const FUNCTIONS: &[(&str, &[Argument])] = &[
    ("cuLaunchKernel", DRIVER_LAUNCH),
    ("cuLaunchCooperativeKernel", DRIVER_LAUNCH),
    ("cuLaunchKernelEx", &[("config", DRIVER_CONFIG), ("f", Word)]),
    ("cudaLaunchKernel", RUNTIME_LAUNCH),
    ("cudaLaunchCooperativeKernel", RUNTIME_LAUNCH),
    ("cudaLaunchKernelExC", &[("config", RUNTIME_CONFIG), ("func", Word)]),
    ("cuGraphLaunch", &[("hGraph", Word), ("hStream", Word)]),
    ("cudaGraphLaunch", &[("graphExec", Word), ("stream", Word)]),
    ("cudaMemcpy", &[("dst", Word), ("src", Word), ("count", Word), ("kind", Number)]),
    ("cudaMemcpyAsync", &[("dst", Word), ("src", Word), ("count", Word), ("kind", Number), ("stream", Word)]),
    ("cudaMemcpyPeer", PEER.split_at(5).0),
    ("cudaMemcpyPeerAsync", &PEER),
    ("cudaMemcpy2D", RUNTIME_RECTANGLE.split_at(7).0),
    ("cudaMemcpy2DAsync", &RUNTIME_RECTANGLE),
    ("cudaMemcpy3D", &[("p", RUNTIME_BOX)]),
    ("cudaMemcpy3DAsync", &[("p", RUNTIME_BOX), ("stream", Word)]),
    (
        "cudaMemcpyToSymbol",
        &[("symbol", Word), ("src", Word), ("count", Word), ("offset", Word), ("kind", Number)],
    ),
    (
        "cudaMemcpyToSymbolAsync",
        &[
            ("symbol", Word),
            ("src", Word),
            ("count", Word),
            ("offset", Word),
            ("kind", Number),
            ("stream", Word),
        ],
    ),
    (
        "cudaMemcpyFromSymbol",
        &[("dst", Word), ("symbol", Word), ("count", Word), ("offset", Word), ("kind", Number)],
    ),
    (
        "cudaMemcpyFromSymbolAsync",
        &[
            ("dst", Word),
            ("symbol", Word),
            ("count", Word),
            ("offset", Word),
            ("kind", Number),
            ("stream", Word),
        ],
    ),
    ("cuMemcpyPeer", DRIVER_PEER.split_at(5).0),
    ("cuMemcpyPeerAsync", &DRIVER_PEER),
    ("cuMemcpy2D_v2", &[("pCopy", RECTANGLE)]),
    ("cuMemcpy2DUnaligned_v2", &[("pCopy", RECTANGLE)]),
    ("cuMemcpy2DAsync_v2", &[("pCopy", RECTANGLE), ("hStream", Word)]),
    ("cuMemcpy3D_v2", &[("pCopy", BOX)]),
    ("cuMemcpy3DAsync_v2", &[("pCopy", BOX), ("hStream", Word)]),
    ("cuMemcpyHtoA_v2", &[("dstArray", Word), ("dstOffset", Word), ("srcHost", Word), ("ByteCount", Word)]),
    ("cuMemcpyAtoH_v2", &[("dstHost", Word), ("srcArray", Word), ("srcOffset", Word), ("ByteCount", Word)]),
    ("cuMemcpyDtoA_v2", &[("dstArray", Word), ("dstOffset", Word), ("srcDevice", Word), ("ByteCount", Word)]),
    ("cuMemcpyAtoD_v2", &[("dstDevice", Word), ("srcArray", Word), ("srcOffset", Word), ("ByteCount", Word)]),
    (
        "cuMemcpyAtoA_v2",
        &[
            ("dstArray", Word),
            ("dstOffset", Word),
            ("srcArray", Word),
            ("srcOffset", Word),
            ("ByteCount", Word),
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
    ("cudaMemset2D", RUNTIME_FILL.split_at(5).0),
    ("cudaMemset2DAsync", &RUNTIME_FILL),
    ("cuMemsetD2D8_v2", BYTES_OF_ROWS.split_at(5).0),
    ("cuMemsetD2D8Async", &BYTES_OF_ROWS),
    ("cuMemsetD2D32_v2", NUMBERS_OF_ROWS.split_at(5).0),
    ("cuMemsetD2D32Async", &NUMBERS_OF_ROWS),
    ("cuMemsetD8_v2", &[("dstDevice", Word), ("uc", Byte), ("N", Word)]),
    ("cuMemsetD32_v2", &[("dstDevice", Word), ("ui", Number), ("N", Word)]),
    ("cuMemsetD8Async", &[("dstDevice", Word), ("uc", Byte), ("N", Word), ("hStream", Word)]),
    ("cuMemsetD32Async", &[("dstDevice", Word), ("ui", Number), ("N", Word), ("hStream", Word)]),
    ("cudaMalloc", &[("devPtr", Place), ("size", Word)]),
    ("cudaMallocManaged", &[("devPtr", Place), ("size", Word), ("flags", Number)]),
    ("cudaMallocAsync", &[("devPtr", Place), ("size", Word), ("hStream", Word)]),
    ("cudaMallocFromPoolAsync", &[("ptr", Place), ("size", Word), ("memPool", Word), ("stream", Word)]),
    ("cudaMallocPitch", &[("devPtr", Place), ("pitch", Place), ("width", Word), ("height", Word)]),
    ("cudaFree", &[("devPtr", Word)]),
    ("cudaFreeAsync", &[("devPtr", Word), ("hStream", Word)]),
    ("cudaMallocHost", &[("ptr", Place), ("size", Word)]),
    ("cudaHostAlloc", &[("pHost", Place), ("size", Word), ("flags", Number)]),
    ("cudaFreeHost", &[("ptr", Word)]),
    ("cuMemAlloc_v2", &[("dptr", Place), ("bytesize", Word)]),
    ("cuMemAllocManaged", &[("dptr", Place), ("bytesize", Word), ("flags", Number)]),
    ("cuMemAllocAsync", &[("dptr", Place), ("bytesize", Word), ("hStream", Word)]),
    ("cuMemAllocFromPoolAsync", &[("dptr", Place), ("bytesize", Word), ("pool", Word), ("hStream", Word)]),
    ("cuMemAllocPitch_v2", &[("dptr", Place), ("pPitch", Place), ("WidthInBytes", Word), ("Height", Word)]),
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

/// What is kept, one behind the other: the arguments, then the fields of a structure among them.
fn kept(arguments: &'static [Argument]) -> impl Iterator<Item = (&'static str, Class)> {
    let plain = |(_, class): &&Argument| !matches!(class, Unused | Structure(_));
    let fields = arguments.iter().flat_map(|(_, class)| match class {
        Structure(fields) => *fields,
        _ => &[],
    });
    let fields = fields.map(|Member(name, class, _)| (*name, *class));
    arguments.iter().filter(plain).copied().chain(fields)
}

/// Bytes that are being kept.
struct Keeping<'a> {
    bytes: &'a mut [u8; MOST],
    end: usize,
}

impl Keeping<'_> {
    /// # Safety
    /// So many bytes lie there.
    unsafe fn copy(&mut self, from: *const u8, size: usize) {
        let into = &mut self.bytes[self.end..self.end + size];
        // SAFETY: the caller's promise.
        unsafe { from.copy_to_nonoverlapping(into.as_mut_ptr(), size) };
        self.end += size;
    }
}

/// Copies the arguments into `bytes`; how many bytes they are. For a place, it copies what the function has put there, if it `succeeded`; of a
/// structure its fields, if it did.
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
    let mut keeping = Keeping { bytes, end: 0 };
    // SAFETY: the caller's promise: the structure is as long as its arguments.
    let address = |begin: usize| unsafe { parameters.add(begin).cast::<*const u8>().read_unaligned() };
    for (_, class, begin) in placed(arguments) {
        let (size, _) = class.layout();
        match class {
            Unused | Structure(_) => {}
            Place if !succeeded || address(begin).is_null() => {
                // SAFETY: zeros of our own.
                unsafe { keeping.copy([0; 8].as_ptr(), size) };
            }
            // SAFETY: a function that has succeeded had a place for its result.
            Place => unsafe { keeping.copy(address(begin), size) },
            // SAFETY: as above.
            _ => unsafe { keeping.copy(parameters.add(begin), size) },
        }
    }
    for (_, class, begin) in placed(arguments).filter(|_| succeeded) {
        let Structure(fields) = class else { continue };
        let structure = address(begin);
        if structure.is_null() {
            break;
        }
        for Member(_, class, place) in fields {
            // SAFETY: a function that has succeeded was given the structure, which its caller has until it returns.
            unsafe {
                match class {
                    Where(condition) if !condition.holds(structure) => keeping.copy([0; 8].as_ptr(), 8),
                    _ => keeping.copy(structure.add(*place), class.layout().0),
                }
            }
        }
    }
    keeping.end
}

/// As `name=value | name=value`; what the bytes do not reach is left out.
pub(super) fn text(arguments: &'static [Argument], mut bytes: &[u8]) -> String {
    let mut text = String::new();
    for (name, class) in kept(arguments) {
        let Some((value, rest)) = bytes.split_at_checked(class.layout().0) else { break };
        bytes = rest;
        let number = |at: usize| u32::from_ne_bytes(value[at..at + 4].try_into().unwrap_or_default());
        let word = || u64::from_ne_bytes(value.try_into().unwrap_or_default());
        if matches!(class, Where(_)) && word() == 0 {
            continue;
        }
        let separator = if text.is_empty() { "" } else { " | " };
        // Writing to a String cannot fail.
        let _ = match class {
            Number => write!(text, "{separator}{name}={}", number(0)),
            Byte => write!(text, "{separator}{name}={}", value[0]),
            Grid => write!(text, "{separator}{name}={},{},{}", number(0), number(4), number(8)),
            Word | Where(_) | Place | Unused | Structure(_) => {
                write!(text, "{separator}{name}={:#x}", word())
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
            let length: usize = kept(arguments).map(|(_, class)| class.layout().0).sum();
            assert!(length <= MOST, "{name}");
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
        assert_eq!(end, 3 * 8 + 1);
        assert_eq!(text(arguments, &bytes[..end]), "dstDevice=0x7000 | uc=7 | N=0x40 | hStream=0x10");
        assert_eq!(text(arguments, &bytes[..end - 1]), "dstDevice=0x7000 | uc=7 | N=0x40");

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
    fn a_structure_is_its_fields() {
        #[repr(C)]
        struct Config {
            grid: [u32; 3],
            block: [u32; 3],
            shared: u64,
            stream: u64,
            attributes: u64,
            count: u32,
        }
        let config =
            Config { grid: [3, 2, 1], block: [64, 1, 1], shared: 128, stream: 0x9, attributes: 1, count: 1 };
        let parameters = [(&raw const config).expose_provenance() as u64, 0x1, 0x5000];
        let arguments = of("cudaLaunchKernelExC").unwrap();
        let mut bytes = [0; MOST];
        let mut copied = |parameters: &[u64; 3], succeeded| {
            // SAFETY: laid out as that function's arguments.
            let end = unsafe { copy(arguments, parameters.as_ptr().cast(), succeeded, &mut bytes) };
            text(arguments, &bytes[..end])
        };
        let expected = "func=0x1 | gridDim=3,2,1 | blockDim=64,1,1 | dynamicSmemBytes=0x80 | stream=0x9";
        assert_eq!(copied(&parameters, true), expected);
        // A call that failed may have been given anything.
        assert_eq!(copied(&[0x1, 0x1, 0], false), "func=0x1");
        assert_eq!(copied(&[0, 0x1, 0], true), "func=0x1");

        // What its memory type does not choose, a program need not set.
        let mut rectangle = [0x5au8; 128];
        for (place, value) in [(16, 1u64), (24, 0x7000), (72, 2), (88, 0x8000), (112, 256), (120, 32)] {
            rectangle[place..place + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let parameters = [rectangle.as_ptr().expose_provenance() as u64, 0x9];
        let arguments = of("cuMemcpy2DAsync_v2").unwrap();
        // SAFETY: laid out as that function's arguments.
        let end = unsafe { copy(arguments, parameters.as_ptr().cast(), true, &mut bytes) };
        let expected = "hStream=0x9 | srcMemoryType=1 | srcHost=0x7000 | dstMemoryType=2 | dstDevice=0x8000 | \
            WidthInBytes=0x100 | Height=0x20";
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
