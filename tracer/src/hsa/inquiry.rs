//! What may be asked of the HSA runtime at any time, by its table or by its exported functions.

use std::ffi::{CStr, c_void};

use super::abi::{AgentGetInfo, AsyncCopyEnable, IterateAgents, SystemGetInfo};
use super::table::Originals;

/// See the module.
#[derive(Clone, Copy)]
pub(super) struct Inquiry {
    pub(super) system_get_info: SystemGetInfo,
    pub(super) iterate_agents: IterateAgents,
    pub(super) agent_get_info: AgentGetInfo,
    pub(super) async_copy_enable: AsyncCopyEnable,
}

impl Inquiry {
    /// By the table.
    pub(super) fn of(originals: &Originals) -> Inquiry {
        Inquiry {
            system_get_info: originals.system_get_info,
            iterate_agents: originals.iterate_agents,
            agent_get_info: originals.agent_get_info,
            async_copy_enable: originals.async_copy_enable,
        }
    }

    /// By the exported functions of the runtime that this process has loaded.
    pub(super) fn exported() -> Option<Inquiry> {
        // SAFETY: RTLD_NOLOAD runs no code; the handle is never closed, so the functions stay.
        let handle =
            unsafe { libc::dlopen(c"libhsa-runtime64.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            return None;
        }
        let symbol = |name: &CStr| {
            // SAFETY: a handle that is never closed, a NUL-terminated name.
            let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
            (!address.is_null()).then_some(address)
        };
        // SAFETY: functions of these names have these types (HSA 1.2; ROCr 5.2 hsa_ext_amd.h).
        unsafe {
            Some(Inquiry {
                system_get_info: std::mem::transmute::<*mut c_void, SystemGetInfo>(symbol(
                    c"hsa_system_get_info",
                )?),
                iterate_agents: std::mem::transmute::<*mut c_void, IterateAgents>(symbol(
                    c"hsa_iterate_agents",
                )?),
                agent_get_info: std::mem::transmute::<*mut c_void, AgentGetInfo>(symbol(
                    c"hsa_agent_get_info",
                )?),
                async_copy_enable: std::mem::transmute::<*mut c_void, AsyncCopyEnable>(symbol(
                    c"hsa_amd_profiling_async_copy_enable",
                )?),
            })
        }
    }
}
