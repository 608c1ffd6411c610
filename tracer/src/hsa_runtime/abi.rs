//! Layouts and constants of the HSA runtime's C interface, as far as the recorder uses them.
//!
//! Sources: HSA 1.2 and the headers of ROCr 5.2 (hsa.h, hsa_ext_amd.h, hsa_api_trace.h, amd_hsa_signal.h, amd_hsa_queue.h).

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use bytemuck::{Pod, Zeroable};

pub(crate) type Status = u32;
pub(crate) const SUCCESS: Status = 0;
/// HSA_STATUS_ERROR.
pub(crate) const ERROR: Status = 0x1000;
/// HSA_STATUS_CU_MASK_REDUCED: as asked for, but for what HSA_CU_MASK withholds.
pub(crate) const CU_MASK_REDUCED: Status = 44;

/// Handles are opaque 64-bit values passed in a register.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Pod, Zeroable)]
        #[repr(transparent)]
        pub(crate) struct $name(pub(crate) u64);
    )*};
}
handles! {
    /// hsa_agent_t: a device.
    Agent,
    /// hsa_signal_t: for signals of the runtime, the address of an amd_signal_t.
    Signal,
    /// hsa_executable_t.
    Executable,
    /// hsa_executable_symbol_t.
    Symbol,
    /// hsa_code_object_reader_t.
    Reader,
    /// hsa_amd_memory_pool_t.
    Pool,
}

/// Root of the tables that a tool is given (HsaApiTable).
#[repr(C)]
pub struct ApiTable {
    pub(crate) version: TableVersion,
    pub(crate) core: *mut TableVersion,
    pub(crate) amd_ext: *mut TableVersion,
}

/// First member of every table (ApiTableVersion). `minor_id` is the table's size in bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TableVersion {
    pub(crate) major_id: u32,
    pub(crate) minor_id: u32,
    pub(crate) step_id: u32,
    pub(crate) reserved: u32,
}

/// hsa_kernel_dispatch_packet_t; other packets share the header and the completion signal (HSA 1.2 §2.9).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Packet {
    pub(crate) header: u16,
    pub(crate) setup: u16,
    pub(crate) workgroup: [u16; 3],
    pub(crate) reserved0: u16,
    /// Work-items.
    pub(crate) grid: [u32; 3],
    pub(crate) private_segment: u32,
    pub(crate) group_segment: u32,
    pub(crate) kernel_object: u64,
    pub(crate) kernarg: u64,
    pub(crate) reserved2: u64,
    pub(crate) completion: Signal,
}
const _: () = assert!(size_of::<Packet>() == 64);

/// hsa_barrier_and_packet_t.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct BarrierAnd {
    header: u16,
    reserved0: [u16; 3],
    dependencies: [Signal; 5],
    reserved2: u64,
    completion: Signal,
}

impl Packet {
    /// A barrier that lets nothing behind it begin before `dependency` is 0.
    pub(crate) fn gate(dependency: Signal) -> Packet {
        let header = packet_type::BARRIER_AND | BARRIER_BIT;
        let none = Signal(0);
        let dependencies = [dependency, none, none, none, none];
        bytemuck::cast(BarrierAnd { header, reserved0: [0; 3], dependencies, reserved2: 0, completion: none })
    }

    /// A barrier that completes `completion` when all packets before it have completed.
    pub(crate) fn barrier(completion: Signal) -> Packet {
        let header = packet_type::BARRIER_AND | BARRIER_BIT;
        let dependencies = [Signal(0); 5];
        bytemuck::cast(BarrierAnd { header, reserved0: [0; 3], dependencies, reserved2: 0, completion })
    }
}

/// Packet types: bits 0-7 of the header.
pub(crate) mod packet_type {
    pub(crate) const KERNEL_DISPATCH: u16 = 2;
    pub(crate) const BARRIER_AND: u16 = 3;
}

/// Bit of a packet's header: wait for all packets before.
pub(crate) const BARRIER_BIT: u16 = 1 << 8;

/// amd_signal_t, the memory behind a signal handle.
#[repr(C)]
pub(crate) struct SignalMemory {
    pub(crate) kind: i64,
    pub(crate) value: AtomicI64,
    pub(crate) event_mailbox: u64,
    pub(crate) event_id: AtomicU32,
    pub(crate) reserved1: u32,
    /// Device ticks, written by the packet processor before it changes `value`.
    pub(crate) start_ts: AtomicU64,
    /// See `start_ts`.
    pub(crate) end_ts: AtomicU64,
    pub(crate) queue: u64,
    pub(crate) reserved3: [u32; 2],
}
const _: () = assert!(size_of::<SignalMemory>() == 64);

impl Signal {
    /// The memory behind the handle.
    ///
    /// # Safety
    /// The handle is a live signal of this process's runtime (its memory stays mapped until hsa_shut_down).
    pub(crate) unsafe fn memory<'a>(self) -> &'a SignalMemory {
        // SAFETY: the caller's promise; the runtime aligns signals to 64 bytes.
        unsafe { &*(self.0 as *const SignalMemory) }
    }

    /// (start, end) in device ticks.
    ///
    /// # Safety
    /// As for [`Signal::memory`].
    pub(crate) unsafe fn ticks(self) -> (u64, u64) {
        // SAFETY: the caller's promise.
        let memory = unsafe { self.memory() };
        // The end is written last, so a new end vouches for the start.
        let end = memory.end_ts.load(Ordering::Acquire);
        (memory.start_ts.load(Ordering::Acquire), end)
    }
}

/// hsa_queue_t.
#[repr(C)]
pub(crate) struct Queue {
    pub(crate) kind: u32,
    pub(crate) features: u32,
    pub(crate) base_address: *mut c_void,
    pub(crate) doorbell: Signal,
    /// Packets.
    pub(crate) size: u32,
    pub(crate) reserved: u32,
    pub(crate) id: u64,
}

/// hsa_amd_queue_create_desc_t: a queue to be made by hsa_amd_queue_create (hsa_ext_amd.h of August 2026).
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Described {
    pub(crate) version: u16,
    /// Places of its parts other than system memory; 0 is all in system memory.
    pub(crate) flags: u16,
    pub(crate) engine: u8,
    pub(crate) reserved0: [u8; 3],
    pub(crate) size_bytes: u32,
    /// hsa_amd_queue_priority_t.
    pub(crate) priority: u32,
    pub(crate) callback: QueueCallback,
    pub(crate) data: *mut c_void,
    /// The result.
    pub(crate) queue: *mut Queue,
    pub(crate) cu_mask: *const u32,
    pub(crate) kind: u32,
    pub(crate) private_segment: u32,
    /// Bits in `cu_mask`; 0 without one.
    pub(crate) cu_mask_count: u32,
    pub(crate) rest: [u32; 9],
}
const _: () = assert!(size_of::<Described>() == 96);

/// The fields of [`Described`] whose meaning is known.
pub(crate) mod described {
    pub(crate) const VERSION: u16 = 1;
    pub(crate) const COMPUTE: u8 = 0;
    pub(crate) const PRIORITY_NORMAL: u32 = 1;
}

/// hsa_amd_profiling_dispatch_time_t and hsa_amd_profiling_async_copy_time_t: system clock ticks.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C)]
pub(crate) struct Times {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// hsa_amd_pointer_info_t (ROCr 5.2 hsa_ext_amd.h).
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct AllocationInfo {
    /// Of this structure.
    pub(crate) size: u32,
    /// hsa_amd_pointer_type_t.
    pub(crate) kind: u32,
    pub(crate) agent_base: *mut c_void,
    pub(crate) host_base: *mut c_void,
    pub(crate) bytes: usize,
    pub(crate) user_data: *mut c_void,
    pub(crate) owner: Agent,
    pub(crate) flags: u32,
    pub(crate) reserved: u32,
}
const _: () = assert!(size_of::<AllocationInfo>() == 56);

/// hsa_pitched_ptr_t.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct PitchedPtr {
    pub(crate) base: *mut c_void,
    pub(crate) pitch: usize,
    pub(crate) slice: usize,
}

/// hsa_dim3_t.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Dim3 {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) z: u32,
}

/// hsa_amd_signal_create: no interrupt, for signals that only the GPU changes and the host polls.
pub(crate) const SIGNAL_AMD_GPU_ONLY: u64 = 1;
/// hsa_signal_condition_t LT.
pub(crate) const CONDITION_LT: u32 = 2;

/// hsa_agent_info_t and hsa_amd_agent_info_t.
pub(crate) mod agent_info {
    pub(crate) const NAME: u32 = 0;
    pub(crate) const DEVICE: u32 = 17;
    pub(crate) const QUEUE_MAX_SIZE: u32 = 14;
    pub(crate) const COMPUTE_UNIT_COUNT: u32 = 0xa002;
    pub(crate) const DRIVER_NODE_ID: u32 = 0xa004;
    pub(crate) const BDFID: u32 = 0xa006;
    pub(crate) const PRODUCT_NAME: u32 = 0xa009;
    pub(crate) const DOMAIN: u32 = 0xa00f;
    pub(crate) const UUID: u32 = 0xa011;
}
/// hsa_device_type_t GPU.
pub(crate) const DEVICE_GPU: u32 = 1;
/// hsa_system_info_t VERSION_MAJOR, TIMESTAMP and TIMESTAMP_FREQUENCY.
pub(crate) mod system_info {
    pub(crate) const VERSION_MAJOR: u32 = 0;
    pub(crate) const TIMESTAMP: u32 = 2;
    pub(crate) const TIMESTAMP_FREQUENCY: u32 = 3;
}
/// hsa_executable_symbol_info_t.
pub(crate) mod symbol_info {
    pub(crate) const TYPE: u32 = 0;
    pub(crate) const NAME_LENGTH: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const AGENT: u32 = 20;
    pub(crate) const KERNEL_OBJECT: u32 = 22;
}
/// hsa_symbol_kind_t KERNEL.
pub(crate) const SYMBOL_KERNEL: u32 = 1;

/// Passes packets on to the next interceptor or the hardware queue; only inside the callback that was given it.
pub(crate) type PacketWriter = unsafe extern "C-unwind" fn(*const Packet, u64);
/// hsa_amd_queue_intercept_handler.
pub(crate) type InterceptHandler =
    unsafe extern "C-unwind" fn(*const Packet, u64, u64, *mut c_void, PacketWriter);
/// Error callback of a queue.
pub(crate) type QueueCallback = Option<unsafe extern "C-unwind" fn(Status, *mut Queue, *mut c_void)>;
/// hsa_amd_signal_handler.
pub(crate) type SignalHandler = unsafe extern "C-unwind" fn(i64, *mut c_void) -> bool;

/// hsa_init, hsa_shut_down.
pub(crate) type NoArguments = unsafe extern "C-unwind" fn() -> Status;
pub(crate) type IterateAgents = unsafe extern "C-unwind" fn(
    unsafe extern "C-unwind" fn(Agent, *mut c_void) -> Status,
    *mut c_void,
) -> Status;
pub(crate) type AddWriteIndex = unsafe extern "C-unwind" fn(*const Queue, u64) -> u64;
pub(crate) type AgentGetInfo = unsafe extern "C-unwind" fn(Agent, u32, *mut c_void) -> Status;
pub(crate) type SystemGetInfo = unsafe extern "C-unwind" fn(u32, *mut c_void) -> Status;
pub(crate) type QueueCreate = unsafe extern "C-unwind" fn(
    Agent,
    u32,
    u32,
    QueueCallback,
    *mut c_void,
    u32,
    u32,
    *mut *mut Queue,
) -> Status;
pub(crate) type CountedQueueAcquire =
    unsafe extern "C-unwind" fn(Agent, u32, u32, QueueCallback, *mut c_void, u64, *mut *mut Queue) -> Status;
pub(crate) type CreateDescribed = unsafe extern "C-unwind" fn(Agent, *mut Described, u32) -> Status;
pub(crate) type SetPriority = unsafe extern "C-unwind" fn(*mut Queue, u32) -> Status;
pub(crate) type SetCuMask = unsafe extern "C-unwind" fn(*const Queue, u32, *const u32) -> Status;
pub(crate) type QueueDestroy = unsafe extern "C-unwind" fn(*mut Queue) -> Status;
pub(crate) type QueueInterceptRegister =
    unsafe extern "C-unwind" fn(*mut Queue, InterceptHandler, *mut c_void) -> Status;
pub(crate) type SignalCreate = unsafe extern "C-unwind" fn(i64, u32, *const Agent, *mut Signal) -> Status;
pub(crate) type AmdSignalCreate =
    unsafe extern "C-unwind" fn(i64, u32, *const Agent, u64, *mut Signal) -> Status;
pub(crate) type SignalDestroy = unsafe extern "C-unwind" fn(Signal) -> Status;
pub(crate) type SignalStore = unsafe extern "C-unwind" fn(Signal, i64);
pub(crate) type SignalAsyncHandler =
    unsafe extern "C-unwind" fn(Signal, u32, i64, SignalHandler, *mut c_void) -> Status;
pub(crate) type SetProfilerEnabled = unsafe extern "C-unwind" fn(*mut Queue, i32) -> Status;
pub(crate) type AsyncCopyEnable = unsafe extern "C-unwind" fn(bool) -> Status;
pub(crate) type GetAsyncCopyTime = unsafe extern "C-unwind" fn(Signal, *mut Times) -> Status;
pub(crate) type ConvertTick = unsafe extern "C-unwind" fn(Agent, u64, *mut u64) -> Status;
pub(crate) type MemoryAsyncCopy = unsafe extern "C-unwind" fn(
    *mut c_void,
    Agent,
    *const c_void,
    Agent,
    usize,
    u32,
    *const Signal,
    Signal,
) -> Status;
pub(crate) type MemoryAsyncCopyOnEngine = unsafe extern "C-unwind" fn(
    *mut c_void,
    Agent,
    *const c_void,
    Agent,
    usize,
    u32,
    *const Signal,
    Signal,
    u32,
    bool,
) -> Status;
/// The copies are an array of hsa_amd_memory_copy_op_t.
pub(crate) type MemoryAsyncBatchCopy =
    unsafe extern "C-unwind" fn(*const c_void, u32, u32, *const Signal) -> Status;
pub(crate) type MemoryAsyncCopyRect = unsafe extern "C-unwind" fn(
    *const PitchedPtr,
    *const Dim3,
    *const PitchedPtr,
    *const Dim3,
    *const Dim3,
    Agent,
    u32,
    u32,
    *const Signal,
    Signal,
) -> Status;
pub(crate) type ReaderFromMemory = unsafe extern "C-unwind" fn(*const c_void, usize, *mut Reader) -> Status;
pub(crate) type ReaderFromFile = unsafe extern "C-unwind" fn(i32, *mut Reader) -> Status;
pub(crate) type ReaderDestroy = unsafe extern "C-unwind" fn(Reader) -> Status;
pub(crate) type ExecutableCreateAlt =
    unsafe extern "C-unwind" fn(u32, u32, *const c_char, *mut Executable) -> Status;
pub(crate) type IteratePools = unsafe extern "C-unwind" fn(
    Agent,
    unsafe extern "C-unwind" fn(Pool, *mut c_void) -> Status,
    *mut c_void,
) -> Status;
pub(crate) type PoolGetInfo = unsafe extern "C-unwind" fn(Pool, u32, *mut c_void) -> Status;
pub(crate) type PoolAllocate = unsafe extern "C-unwind" fn(Pool, usize, u32, *mut *mut c_void) -> Status;
pub(crate) type PoolFree = unsafe extern "C-unwind" fn(*mut c_void) -> Status;
pub(crate) type GetPointerInfo = unsafe extern "C-unwind" fn(
    *const c_void,
    *mut AllocationInfo,
    *const c_void,
    *mut u32,
    *mut *mut Agent,
) -> Status;
pub(crate) type AllowAccess =
    unsafe extern "C-unwind" fn(u32, *const Agent, *const u32, *const c_void) -> Status;
pub(crate) type ExecutableLoadAgentCodeObject =
    unsafe extern "C-unwind" fn(Executable, Agent, Reader, *const c_char, *mut u64) -> Status;
pub(crate) type ExecutableFreeze = unsafe extern "C-unwind" fn(Executable, *const c_char) -> Status;
pub(crate) type ExecutableDestroy = unsafe extern "C-unwind" fn(Executable) -> Status;
pub(crate) type ExecutableIterateSymbols = unsafe extern "C-unwind" fn(
    Executable,
    unsafe extern "C-unwind" fn(Executable, Symbol, *mut c_void) -> Status,
    *mut c_void,
) -> Status;
pub(crate) type SymbolGetInfo = unsafe extern "C-unwind" fn(Symbol, u32, *mut c_void) -> Status;

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn layouts() {
        assert_eq!(offset_of!(Packet, kernel_object), 32);
        assert_eq!(offset_of!(Packet, completion), 56);
        assert_eq!(offset_of!(BarrierAnd, dependencies), 8);
        assert_eq!(offset_of!(BarrierAnd, completion), 56);
        let barrier = Packet::barrier(Signal(9));
        assert_eq!((barrier.header, barrier.completion), (0x103, Signal(9)));
        let gate = bytemuck::cast::<_, BarrierAnd>(Packet::gate(Signal(9)));
        assert_eq!((gate.header, gate.dependencies[0], gate.completion), (0x103, Signal(9), Signal(0)));
        assert_eq!(offset_of!(AllocationInfo, agent_base), 8);
        assert_eq!(offset_of!(AllocationInfo, bytes), 24);
        assert_eq!(offset_of!(AllocationInfo, owner), 40);
        assert_eq!(offset_of!(SignalMemory, value), 8);
        assert_eq!(offset_of!(SignalMemory, start_ts), 32);
        assert_eq!(offset_of!(SignalMemory, end_ts), 40);
        assert_eq!(offset_of!(Queue, size), 24);
        assert_eq!(offset_of!(ApiTable, amd_ext), 24);
        assert_eq!(size_of::<PitchedPtr>(), 24);
        assert_eq!(offset_of!(Described, size_bytes), 8);
        assert_eq!(offset_of!(Described, callback), 16);
        assert_eq!(offset_of!(Described, queue), 32);
        assert_eq!(offset_of!(Described, kind), 48);
        assert_eq!(offset_of!(Described, cu_mask_count), 56);
        assert_eq!(offset_of!(Described, rest), 60);
    }
}
