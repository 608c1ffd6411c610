//! Memory that the runtime has: LDS of an agent, and memory for kernel arguments.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use super::abi::*;

/// The runtime's functions for it.
pub(crate) struct MemoryFunctions {
    pub(crate) iterate_agents: IterateAgents,
    pub(crate) iterate_pools: IteratePools,
    pub(crate) pool_get_info: PoolGetInfo,
    pub(crate) pool_allocate: PoolAllocate,
    pub(crate) allow_access: AllowAccess,
}

/// hsa_amd_memory_pool_info_t.
mod pool_info {
    pub(super) const SEGMENT: u32 = 0;
    pub(super) const GLOBAL_FLAGS: u32 = 1;
    pub(super) const SIZE: u32 = 2;
}
/// hsa_amd_segment_t.
const SEGMENT_GLOBAL: u32 = 0;
const SEGMENT_GROUP: u32 = 3;
/// hsa_amd_memory_pool_global_flag_t KERNARG_INIT.
const KERNARG: u32 = 1;

impl MemoryFunctions {
    /// Bytes of LDS that a workgroup on `agent` may have; none where the runtime does not say.
    pub(crate) fn lds(&self, agent: Agent) -> Option<u32> {
        let group = |pool: &Pool| self.number(*pool, pool_info::SEGMENT) == Some(u64::from(SEGMENT_GROUP));
        let pool = self.pools(agent).into_iter().find(group)?;
        self.number(pool, pool_info::SIZE).and_then(|size| u32::try_from(size).ok())
    }

    /// Memory for kernel arguments that `agents` read: so many bytes, never given back.
    ///
    /// # Safety
    /// The runtime is initialised and stays so during the call.
    pub(crate) unsafe fn kernargs(&self, agents: &[Agent], size: usize) -> Option<NonNull<u8>> {
        let mut all: Vec<Agent> = Vec::new();
        // SAFETY: `collect` matches the callback's type and gets the vector it expects, only during the call.
        unsafe { (self.iterate_agents)(collect_agents, (&raw mut all).cast()) };
        let is_kernarg = |pool: &Pool| {
            self.number(*pool, pool_info::SEGMENT) == Some(u64::from(SEGMENT_GLOBAL))
                && self
                    .number(*pool, pool_info::GLOBAL_FLAGS)
                    .is_some_and(|flags| flags as u32 & KERNARG != 0)
        };
        let pool = all.into_iter().flat_map(|agent| self.pools(agent)).find(is_kernarg)?;
        let mut memory = ptr::null_mut();
        // SAFETY: the caller's promise; a pool of this runtime and a place for the address.
        let status = unsafe { (self.pool_allocate)(pool, size, 0, &mut memory) };
        let memory = NonNull::new(memory.cast::<u8>()).filter(|_| status == SUCCESS)?;
        // SAFETY: as above; memory just allocated. A runtime where every agent reads it anyway may refuse.
        unsafe {
            (self.allow_access)(agents.len() as u32, agents.as_ptr(), ptr::null(), memory.as_ptr().cast())
        };
        Some(memory)
    }

    fn pools(&self, agent: Agent) -> Vec<Pool> {
        let mut pools: Vec<Pool> = Vec::new();
        // SAFETY: `collect_pools` matches the callback's type and gets the vector it expects, only during the call.
        unsafe { (self.iterate_pools)(agent, collect_pools, (&raw mut pools).cast()) };
        pools
    }

    /// An attribute of 32 or 64 bits.
    fn number(&self, pool: Pool, info: u32) -> Option<u64> {
        let mut value = 0u64;
        // SAFETY: the place holds any of the attributes asked for here; a smaller one leaves the upper half zero.
        let status = unsafe { (self.pool_get_info)(pool, info, (&raw mut value).cast()) };
        (status == SUCCESS).then_some(value)
    }
}

unsafe extern "C-unwind" fn collect_agents(agent: Agent, agents: *mut c_void) -> Status {
    // SAFETY: `kernargs` passes its vector.
    unsafe { &mut *agents.cast::<Vec<Agent>>() }.push(agent);
    SUCCESS
}

unsafe extern "C-unwind" fn collect_pools(pool: Pool, pools: *mut c_void) -> Status {
    // SAFETY: `pools` passes its vector.
    unsafe { &mut *pools.cast::<Vec<Pool>>() }.push(pool);
    SUCCESS
}
