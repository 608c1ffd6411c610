//! Memory that the runtime has: LDS of an agent, memory for kernel arguments, allocations of the application and copies of them.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use rpd_transport::records::NO_GPU;

use super::abi::*;
use super::agent::{self, Gpu, Gpus};

/// The runtime's functions for it.
pub(crate) struct MemoryFunctions {
    pub(crate) iterate_agents: IterateAgents,
    pub(crate) iterate_pools: IteratePools,
    pub(crate) pool_get_info: PoolGetInfo,
    pub(crate) pool_allocate: PoolAllocate,
    pub(crate) pool_free: PoolFree,
    pub(crate) allow_access: AllowAccess,
    pub(crate) pointer_info: GetPointerInfo,
    pub(crate) async_copy: MemoryAsyncCopy,
}

/// A piece of memory that the runtime has given to somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocation {
    /// Its address for devices.
    pub(crate) base: u64,
    /// Its address for the processor; 0 where it has none. It differs from the address for devices where the program has registered
    /// memory of its own.
    pub(crate) host_base: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// The agent whose memory it is.
    pub(crate) owner: Agent,
}

impl Allocation {
    /// Whether that address is in it.
    pub(crate) fn has(&self, address: u64) -> bool {
        address >= self.base && address - self.base < self.size
    }
}

/// hsa_amd_memory_pool_info_t.
mod pool_info {
    pub(super) const SEGMENT: u32 = 0;
    pub(super) const GLOBAL_FLAGS: u32 = 1;
    pub(super) const SIZE: u32 = 2;
    pub(super) const RUNTIME_ALLOC_ALLOWED: u32 = 5;
}
/// hsa_amd_segment_t.
const SEGMENT_GLOBAL: u32 = 0;
const SEGMENT_GROUP: u32 = 3;
/// hsa_amd_memory_pool_global_flag_t KERNARG_INIT.
const KERNARG: u32 = 1;
/// hsa_amd_memory_pool_global_flag_t COARSE_GRAINED.
const COARSE_GRAINED: u32 = 4;
/// hsa_amd_pointer_type_t UNKNOWN.
const POINTER_UNKNOWN: u32 = 0;

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
        unsafe { (self.iterate_agents)(agent::collect, (&raw mut all).cast()) };
        let mut pools = all.into_iter().flat_map(|agent| self.pools(agent));
        let pool = pools.find(|pool| self.is_global(*pool, KERNARG))?;
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

    /// So many bytes of the memory of `agent`, a GPU.
    ///
    /// # Safety
    /// As for [`MemoryFunctions::kernargs`].
    pub(crate) unsafe fn of_device(&self, agent: Agent, size: usize) -> Option<NonNull<u8>> {
        let is_usable = |pool: &Pool| {
            self.is_global(*pool, COARSE_GRAINED)
                && self
                    .number(*pool, pool_info::RUNTIME_ALLOC_ALLOWED)
                    .is_some_and(|allowed| allowed & 0xff != 0)
        };
        let pool = self.pools(agent).into_iter().find(is_usable)?;
        let mut memory = ptr::null_mut();
        // SAFETY: the caller's promise; a pool of this runtime and a place for the address.
        let status = unsafe { (self.pool_allocate)(pool, size, 0, &mut memory) };
        NonNull::new(memory.cast::<u8>()).filter(|_| status == SUCCESS)
    }

    /// Gives memory of the functions above back.
    ///
    /// # Safety
    /// As for [`MemoryFunctions::kernargs`]; nothing uses it any more.
    pub(crate) unsafe fn free(&self, memory: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { (self.pool_free)(memory.as_ptr().cast()) };
    }

    /// The allocation that an address for devices is in; none where the runtime does not know it.
    ///
    /// # Safety
    /// As for [`MemoryFunctions::kernargs`].
    pub(crate) unsafe fn allocation(&self, address: u64) -> Option<Allocation> {
        // SAFETY: zeros are a valid value of numbers and addresses.
        let mut info: AllocationInfo = unsafe { std::mem::zeroed() };
        info.size = size_of::<AllocationInfo>() as u32;
        let (no_agents, nowhere) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the caller's promise. The runtime only looks the address up; nobody wants the agents.
        let status = unsafe {
            (self.pointer_info)(address as *const c_void, &mut info, ptr::null(), no_agents, nowhere)
        };
        let allocation = Allocation {
            base: info.agent_base as u64,
            host_base: info.host_base as u64,
            size: info.bytes as u64,
            owner: info.owner,
        };
        (status == SUCCESS && info.kind != POINTER_UNKNOWN && allocation.has(address)).then_some(allocation)
    }

    /// The GPUs that a copy from `src` to `dst` by `gpu` goes to and comes from, `NO_GPU` for host memory, by who has the memory. Memory
    /// that the runtime does not know is the processor's; where it knows neither, both are taken for the GPU's own.
    ///
    /// # Safety
    /// As for [`MemoryFunctions::kernargs`].
    pub(crate) unsafe fn ends(&self, gpus: &Gpus, gpu: &Gpu, dst: u64, src: u64) -> (u32, u32) {
        // SAFETY: the caller's promise.
        let owners = [dst, src].map(|address| unsafe { self.allocation(address) });
        if owners.iter().all(Option::is_none) {
            return (gpu.index, gpu.index);
        }
        let [dst, src] = owners.map(|owner| {
            owner.and_then(|allocation| gpus.of(allocation.owner)).map_or(NO_GPU, |gpu| gpu.index)
        });
        (dst, src)
    }

    /// Begins a copy, at whose end `signal` is one less; whether the runtime has taken it.
    ///
    /// # Safety
    /// The runtime lives until the copy has ended, and both pieces of memory stay so long; both are of the runtime, and their agents are
    /// those named.
    pub(crate) unsafe fn copy(
        &self,
        (to, to_agent): (u64, Agent),
        (from, from_agent): (u64, Agent),
        bytes: usize,
        signal: Signal,
    ) -> bool {
        let (to, from) = (to as *mut c_void, from as *const c_void);
        // SAFETY: the caller's promise; the copy waits for no signal.
        let status =
            unsafe { (self.async_copy)(to, to_agent, from, from_agent, bytes, 0, ptr::null(), signal) };
        status == SUCCESS
    }

    fn is_global(&self, pool: Pool, flag: u32) -> bool {
        self.number(pool, pool_info::SEGMENT) == Some(u64::from(SEGMENT_GLOBAL))
            && self.number(pool, pool_info::GLOBAL_FLAGS).is_some_and(|flags| flags as u32 & flag != 0)
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

unsafe extern "C-unwind" fn collect_pools(pool: Pool, pools: *mut c_void) -> Status {
    // SAFETY: `pools` passes its vector.
    unsafe { &mut *pools.cast::<Vec<Pool>>() }.push(pool);
    SUCCESS
}
