//! What may be asked of the HSA runtime at any time, by its table or by its exported functions.

use std::ffi::{CStr, c_void};

use super::abi::{AgentGetInfo, AsyncCopyEnable, IterateAgents, SystemGetInfo};

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct Inquiry {
    pub(crate) system_get_info: SystemGetInfo,
    pub(crate) iterate_agents: IterateAgents,
    pub(crate) agent_get_info: AgentGetInfo,
    pub(crate) async_copy_enable: AsyncCopyEnable,
}

impl Inquiry {
    /// By the exported functions of the runtime that this process has loaded.
    pub(crate) fn exported() -> Option<Inquiry> {
        // SAFETY: functions of these names have these types (HSA 1.2; ROCr 5.2 hsa_ext_amd.h).
        unsafe {
            Some(Inquiry {
                system_get_info: std::mem::transmute::<*mut c_void, SystemGetInfo>(exported(
                    c"hsa_system_get_info",
                )?),
                iterate_agents: std::mem::transmute::<*mut c_void, IterateAgents>(exported(
                    c"hsa_iterate_agents",
                )?),
                agent_get_info: std::mem::transmute::<*mut c_void, AgentGetInfo>(exported(
                    c"hsa_agent_get_info",
                )?),
                async_copy_enable: std::mem::transmute::<*mut c_void, AsyncCopyEnable>(exported(
                    c"hsa_amd_profiling_async_copy_enable",
                )?),
            })
        }
    }
}

/// The function of that name of the runtime that this process has loaded.
pub(crate) fn exported(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: RTLD_NOLOAD runs no code; the handle is never closed, so the function stays. A NUL-terminated name.
    unsafe {
        let handle = libc::dlopen(c"libhsa-runtime64.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        let address = if handle.is_null() { handle } else { libc::dlsym(handle, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }
}
