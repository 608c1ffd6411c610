//! The kernel that a launch was to run, for launches that dispatch nothing: captured ones and those that fail.

use rpd_transport::records::KernelId;
use rpd_transport::records::NO_KERNEL;

use super::description::Api;
use super::{device, state};
use crate::gpu::kernels;

/// Place in the kernel table of the kernel that a call to `api` named by `function`, a host function or a hipFunction_t.
pub(super) fn named_by(api: &Api, function: u64, stream: u64) -> KernelId {
    let Some(hip) = state::get().filter(|_| function != 0) else { return NO_KERNEL };
    // SAFETY: the call was given the function and the stream, and has not returned: HIP has just used them.
    let name = unsafe {
        if takes_host_function(api) {
            hip.library.kernel_name_by_host_function(function, stream)
        } else {
            hip.library.kernel_name(function)
        }
    };
    name.map_or(NO_KERNEL, |name| {
        // SAFETY: as above.
        let gpu = device::gpu(unsafe { hip.library.stream_device(stream) });
        kernels::named(name, gpu)
    })
}

/// The module and driver calls take a hipFunction_t.
fn takes_host_function(api: &Api) -> bool {
    !api.name.contains("Module") && !api.name.starts_with("hipDrv")
}
