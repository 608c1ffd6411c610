//! What hooks hand to the writer: a fixed body and, for markers, text behind it.
//!
//! Times are ns of CLOCK_MONOTONIC unless a name says tick. Bodies are plain bytes without padding so that they travel
//! through a byte ring.

use bytemuck::{Pod, Zeroable};

/// Which body a record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// [`Dispatch`].
    Dispatch = 1,
    /// [`struct@Copy`].
    Copy = 2,
    /// [`Marker`] and its text: an instant.
    Mark = 3,
    /// [`Marker`] and its text: a range of this thread begins.
    Push = 4,
    /// [`Marker`]: the innermost range of this thread ends.
    Pop = 5,
    /// [`Marker`]: the innermost range of this thread ended while recording was paused.
    Discard = 6,
    /// [`Call`], its arguments and what stands behind them.
    Call = 7,
    /// [`Dispatch`] that has not completed: what its call launched, for a file that may never hear more of it.
    Launch = 8,
    /// [`ProcessRange`] and its text: a range begins that any thread may end.
    Start = 16,
    /// [`ProcessRange`]: it ends.
    Stop = 17,
}

impl Kind {
    /// The kind written as `byte`.
    pub(crate) fn from_byte(byte: u8) -> Option<Kind> {
        use Kind::*;
        [Dispatch, Copy, Mark, Push, Pop, Discard, Call, Launch, Start, Stop]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// Number of a kernel in the table.
pub(crate) type KernelId = u32;

/// A kernel dispatch: its submission and, when it completed, its execution.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Dispatch {
    /// The submitting thread entered the interceptor.
    pub(crate) submit_start: u64,
    /// The packet was handed to the hardware queue.
    pub(crate) submit_end: u64,
    /// Execution began; 0 with `end` 0: the dispatch never completed.
    pub(crate) start: u64,
    /// Execution ended, >= start.
    pub(crate) end: u64,
    /// Device ticks of start and end as the packet processor wrote them.
    pub(crate) start_tick: u64,
    /// See `start_tick`.
    pub(crate) end_tick: u64,
    /// Address of the kernel arguments.
    pub(crate) kernarg: u64,
    /// The application's completion signal, 0 for none.
    pub(crate) completion: u64,
    /// Index of the packet in its queue.
    pub(crate) sequence: u64,
    /// The call that submitted it, `correlation::NONE` for none that is recorded.
    pub(crate) correlation: u64,
    /// The stream that call named, 0 for the default stream.
    pub(crate) stream: u64,
    /// Place in the kernel table.
    pub(crate) kernel: u32,
    /// Index of the GPU among all of the node.
    pub(crate) gpu: u32,
    /// Queue number on that GPU.
    pub(crate) queue: u32,
    /// Submitting thread.
    pub(crate) tid: u32,
    /// Work-items per dimension.
    pub(crate) grid: [u32; 3],
    /// Dynamic and static LDS, bytes per workgroup.
    pub(crate) group_segment: u32,
    /// Scratch, bytes per work-item.
    pub(crate) private_segment: u32,
    /// Work-items per workgroup and dimension.
    pub(crate) workgroup: [u16; 3],
    /// The packet's header: barrier bit and fence scopes (HSA 1.2 §2.9.1).
    pub(crate) header: u16,
    /// The one kernel of a call that launches one: 1, where the file leaves it to this to say what was launched; otherwise 2.
    pub(crate) launch: u8,
    /// The source that made the record, see `Source::number`.
    pub(crate) source: u8,
    /// What the source calls it where it is of no call that is recorded, see `Source::function`.
    pub(crate) function: u16,
}

/// `header` where nobody has seen the packet: fence scopes that HSA does not define.
pub(crate) const UNKNOWN_FENCES: u16 = 0b1111 << 9;

/// An asynchronous copy through the runtime.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Copy {
    /// The call began.
    pub(crate) submit_start: u64,
    /// The call returned.
    pub(crate) submit_end: u64,
    /// The copy began; 0 with `end` 0: it never completed.
    pub(crate) start: u64,
    /// The copy ended.
    pub(crate) end: u64,
    /// Destination address.
    pub(crate) dst: u64,
    /// Source address.
    pub(crate) src: u64,
    /// Bytes, all rows of a rectangle together.
    pub(crate) size: u64,
    /// Bytes per row of a rectangular copy, otherwise 0.
    pub(crate) width: u64,
    /// Rows (times slices) of a rectangular copy, otherwise 0.
    pub(crate) height: u64,
    /// How many copies this GPU had been given before.
    pub(crate) sequence: u64,
    /// The application's completion signal.
    pub(crate) completion: u64,
    /// The call that asked for it, `correlation::NONE` for none that is recorded.
    pub(crate) correlation: u64,
    /// GPU that copies.
    pub(crate) gpu: u32,
    /// Destination GPU, `NO_GPU` for host memory.
    pub(crate) dst_gpu: u32,
    /// Source GPU, `NO_GPU` for host memory.
    pub(crate) src_gpu: u32,
    /// Calling thread.
    pub(crate) tid: u32,
    /// The source's number of the function that was called, see `Source::function`.
    pub(crate) function: u16,
    /// The source that made the record, see `Source::number`.
    pub(crate) source: u8,
    /// Keeps the size a multiple of 8.
    pub(crate) reserved: [u8; 5],
}

/// `dst_gpu` or `src_gpu` of host memory.
pub(crate) const NO_GPU: u32 = u32::MAX;

/// A range or instant of the application. Its text, where it has one, is the api name, then the arguments.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Marker {
    /// When.
    pub(crate) time: u64,
    /// Bytes of the text that are the api name.
    pub(crate) name_len: u32,
    /// The stack of this thread that the range is on, see [`Stack`].
    pub(crate) stack: u32,
}

/// Ranges of one thread nest within their API, and in NVTX within their domain: a pop of one never ends a range of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stack(pub(crate) u32);

impl Stack {
    /// rpd_rangePush and rpd_rangePop.
    pub(crate) const RPD: Stack = Stack(0);
    /// roctxRangePushA and roctxRangePop.
    pub(crate) const ROCTX: Stack = Stack(1);
    /// rpd_framePush and rpd_framePop.
    pub(crate) const FRAMES: Stack = Stack(2);
    /// NVTX without a domain.
    pub(crate) const NVTX: Stack = Stack(3);
    /// The first domain of NVTX that is created; the next ones follow it.
    pub(crate) const FIRST_DOMAIN: Stack = Stack(16);
}

/// A range that belongs to no thread's stack: its api name is [`crate::marker::USER_MARKER`], its text the arguments.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct ProcessRange {
    /// When it begins or ends.
    pub(crate) time: u64,
    /// What a stop names it by, unique in the process.
    pub(crate) id: u64,
}

/// A call. Behind it stand its arguments as its source keeps them, then its stack frames, 8 bytes each (`stack`).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Call {
    /// The call began.
    pub(crate) start: u64,
    /// It is about to return.
    pub(crate) end: u64,
    /// Its id.
    pub(crate) correlation: u64,
    /// Bytes of arguments.
    pub(crate) arguments: u32,
    /// The source's number of the function.
    pub(crate) function: u16,
    /// The source that made the record, see `Source::number`.
    pub(crate) source: u8,
    /// Keeps what follows in place.
    pub(crate) reserved: u8,
    /// The kernel it was to launch, where no dispatch tells: place in the kernel table or `NO_KERNEL`.
    pub(crate) kernel: u32,
    /// 1: it submitted packets, of which its kernel is one if it launches one.
    pub(crate) submitted: u32,
    /// Of a copy: destination GPU, `NO_GPU` for host memory.
    pub(crate) dst_gpu: u32,
    /// Of a copy: source GPU, `NO_GPU` for host memory.
    pub(crate) src_gpu: u32,
    /// Of a copy: 1 where the host's side is pinned.
    pub(crate) pinned: u32,
    /// 1: HIP made a command of it, which it times.
    pub(crate) commanded: u32,
}

/// `kernel` of a call whose kernel is not known by itself.
pub(crate) const NO_KERNEL: u32 = u32::MAX;
