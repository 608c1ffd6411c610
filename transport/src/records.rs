//! Records that hooks hand to the writer: a fixed body and, for markers, text behind it.
//!
//! Times are ns of CLOCK_MONOTONIC unless a name says tick. Bodies are plain bytes without padding so that they travel
//! through a byte ring.

pub mod budget;
pub mod chunk;
pub mod ring;

use bytemuck::{Pod, Zeroable};

/// Which body a record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
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
    /// [`Call`], its arguments and what is behind them.
    Call = 7,
    /// [`Dispatch`] that has not completed: what its call launched, for a file that may never hear more of it.
    Launch = 8,
    /// [`Analyzed`] and, behind it, what each analyzer found.
    Analyzed = 9,
    /// [`Sensor`] and its text: a time in which a sensor's value did not change.
    Sensor = 10,
    /// [`ProcessRange`] and its text: a range begins that any thread may end.
    Start = 16,
    /// [`ProcessRange`]: it ends.
    Stop = 17,
}

impl Kind {
    /// The kind written as `byte`.
    #[inline]
    pub fn from_byte(byte: u8) -> Option<Kind> {
        use Kind::*;
        [Dispatch, Copy, Mark, Push, Pop, Discard, Call, Launch, Analyzed, Sensor, Start, Stop]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// Number of a kernel in the table.
pub type KernelId = u32;

/// A kernel dispatch: its submission and, when it completed, its execution.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Dispatch {
    /// The packet is about to be handed to the hardware queue. Of the call that the thread was in: when that began, which has these times in its
    /// own record.
    pub submit_start: u64,
    /// It was handed over; `submit_start` where that is when a call began.
    pub submit_end: u64,
    /// Execution began; 0 with `end` 0: the dispatch never completed.
    pub start: u64,
    /// Execution ended, >= start.
    pub end: u64,
    /// Device ticks of start and end as the packet processor wrote them.
    pub start_tick: u64,
    /// See `start_tick`.
    pub end_tick: u64,
    /// Address of the kernel arguments.
    pub kernarg: u64,
    /// The application's completion signal, 0 for none.
    pub completion: u64,
    /// Index of the packet in its queue.
    pub sequence: u64,
    /// The call that submitted it, `correlation::NONE` for none that is recorded.
    pub correlation: u64,
    /// The stream that call named, 0 for the default stream.
    pub stream: u64,
    /// Place in the kernel table.
    pub kernel: u32,
    /// Index of the GPU among all of the node.
    pub gpu: u32,
    /// Queue number on that GPU.
    pub queue: u32,
    /// Submitting thread.
    pub tid: u32,
    /// For a kernel of the runtime's that copies: destination GPU, `NO_GPU` for host memory.
    pub dst_gpu: u32,
    /// For a kernel of the runtime's that copies: source GPU, `NO_GPU` for host memory.
    pub src_gpu: u32,
    /// Work-items per dimension; workgroups where `header` is [`NO_PACKET`].
    pub grid: [u32; 3],
    /// Dynamic and static LDS, bytes per workgroup.
    pub group_segment: u32,
    /// Scratch, bytes per work-item.
    pub private_segment: u32,
    /// Work-items per workgroup and dimension.
    pub workgroup: [u16; 3],
    /// The packet's header: barrier bit and fence scopes (HSA 1.2 §2.9.1).
    pub header: u16,
    /// The one kernel of a call that launches one: 1, where the file leaves it to this to say what was launched; otherwise 2. 3: the same as 1
    /// of a call that did not have to launch one. See [`Dispatch::ends_launch`], [`Dispatch::describes_call`].
    pub launch: u8,
    /// The source that made the record, see `Source::number`.
    pub source: u8,
    /// What the source calls it where it is of no call that is recorded, see `Source::function`.
    pub function: u16,
}

/// Behind a [`Dispatch`] that has such attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct LaunchAttributes {
    /// The source's number of the graph's node; 0 for none.
    pub graph_node: u64,
    /// The source's number of the graph; 0 for none.
    pub graph: u32,
    /// Workgroups of a cluster; 0 where there are no clusters.
    pub cluster: [u16; 3],
    /// 0.
    pub reserved: [u16; 3],
}

/// `header` where nobody has seen the packet: fence scopes that HSA does not define.
pub const UNKNOWN_FENCES: u16 = 0b1111 << 9;

/// `header` where there was no packet: its fences are unknown, and the grid counts workgroups. HSA leaves the bits behind the fences unused.
pub const NO_PACKET: u16 = UNKNOWN_FENCES | 1 << 15;

/// An asynchronous copy through the runtime.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Copy {
    /// The call began.
    pub submit_start: u64,
    /// The call returned.
    pub submit_end: u64,
    /// The copy began; 0 with `end` 0: it never completed.
    pub start: u64,
    /// The copy ended.
    pub end: u64,
    /// Destination address.
    pub dst: u64,
    /// Source address.
    pub src: u64,
    /// Bytes, all rows of a rectangle together.
    pub size: u64,
    /// Bytes per row of a rectangular copy, otherwise 0.
    pub width: u64,
    /// Rows (times slices) of a rectangular copy, otherwise 0.
    pub height: u64,
    /// How many copies this GPU had been given before.
    pub sequence: u64,
    /// The application's completion signal.
    pub completion: u64,
    /// The call that asked for it, `correlation::NONE` for none that is recorded.
    pub correlation: u64,
    /// GPU that copies.
    pub gpu: u32,
    /// Destination GPU, `NO_GPU` for host memory.
    pub dst_gpu: u32,
    /// Source GPU, `NO_GPU` for host memory.
    pub src_gpu: u32,
    /// Calling thread.
    pub tid: u32,
    /// Queue number on that GPU, 0 for the copy engines.
    pub queue: u32,
    /// The source's number of the function that was called, see `Source::function`.
    pub function: u16,
    /// The source that made the record, see `Source::number`.
    pub source: u8,
    /// 1, or 2 where the host's side is pinned: the one copy of a call of which the file knows by this alone what it copies.
    pub describes_call: u8,
}

/// `dst_gpu` or `src_gpu` of host memory.
pub const NO_GPU: u32 = u32::MAX;

/// A range or instant of the application. Its text, where it has one, is the api name, then the arguments.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Marker {
    /// When.
    pub time: u64,
    /// Bytes of the text that are the api name.
    pub name_len: u32,
    /// The stack of this thread that the range is on, see [`Stack`].
    pub stack: u32,
}

/// Ranges of one thread nest within their API, and in NVTX within their domain: a pop of one never ends a range of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack(pub u32);

impl Stack {
    /// rpd_rangePush and rpd_rangePop.
    pub const RPD: Stack = Stack(0);
    /// roctxRangePushA and roctxRangePop.
    pub const ROCTX: Stack = Stack(1);
    /// rpd_framePush and rpd_framePop.
    pub const FRAMES: Stack = Stack(2);
    /// NVTX without a domain.
    pub const NVTX: Stack = Stack(3);
    /// The first domain of NVTX that is created; the next ones follow it.
    pub const FIRST_DOMAIN: Stack = Stack(16);
}

impl Dispatch {
    /// Whether the launch that its call was counted as has its operation in it.
    pub fn ends_launch(&self) -> bool {
        matches!(self.launch, 1 | 2)
    }

    /// Whether the call itself says what it launched.
    pub fn is_described_by_call(&self) -> bool {
        self.launch == 2
    }

    /// Whether the file leaves it to this to say what was launched.
    pub fn describes_call(&self) -> bool {
        matches!(self.launch, 1 | 3)
    }
}

/// A range that belongs to no thread's stack: its api name is [`crate::marker::USER_MARKER`], its text the arguments.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct ProcessRange {
    /// When it begins or ends.
    pub time: u64,
    /// What a stop names it by, unique in the process.
    pub id: u64,
}

/// A call. Behind it stand its arguments as its source keeps them, then its stack frames, 8 bytes each (`stack`).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Call {
    /// The call began.
    pub start: u64,
    /// It is about to return.
    pub end: u64,
    /// Its id, `correlation::NONE` where no operation refers to it.
    pub correlation: u64,
    /// Bytes of arguments.
    pub arguments: u32,
    /// The source's number of the function.
    pub function: u16,
    /// The source that made the record, see `Source::number`.
    pub source: u8,
    /// Keeps what follows in place.
    pub reserved: u8,
    /// The kernel it was to launch, where no dispatch tells: place in the kernel table or `NO_KERNEL`.
    pub kernel: u32,
    /// 1: it submitted packets, of which its kernel is one if it launches one.
    pub submitted: u32,
    /// For a copy: destination GPU, `NO_GPU` for host memory.
    pub dst_gpu: u32,
    /// For a copy: source GPU, `NO_GPU` for host memory.
    pub src_gpu: u32,
    /// For a copy: 1 where the host's side is pinned.
    pub pinned: u16,
    /// 1: HIP made a command of it, which it times, or may have made one.
    pub commanded: u16,
    /// The thread that made it, 0 for the one whose ring the record is in.
    pub tid: u32,
}

/// An instrumented dispatch whose messages were analyzed. Behind it stands what each analyzer was given and found
/// ([`crate::source::AnalysisText`], as postcard writes a sequence of them).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Analyzed {
    /// Index of the packet in its queue.
    pub sequence: u64,
    /// Index of the GPU among all of the node.
    pub gpu: u32,
    /// Queue number on that GPU.
    pub queue: u32,
    /// Place of the instrumented kernel in the kernel table.
    pub kernel: u32,
    /// 1: its kernel has run to its end, so that it has an operation.
    pub completed: u32,
}

/// A time in which a GPU's sensor had one value. Its text is what the sensor is called, then the value.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Sensor {
    /// The first sample with that value.
    pub start: u64,
    /// The first sample with another value, or where recording was interrupted.
    pub end: u64,
    /// Index of the GPU among all of the node.
    pub gpu: u32,
    /// Bytes of the text that are the sensor's name.
    pub name_len: u32,
}

/// `kernel` of a call whose kernel is not known by itself.
pub const NO_KERNEL: u32 = u32::MAX;
