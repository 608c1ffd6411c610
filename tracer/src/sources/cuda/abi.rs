//! The interfaces of CUDA's driver and of CUPTI that the recorder uses: declarations of our own, after NVIDIA's public headers (CUPTI 12.0
//! to 13.5, CUDA 12.0 to 13.0).

use std::ffi::{c_char, c_int, c_void};

/// CUptiResult.
pub(super) type CuptiStatus = c_int;

/// Values of a [`CuptiStatus`] that mean something here.
pub(super) mod status {
    use std::ffi::c_int;

    pub(in super::super) const SUCCESS: c_int = 0;
    /// What versions before 12 answer to a second subscriber; of a buffer: it has no more records.
    pub(in super::super) const MAX_LIMIT_REACHED: c_int = 12;
    pub(in super::super) const NOT_INITIALIZED: c_int = 15;
    pub(in super::super) const MULTIPLE_SUBSCRIBERS: c_int = 39;
}

/// CUpti_ActivityKind.
pub(super) mod kind {
    pub(in super::super) const MEMCPY: u32 = 1;
    pub(in super::super) const MEMSET: u32 = 2;
    pub(in super::super) const KERNEL: u32 = 3;
    pub(in super::super) const DRIVER: u32 = 4;
    pub(in super::super) const RUNTIME: u32 = 5;
    pub(in super::super) const CONCURRENT_KERNEL: u32 = 10;
    pub(in super::super) const CONTEXT: u32 = 9;
    /// What CUPTI itself takes time for.
    pub(in super::super) const OVERHEAD: u32 = 17;
    /// Between two GPUs.
    pub(in super::super) const MEMCPY2: u32 = 22;
    pub(in super::super) const STREAM: u32 = 37;
    pub(in super::super) const SYNCHRONIZATION: u32 = 38;
    /// Memory that is allocated and freed.
    pub(in super::super) const MEMORY2: u32 = 49;
    /// Graphs as a whole, in place of their nodes.
    pub(in super::super) const GRAPH_TRACE: u32 = 51;
}

/// CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER: buffers come filled with zeros. A byte.
pub(super) const ZEROED_BUFFERS: u32 = 5;
/// CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM: threads by the kernel's numbers.
pub(super) const SYSTEM_THREAD_IDS: u32 = 1;
/// CUPTI_ACTIVITY_FLAG_FLUSH_FORCED.
pub(super) const FLUSH_FORCED: u32 = 1;
/// What cuptiGetVersion has of 12.0, the first whose records are known.
pub(super) const OLDEST_VERSION: u32 = 18;

/// CUpti_CallbackFunc.
pub(super) type Callback = unsafe extern "C-unwind" fn(*mut c_void, u32, u32, *const c_void);
/// CUpti_BuffersCallbackRequestFunc: where the buffer, its bytes and its most records (0: no limit) go.
pub(super) type BufferRequested = unsafe extern "C-unwind" fn(*mut *mut u8, *mut usize, *mut usize);
/// CUpti_BuffersCallbackCompleteFunc: context, stream, buffer, its bytes, and those that are records.
pub(super) type BufferCompleted = unsafe extern "C-unwind" fn(*mut c_void, u32, *mut u8, usize, usize);
/// CUpti_TimestampCallbackFunc.
pub(super) type Timestamp = extern "C-unwind" fn() -> u64;

pub(super) type GetVersion = unsafe extern "C-unwind" fn(*mut u32) -> CuptiStatus;
pub(super) type Subscribe =
    unsafe extern "C-unwind" fn(*mut *mut c_void, Callback, *mut c_void) -> CuptiStatus;
pub(super) type SubscribeV2 = unsafe extern "C-unwind" fn(
    *mut *mut c_void,
    Callback,
    *mut c_void,
    *mut SubscriberParameters,
) -> CuptiStatus;
pub(super) type Unsubscribe = unsafe extern "C-unwind" fn(*mut c_void) -> CuptiStatus;
pub(super) type EnableCallback = unsafe extern "C-unwind" fn(u32, *mut c_void, u32, u32) -> CuptiStatus;
pub(super) type GetCallbackName = unsafe extern "C-unwind" fn(u32, u32, *mut *const c_char) -> CuptiStatus;
pub(super) type SetAttribute = unsafe extern "C-unwind" fn(u32, *mut usize, *mut c_void) -> CuptiStatus;
pub(super) type SetThreadIdType = unsafe extern "C-unwind" fn(u32) -> CuptiStatus;
pub(super) type GetTimestamp = unsafe extern "C-unwind" fn(*mut u64) -> CuptiStatus;
pub(super) type RegisterTimestamp = unsafe extern "C-unwind" fn(Timestamp) -> CuptiStatus;
pub(super) type RegisterCallbacks =
    unsafe extern "C-unwind" fn(BufferRequested, BufferCompleted) -> CuptiStatus;
pub(super) type SwitchKind = unsafe extern "C-unwind" fn(u32) -> CuptiStatus;
/// Whether something is on.
pub(super) type Switch = unsafe extern "C-unwind" fn(u8) -> CuptiStatus;
pub(super) type EnableApi = unsafe extern "C-unwind" fn(u32, u8) -> CuptiStatus;
/// A context, a stream of it, whether null is the thread's own stream, a place for the number.
pub(super) type GetStreamId =
    unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, u8, *mut u32) -> CuptiStatus;
pub(super) type FlushAll = unsafe extern "C-unwind" fn(u32) -> CuptiStatus;
pub(super) type NextRecord = unsafe extern "C-unwind" fn(*mut u8, usize, *mut *mut u8) -> CuptiStatus;
pub(super) type Dropped = unsafe extern "C-unwind" fn(*mut c_void, u32, *mut usize) -> CuptiStatus;
pub(super) type Finalize = unsafe extern "C-unwind" fn() -> CuptiStatus;
pub(super) type ResultString = unsafe extern "C-unwind" fn(CuptiStatus, *mut *const c_char) -> CuptiStatus;

/// CUpti_CallbackDomain of the driver's functions, and of the runtime's.
pub(super) const DOMAINS: [u32; 2] = [1, 2];
/// CUpti_CallbackDomain of what comes and goes.
pub(super) const RESOURCES: u32 = 3;
/// CUpti_CallbackIdResource: a module was loaded.
pub(super) const MODULE_LOADED: u32 = 6;

/// CUpti_CallbackData, as far as it is used; newer versions have more behind it.
#[repr(C)]
pub(super) struct CallbackData {
    /// 1: the function returns.
    pub(super) site: c_int,
    pub(super) function_name: *const c_char,
    /// The function's arguments, one behind the other as in a structure of C.
    pub(super) parameters: *const c_void,
    pub(super) returned: *const c_int,
    pub(super) symbol_name: *const c_char,
    pub(super) context: *mut c_void,
    pub(super) context_uid: u32,
    pub(super) correlation_data: *mut u64,
    /// As in the activity record of the call.
    pub(super) correlation: u32,
}

/// CUpti_SubscriberParams: 32 bytes up to 13.1, 40 from 13.2 on.
#[repr(C)]
pub(super) struct SubscriberParameters {
    pub(super) size: usize,
    pub(super) name: *const c_char,
    /// Where it is put who was first.
    pub(super) holder: *mut c_char,
    pub(super) holder_size: usize,
    pub(super) shares: usize,
}

/// What cuptiGetVersion has of 13.2.
pub(super) const VERSION_13_2: u32 = 130_200;

/// CUPTI_API_EXIT.
pub(super) const RETURNS: c_int = 1;

/// CUpti_ResourceData.
#[repr(C)]
pub(super) struct ResourceData {
    pub(super) context: *mut c_void,
    pub(super) handle: *mut c_void,
    pub(super) descriptor: *const c_void,
}

/// CUpti_ModuleResourceData.
#[repr(C)]
pub(super) struct ModuleData {
    pub(super) module: u32,
    pub(super) size: usize,
    pub(super) cubin: *const u8,
}

/// CUresult.
pub(super) type DriverStatus = c_int;
pub(super) type DriverVersion = unsafe extern "C-unwind" fn(*mut c_int) -> DriverStatus;
pub(super) type DeviceCount = unsafe extern "C-unwind" fn(*mut c_int) -> DriverStatus;
pub(super) type DeviceGet = unsafe extern "C-unwind" fn(*mut c_int, c_int) -> DriverStatus;
pub(super) type DeviceText = unsafe extern "C-unwind" fn(*mut c_char, c_int, c_int) -> DriverStatus;
pub(super) type DeviceUuid = unsafe extern "C-unwind" fn(*mut [u8; 16], c_int) -> DriverStatus;
/// Of the primary context: its flags, and whether it is there.
pub(super) type PrimaryContextState =
    unsafe extern "C-unwind" fn(c_int, *mut u32, *mut c_int) -> DriverStatus;
pub(super) type DeviceAttribute = unsafe extern "C-unwind" fn(*mut c_int, c_int, c_int) -> DriverStatus;

/// CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
pub(super) const COMPUTE_CAPABILITY: [c_int; 2] = [75, 76];
