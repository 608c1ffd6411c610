//! What is used of CUDA's driver and of CUPTI: declarations of our own, after NVIDIA's public headers (CUPTI 12.0 to 13.5, CUDA 12.0 to 13.0).

use std::ffi::{c_char, c_int, c_void};

/// CUptiResult.
pub(super) type Status = c_int;

/// Values of a [`Status`] that mean something here.
pub(super) mod status {
    use super::Status;

    pub(in super::super) const SUCCESS: Status = 0;
    /// What versions before 12 answer to a second subscriber.
    pub(in super::super) const MAX_LIMIT_REACHED: Status = 12;
    pub(in super::super) const NOT_INITIALIZED: Status = 15;
    pub(in super::super) const MULTIPLE_SUBSCRIBERS: Status = 39;
}

/// CUpti_ActivityKind.
pub(super) mod kind {
    pub(in super::super) const MEMCPY: u32 = 1;
    pub(in super::super) const MEMSET: u32 = 2;
    pub(in super::super) const KERNEL: u32 = 3;
    pub(in super::super) const DRIVER: u32 = 4;
    pub(in super::super) const RUNTIME: u32 = 5;
    pub(in super::super) const CONCURRENT_KERNEL: u32 = 10;
    /// Between two GPUs.
    pub(in super::super) const MEMCPY2: u32 = 22;
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

pub(super) type GetVersion = unsafe extern "C-unwind" fn(*mut u32) -> Status;
pub(super) type Subscribe = unsafe extern "C-unwind" fn(*mut *mut c_void, Callback, *mut c_void) -> Status;
pub(super) type Unsubscribe = unsafe extern "C-unwind" fn(*mut c_void) -> Status;
pub(super) type GetCallbackName = unsafe extern "C-unwind" fn(u32, u32, *mut *const c_char) -> Status;
pub(super) type SetAttribute = unsafe extern "C-unwind" fn(u32, *mut usize, *mut c_void) -> Status;
pub(super) type SetThreadIdType = unsafe extern "C-unwind" fn(u32) -> Status;
pub(super) type RegisterTimestamp = unsafe extern "C-unwind" fn(Timestamp) -> Status;
pub(super) type RegisterCallbacks = unsafe extern "C-unwind" fn(BufferRequested, BufferCompleted) -> Status;
pub(super) type SwitchKind = unsafe extern "C-unwind" fn(u32) -> Status;
pub(super) type EnableApi = unsafe extern "C-unwind" fn(u32, u8) -> Status;
pub(super) type FlushAll = unsafe extern "C-unwind" fn(u32) -> Status;
pub(super) type NextRecord = unsafe extern "C-unwind" fn(*mut u8, usize, *mut *mut u8) -> Status;
pub(super) type Dropped = unsafe extern "C-unwind" fn(*mut c_void, u32, *mut usize) -> Status;
pub(super) type Finalize = unsafe extern "C-unwind" fn() -> Status;
pub(super) type ResultString = unsafe extern "C-unwind" fn(Status, *mut *const c_char) -> Status;

/// CUpti_CallbackDomain of the driver's functions, and of the runtime's.
pub(super) const DOMAINS: [u32; 2] = [1, 2];

/// CUresult.
pub(super) type DriverStatus = c_int;
pub(super) type DriverVersion = unsafe extern "C-unwind" fn(*mut c_int) -> DriverStatus;
pub(super) type DeviceCount = unsafe extern "C-unwind" fn(*mut c_int) -> DriverStatus;
pub(super) type DeviceGet = unsafe extern "C-unwind" fn(*mut c_int, c_int) -> DriverStatus;
pub(super) type DeviceText = unsafe extern "C-unwind" fn(*mut c_char, c_int, c_int) -> DriverStatus;
pub(super) type DeviceUuid = unsafe extern "C-unwind" fn(*mut [u8; 16], c_int) -> DriverStatus;
pub(super) type DeviceAttribute = unsafe extern "C-unwind" fn(*mut c_int, c_int, c_int) -> DriverStatus;

/// CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
pub(super) const COMPUTE_CAPABILITY: [c_int; 2] = [75, 76];
