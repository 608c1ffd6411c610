//! Questions that the HSA runtime answers at any time, by its table or by its exported functions.

use std::ffi::CStr;

use rpd_preload::loaded::Loaded;

use super::abi::{AgentGetInfo, AsyncCopyEnable, IterateAgents, SystemGetInfo};

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
                system_get_info: exported(c"hsa_system_get_info")?,
                iterate_agents: exported(c"hsa_iterate_agents")?,
                agent_get_info: exported(c"hsa_agent_get_info")?,
                async_copy_enable: exported(c"hsa_amd_profiling_async_copy_enable")?,
            })
        }
    }
}

/// The function of that name of the runtime that this process has loaded.
///
/// # Safety
/// `F` is its function pointer type.
pub(crate) unsafe fn exported<F: Copy>(name: &CStr) -> Option<F> {
    // SAFETY: the caller's promise.
    unsafe { Loaded::find(c"libhsa-runtime64.so.1")?.function(name) }
}
