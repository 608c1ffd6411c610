//! The runtime's API tables: originals saved by value, entries replaced, both bounded by each table's own size.
//!
//! The table that a tool is given is the live one: the exported hsa_* functions jump through it, so a replaced entry is seen
//! by HIP and everything else in the process. Saved originals are called directly, never the exported names.

use std::mem::transmute_copy;

use crate::hsa_runtime::abi::*;
use crate::hsa_runtime::code::CodeFunctions;
use crate::hsa_runtime::inquiry::Inquiry;
use crate::hsa_runtime::memory::MemoryFunctions;
use crate::hsa_runtime::own_queue::QueueFunctions;

/// Size of hsa_amd tables from which on two entries are at place 17 that older ones lack (ROCm 5.6 inserted them without
/// changing the major version: hsa_api_trace.h of 5.5 and 5.6).
const NEW_LAYOUT: u32 = 456;
/// Size and step of the one extension table known to have hsa_amd_queue_create, at [`QUEUE_CREATE`]: what is behind byte 672
/// moved between versions of the same major number (hsa_api_trace.h of August 2026 and its history).
const WITH_QUEUE_CREATE: (u32, u32) = (744, 18);
/// See [`WITH_QUEUE_CREATE`].
const QUEUE_CREATE: usize = 704;

/// One table in the runtime.
#[derive(Clone, Copy)]
pub(crate) struct LiveTable {
    base: *mut TableVersion,
    size: usize,
}

impl LiveTable {
    /// # Safety
    /// `base` is null or the address of a live table of the runtime.
    pub(crate) unsafe fn new(base: *mut TableVersion) -> LiveTable {
        // SAFETY: the caller's promise. major_id 0 means "not provided".
        let size = unsafe { base.as_ref() }.filter(|v| v.major_id != 0).map_or(0, |v| v.minor_id as usize);
        LiveTable { base, size }
    }

    /// Its bytes.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Its step_id, 0 if there is none.
    pub(super) fn step(&self) -> u32 {
        // SAFETY: a table that is not null is live, by the promise of `new`.
        unsafe { self.base.as_ref() }.map_or(0, |version| version.step_id)
    }

    /// The place of the entry at byte `offset`, if this runtime's table reaches that far.
    fn slot(&self, offset: usize) -> Option<*mut usize> {
        // SAFETY: inside the table by the comparison; entries are 8 bytes, 8-aligned.
        (offset.saturating_add(8) <= self.size).then(|| unsafe { self.base.cast::<u8>().add(offset).cast() })
    }

    /// The function at `offset`.
    ///
    /// # Safety
    /// `F` is the function pointer type of that entry.
    unsafe fn get<F: Copy>(&self, offset: usize) -> Option<F> {
        const { assert!(size_of::<F>() == 8) };
        // SAFETY: a slot of a live table may be read.
        let value = self.slot(offset).map(|slot| unsafe { slot.read() }).filter(|value| *value != 0)?;
        // SAFETY: not null, and the caller names the type.
        Some(unsafe { transmute_copy(&value) })
    }

    /// Replaces the function at `offset`; nothing where the table is too short.
    ///
    /// # Safety
    /// `function` has the type of that entry and lives as long as the process.
    unsafe fn set(&self, offset: usize, function: usize) {
        if let Some(slot) = self.slot(offset) {
            // SAFETY: a slot of the live table, at the time at which tools may write it.
            unsafe { slot.write(function) };
        }
    }
}

/// Byte offsets in CoreApiTable, the same in every version from 3.5 on.
pub(crate) mod core_entry {
    pub(crate) const INIT: usize = 16;
    pub(crate) const SHUT_DOWN: usize = 24;
    pub(crate) const SYSTEM_GET_INFO: usize = 32;
    pub(crate) const ITERATE_AGENTS: usize = 56;
    pub(crate) const AGENT_GET_INFO: usize = 64;
    pub(crate) const QUEUE_CREATE: usize = 72;
    pub(crate) const QUEUE_DESTROY: usize = 88;
    pub(crate) const ADD_WRITE_INDEX_SCACQ_SCREL: usize = 184;
    pub(crate) const ADD_WRITE_INDEX_SCACQUIRE: usize = 192;
    pub(crate) const ADD_WRITE_INDEX_RELAXED: usize = 200;
    pub(crate) const ADD_WRITE_INDEX_SCRELEASE: usize = 208;
    pub(crate) const SIGNAL_CREATE: usize = 312;
    pub(crate) const SIGNAL_DESTROY: usize = 320;
    pub(crate) const SIGNAL_STORE_SCRELEASE: usize = 352;
    pub(crate) const SIGNAL_SUBTRACT_SCRELEASE: usize = 552;
    pub(crate) const EXECUTABLE_DESTROY: usize = 688;
    pub(crate) const EXECUTABLE_FREEZE: usize = 704;
    pub(crate) const SYMBOL_GET_INFO: usize = 760;
    pub(crate) const EXECUTABLE_ITERATE_SYMBOLS: usize = 768;
    pub(crate) const READER_FROM_FILE: usize = 936;
    pub(crate) const READER_FROM_MEMORY: usize = 944;
    pub(crate) const READER_DESTROY: usize = 952;
    pub(crate) const EXECUTABLE_CREATE_ALT: usize = 960;
    pub(crate) const EXECUTABLE_LOAD_AGENT_CODE_OBJECT: usize = 976;
}

/// Byte offsets in AmdExtTable; those of one layout where it moved.
pub(crate) struct AmdEntry {
    pub(crate) set_profiler_enabled: usize,
    pub(crate) async_copy_enable: usize,
    pub(crate) get_async_copy_time: usize,
    pub(crate) convert_tick: usize,
    pub(crate) signal_async_handler: usize,
    pub(crate) memory_pool_get_info: usize,
    pub(crate) iterate_memory_pools: usize,
    pub(crate) memory_pool_allocate: usize,
    pub(crate) memory_pool_free: usize,
    pub(crate) agents_allow_access: usize,
    pub(crate) pointer_info: usize,
    pub(crate) memory_async_copy: usize,
    /// Only in the new layout.
    pub(crate) memory_async_copy_on_engine: Option<usize>,
    pub(crate) signal_create: usize,
    pub(crate) intercept_create: usize,
    pub(crate) intercept_register: usize,
    pub(crate) set_priority: usize,
    pub(crate) set_cu_mask: usize,
    pub(crate) memory_async_copy_rect: usize,
    /// Only in the new layout; tables of 2026 reach so far.
    pub(crate) counted_queue_acquire: Option<usize>,
    /// As the one before.
    pub(crate) memory_async_batch_copy: Option<usize>,
    /// Only where its place is known.
    pub(crate) queue_create: Option<usize>,
}

impl AmdEntry {
    /// The layout of a table of `size` bytes (minor_id) and that step_id.
    pub(crate) fn of(size: u32, step: u32) -> AmdEntry {
        let new = size >= NEW_LAYOUT;
        let moved = if new { 16 } else { 0 };
        AmdEntry {
            set_profiler_enabled: 32,
            async_copy_enable: 40,
            get_async_copy_time: 56,
            convert_tick: 64,
            signal_async_handler: 72,
            memory_pool_get_info: 104,
            iterate_memory_pools: 112,
            memory_pool_allocate: 120,
            memory_pool_free: 128,
            agents_allow_access: 152 + moved,
            pointer_info: 224 + moved,
            memory_async_copy: 136,
            memory_async_copy_on_engine: new.then_some(144),
            signal_create: 264 + moved,
            intercept_create: 296 + moved,
            intercept_register: 304 + moved,
            set_priority: 312 + moved,
            set_cu_mask: 96,
            memory_async_copy_rect: 320 + moved,
            counted_queue_acquire: new.then_some(624),
            memory_async_batch_copy: new.then_some(640),
            queue_create: ((size, step) == WITH_QUEUE_CREATE).then_some(QUEUE_CREATE),
        }
    }
}

macro_rules! originals {
    ($entry:ident: $($name:ident: $type:ty = $table:ident[$offset:expr]),* $(,)?) => {
        /// The runtime's own functions.
        pub(crate) struct Originals {
            $(pub(crate) $name: $type,)*
            /// Copies on a chosen engine, from ROCm 5.6 on.
            pub(crate) memory_async_copy_on_engine: Option<MemoryAsyncCopyOnEngine>,
            /// Queues that several users share, where the runtime has them.
            pub(crate) counted_queue_acquire: Option<CountedQueueAcquire>,
            /// Several copies in one call, where the runtime has that.
            pub(crate) memory_async_batch_copy: Option<MemoryAsyncBatchCopy>,
            /// Queues by descriptor, where the runtime has them.
            pub(crate) create_described: Option<CreateDescribed>,
        }

        impl Originals {
            /// Reads them from the live tables; the name of the first that is missing otherwise.
            ///
            /// # Safety
            /// The tables are those of the calling runtime, and `amd` has the layout that `entry` describes.
            pub(crate) unsafe fn read(core: LiveTable, amd: LiveTable, $entry: &AmdEntry) -> Result<Originals, &'static str> {
                Ok(Originals {
                    // SAFETY: each type is the one the headers give for that entry.
                    $($name: unsafe { originals!(@$table core amd).get($offset) }.ok_or(stringify!($name))?,)*
                    // SAFETY: as above.
                    memory_async_copy_on_engine: $entry.memory_async_copy_on_engine.and_then(|at| unsafe { amd.get(at) }),
                    // SAFETY: as above.
                    counted_queue_acquire: $entry.counted_queue_acquire.and_then(|at| unsafe { amd.get(at) }),
                    // SAFETY: as above.
                    memory_async_batch_copy: $entry.memory_async_batch_copy.and_then(|at| unsafe { amd.get(at) }),
                    // SAFETY: as above.
                    create_described: $entry.queue_create.and_then(|at| unsafe { amd.get(at) }),
                })
            }
        }
    };
    (@core $core:ident $amd:ident) => { $core };
    (@amd $core:ident $amd:ident) => { $amd };
}

originals! { entry:
    init: NoArguments = core[core_entry::INIT],
    shut_down: NoArguments = core[core_entry::SHUT_DOWN],
    system_get_info: SystemGetInfo = core[core_entry::SYSTEM_GET_INFO],
    iterate_agents: IterateAgents = core[core_entry::ITERATE_AGENTS],
    agent_get_info: AgentGetInfo = core[core_entry::AGENT_GET_INFO],
    queue_create: QueueCreate = core[core_entry::QUEUE_CREATE],
    queue_destroy: QueueDestroy = core[core_entry::QUEUE_DESTROY],
    add_write_index_scacq_screl: AddWriteIndex = core[core_entry::ADD_WRITE_INDEX_SCACQ_SCREL],
    add_write_index_scacquire: AddWriteIndex = core[core_entry::ADD_WRITE_INDEX_SCACQUIRE],
    add_write_index_relaxed: AddWriteIndex = core[core_entry::ADD_WRITE_INDEX_RELAXED],
    add_write_index_screlease: AddWriteIndex = core[core_entry::ADD_WRITE_INDEX_SCRELEASE],
    signal_create: SignalCreate = core[core_entry::SIGNAL_CREATE],
    signal_destroy: SignalDestroy = core[core_entry::SIGNAL_DESTROY],
    signal_store: SignalStore = core[core_entry::SIGNAL_STORE_SCRELEASE],
    signal_subtract: SignalStore = core[core_entry::SIGNAL_SUBTRACT_SCRELEASE],
    executable_destroy: ExecutableDestroy = core[core_entry::EXECUTABLE_DESTROY],
    executable_freeze: ExecutableFreeze = core[core_entry::EXECUTABLE_FREEZE],
    executable_iterate_symbols: ExecutableIterateSymbols = core[core_entry::EXECUTABLE_ITERATE_SYMBOLS],
    symbol_get_info: SymbolGetInfo = core[core_entry::SYMBOL_GET_INFO],
    reader_from_file: ReaderFromFile = core[core_entry::READER_FROM_FILE],
    reader_from_memory: ReaderFromMemory = core[core_entry::READER_FROM_MEMORY],
    reader_destroy: ReaderDestroy = core[core_entry::READER_DESTROY],
    executable_create_alt: ExecutableCreateAlt = core[core_entry::EXECUTABLE_CREATE_ALT],
    executable_load_agent_code_object: ExecutableLoadAgentCodeObject =
        core[core_entry::EXECUTABLE_LOAD_AGENT_CODE_OBJECT],
    set_profiler_enabled: SetProfilerEnabled = amd[entry.set_profiler_enabled],
    async_copy_enable: AsyncCopyEnable = amd[entry.async_copy_enable],
    get_async_copy_time: GetAsyncCopyTime = amd[entry.get_async_copy_time],
    convert_tick: ConvertTick = amd[entry.convert_tick],
    signal_async_handler: SignalAsyncHandler = amd[entry.signal_async_handler],
    memory_pool_get_info: PoolGetInfo = amd[entry.memory_pool_get_info],
    iterate_memory_pools: IteratePools = amd[entry.iterate_memory_pools],
    memory_pool_allocate: PoolAllocate = amd[entry.memory_pool_allocate],
    memory_pool_free: PoolFree = amd[entry.memory_pool_free],
    agents_allow_access: AllowAccess = amd[entry.agents_allow_access],
    pointer_info: GetPointerInfo = amd[entry.pointer_info],
    memory_async_copy: MemoryAsyncCopy = amd[entry.memory_async_copy],
    amd_signal_create: AmdSignalCreate = amd[entry.signal_create],
    intercept_create: QueueCreate = amd[entry.intercept_create],
    intercept_register: QueueInterceptRegister = amd[entry.intercept_register],
    set_priority: SetPriority = amd[entry.set_priority],
    set_cu_mask: SetCuMask = amd[entry.set_cu_mask],
    memory_async_copy_rect: MemoryAsyncCopyRect = amd[entry.memory_async_copy_rect],
}

/// Puts the recorder's hooks into the live tables.
///
/// # Safety
/// The tables are those of the calling runtime, which offers them to tools at this moment; `hooks` have the types of their entries.
pub(crate) unsafe fn patch(table: LiveTable, hooks: &[(usize, usize)]) {
    for (offset, function) in hooks {
        // SAFETY: the caller's promise.
        unsafe { table.set(*offset, *function) };
    }
}

/// The function at `offset` as an address, 0 where there is none.
pub(crate) fn address(table: LiveTable, offset: usize) -> usize {
    // SAFETY: usize stands for any function pointer here; it is only compared.
    unsafe { table.get::<usize>(offset) }.unwrap_or(0)
}

impl From<&Originals> for Inquiry {
    fn from(originals: &Originals) -> Inquiry {
        Inquiry {
            system_get_info: originals.system_get_info,
            iterate_agents: originals.iterate_agents,
            agent_get_info: originals.agent_get_info,
            async_copy_enable: originals.async_copy_enable,
        }
    }
}

impl From<&Originals> for CodeFunctions {
    fn from(originals: &Originals) -> CodeFunctions {
        CodeFunctions {
            symbol_get_info: originals.symbol_get_info,
            iterate_symbols: originals.executable_iterate_symbols,
            reader_from_memory: originals.reader_from_memory,
            reader_destroy: originals.reader_destroy,
            executable_create: originals.executable_create_alt,
            load_agent_code_object: originals.executable_load_agent_code_object,
            freeze: originals.executable_freeze,
            executable_destroy: originals.executable_destroy,
        }
    }
}

impl From<&Originals> for MemoryFunctions {
    fn from(originals: &Originals) -> MemoryFunctions {
        MemoryFunctions {
            iterate_agents: originals.iterate_agents,
            iterate_pools: originals.iterate_memory_pools,
            pool_get_info: originals.memory_pool_get_info,
            pool_allocate: originals.memory_pool_allocate,
            pool_free: originals.memory_pool_free,
            allow_access: originals.agents_allow_access,
            pointer_info: originals.pointer_info,
            async_copy: originals.memory_async_copy,
        }
    }
}

impl From<&Originals> for QueueFunctions {
    fn from(originals: &Originals) -> QueueFunctions {
        QueueFunctions {
            create: originals.queue_create,
            destroy: originals.queue_destroy,
            add_write_index: originals.add_write_index_relaxed,
            signal_create: originals.amd_signal_create,
            signal_destroy: originals.signal_destroy,
            signal_store: originals.signal_store,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of `size` bytes in a buffer that is larger: what lies behind belongs to somebody else.
    fn table(buffer: &mut [usize; 64], size: u32) -> LiveTable {
        buffer.fill(0xdead);
        let version = TableVersion { major_id: 1, minor_id: size, step_id: 0, reserved: 0 };
        let base = buffer.as_mut_ptr().cast::<TableVersion>();
        // SAFETY: the buffer is large enough and aligned for the version, and lives as long as the table.
        unsafe {
            base.write(version);
            LiveTable::new(base)
        }
    }

    #[test]
    fn nothing_behind_the_end_is_read_or_written() {
        let mut buffer = [0; 64];
        let table = table(&mut buffer, 400);
        assert_eq!(address(table, 392), 0xdead);
        for behind in [393, 396, 400, 408, usize::MAX & !7] {
            assert_eq!(address(table, behind), 0, "offset {behind}");
        }
        // SAFETY: plain numbers in a buffer of ours.
        unsafe { patch(table, &[(392, 7), (396, 8), (400, 9)]) };
        assert_eq!(address(table, 392), 7);
        assert_eq!(buffer[50], 0xdead, "offset 400 is not the table's");
    }

    #[test]
    fn a_table_that_is_not_provided_has_no_entries() {
        // SAFETY: null is allowed.
        assert_eq!(address(unsafe { LiveTable::new(std::ptr::null_mut()) }, 16), 0);
        let mut buffer = [0usize; 64];
        buffer[2] = 1;
        // SAFETY: a version of zeros: major_id 0.
        assert_eq!(address(unsafe { LiveTable::new(buffer.as_mut_ptr().cast()) }, 16), 0);
    }

    /// Offsets by offsetof over the headers of each release.
    #[test]
    fn layouts_of_the_amd_table() {
        for (release, size, on_engine, signal_create, intercept_create, rect) in [
            ("3.5", 360, None, 264, 296, 320),
            ("5.2", 400, None, 264, 296, 320),
            ("5.5", 424, None, 264, 296, 320),
            ("5.6", 456, Some(144), 280, 312, 336),
            ("6.1", 560, Some(144), 280, 312, 336),
            ("7.0", 608, Some(144), 280, 312, 336),
        ] {
            let entry = AmdEntry::of(size, 0);
            assert_eq!(entry.memory_async_copy_on_engine, on_engine, "{release}");
            assert_eq!(entry.signal_create, signal_create, "{release}");
            assert_eq!(entry.intercept_create, intercept_create, "{release}");
            assert_eq!(entry.intercept_register, intercept_create + 8, "{release}");
            assert_eq!(entry.memory_async_copy_rect, rect, "{release}");
            assert_eq!(entry.queue_create, None, "{release}");
            let of_2026 = (entry.counted_queue_acquire, entry.memory_async_batch_copy);
            assert_eq!(of_2026, on_engine.map_or((None, None), |_| (Some(624), Some(640))), "{release}");
        }
        assert_eq!(AmdEntry::of(744, 18).queue_create, Some(704));
        assert_eq!(AmdEntry::of(744, 17).queue_create, None, "another order of the entries at the end");
    }
}
