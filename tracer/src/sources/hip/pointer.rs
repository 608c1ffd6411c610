//! The place of memory, by the HSA runtime's own account.

use std::ffi::c_void;
use std::sync::OnceLock;

use rpd_transport::records::NO_GPU;
use rpd_transport::source::Transfer;

use super::{device, state};
use crate::hsa_runtime::inquiry::exported;
use crate::hsa_runtime::known;

// hipMemcpyKind (HIP 5.2 driver_types.h).
const HOST_TO_DEVICE: u32 = 1;
const DEVICE_TO_HOST: u32 = 2;
const DEVICE_TO_DEVICE: u32 = 3;

/// hsa_amd_pointer_info_t (ROCr 5.2 hsa_ext_amd.h).
#[repr(C)]
struct PointerInfo {
    size: u32,
    kind: u32,
    agent_base: *mut c_void,
    host_base: *mut c_void,
    bytes: usize,
    user_data: *mut c_void,
    owner: u64,
    global_flags: u32,
}

/// HSA_EXT_POINTER_TYPE_UNKNOWN: memory that the runtime has nothing to do with.
const UNKNOWN: u32 = 0;

type PointerInfoFunction = unsafe extern "C-unwind" fn(
    *const c_void,
    *mut PointerInfo,
    *const c_void,
    *mut u32,
    *mut *mut u64,
) -> u32;

/// Where a copy goes and comes from.
pub(super) struct CopyEnds {
    /// GPU of the destination, `NO_GPU` for the host.
    pub(super) dst_gpu: u32,
    /// GPU of the source, `NO_GPU` for the host.
    pub(super) src_gpu: u32,
    /// All host memory in it is pinned, and there is some.
    pub(super) pinned: bool,
}

impl CopyEnds {
    /// Those of a copy whose call has not returned.
    pub(super) fn of(copy: &Transfer) -> CopyEnds {
        let [to_device, from_device] = match copy.kind {
            Some(HOST_TO_DEVICE) => [true, false],
            Some(DEVICE_TO_HOST) => [false, true],
            Some(DEVICE_TO_DEVICE) => [true, true],
            _ => [false, false],
        };
        let (dst, src) = (
            Owner::of(copy.dst).or_device(copy.dst_device, to_device, copy.stream),
            Owner::of(copy.src).or_device(copy.src_device, from_device, copy.stream),
        );
        let host = || [&dst, &src].into_iter().filter(|owner| owner.gpu == NO_GPU);
        let pinned = host().next().is_some() && host().all(|owner| owner.known);
        CopyEnds { dst_gpu: dst.gpu, src_gpu: src.gpu, pinned }
    }
}

/// Who owns some memory.
struct Owner {
    /// The GPU, `NO_GPU` for the host.
    gpu: u32,
    /// The runtime knows it: GPUs reach it directly.
    known: bool,
}

impl Owner {
    /// The owner of the memory at `address`.
    fn of(address: u64) -> Owner {
        let nobody = Owner { gpu: NO_GPU, known: false };
        let Some(ask) = function().filter(|_| address != 0) else { return nobody };
        let mut info = PointerInfo {
            size: size_of::<PointerInfo>() as u32,
            kind: UNKNOWN,
            agent_base: std::ptr::null_mut(),
            host_base: std::ptr::null_mut(),
            bytes: 0,
            user_data: std::ptr::null_mut(),
            owner: 0,
            global_flags: 0,
        };
        // SAFETY: takes any address; the structure says its own size; no list of agents is asked for.
        let status = unsafe {
            ask(
                address as *const c_void,
                &mut info,
                std::ptr::null(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        if status != 0 || info.kind == UNKNOWN {
            return nobody;
        }
        Owner { gpu: known::gpu_of(info.owner).unwrap_or(NO_GPU), known: true }
    }

    /// What the call says where the runtime knows nothing: symbols and arrays are no addresses of memory.
    fn or_device(self, device: Option<i32>, on_device: bool, stream: u64) -> Owner {
        if self.known || !on_device && device.is_none() {
            return self;
        }
        let of_stream = || {
            // SAFETY: the stream of a call that has not returned.
            state::get().map_or(-1, |hip| unsafe { hip.library.stream_device(stream) })
        };
        Owner { gpu: device::gpu(device.unwrap_or_else(of_stream)), known: true }
    }
}

/// hsa_amd_pointer_info of the runtime in this process.
fn function() -> Option<PointerInfoFunction> {
    static FUNCTION: OnceLock<Option<PointerInfoFunction>> = OnceLock::new();
    // SAFETY: the function of this name has this type (ROCr 5.2 hsa_ext_amd.h).
    *FUNCTION.get_or_init(|| unsafe { exported(c"hsa_amd_pointer_info") })
}
