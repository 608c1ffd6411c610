//! CUPTI's activity records: where their fields lie.
//!
//! A record has no size field; `cuptiActivityGetNextRecord` knows it. Newer versions only ever add fields at the end, so what version 12.0
//! has lies at the same place in all that follow (compared over the headers of 12.0 to 13.5). What came later is a field `since` its version.

use std::ffi::{CStr, c_char};

use rpd_transport::records::LaunchAttributes;

use super::abi::kind;
use super::field::{at, read, read_newer};

/// CUpti_ActivityKernel9 and later.
mod kernel {
    use crate::sources::cuda::field::{Field, at};
    use std::ffi::c_char;

    pub(super) const REGISTERS: Field<u16> = at(6);
    pub(super) const START: Field<u64> = at(16);
    pub(super) const END: Field<u64> = at(24);
    pub(super) const DEVICE: Field<u32> = at(40);
    pub(super) const CONTEXT: Field<u32> = at(44);
    pub(super) const STREAM: Field<u32> = at(48);
    pub(super) const GRID: Field<[u32; 3]> = at(52);
    pub(super) const BLOCK: Field<[u32; 3]> = at(64);
    pub(super) const STATIC_SHARED: Field<u32> = at(76);
    pub(super) const DYNAMIC_SHARED: Field<u32> = at(80);
    pub(super) const LOCAL: Field<u32> = at(84);
    pub(super) const CORRELATION: Field<u32> = at(92);
    pub(super) const GRID_ID: Field<u64> = at(96);
    pub(super) const NAME: Field<*const c_char> = at(104);
    pub(super) const GRAPH_NODE: Field<u64> = at(144);
    pub(super) const GRAPH: Field<u32> = at(156);
    pub(super) const CLUSTER: Field<[u32; 3]> = at(176);
}

/// CUpti_ActivityMemcpy5 and later.
mod memcpy {
    use crate::sources::cuda::field::{Field, at};

    pub(super) const KIND: Field<u8> = at(4);
    pub(super) const MEMORY_KINDS: Field<[u8; 2]> = at(5);
    pub(super) const BYTES: Field<u64> = at(8);
    pub(super) const START: Field<u64> = at(16);
    pub(super) const END: Field<u64> = at(24);
    pub(super) const DEVICE: Field<u32> = at(32);
    pub(super) const CONTEXT: Field<u32> = at(36);
    pub(super) const STREAM: Field<u32> = at(40);
    pub(super) const CORRELATION: Field<u32> = at(44);
    pub(super) const GRAPH: Field<u32> = at(72);
}

/// CUpti_ActivityMemcpyPtoP4: as a memcpy up to the stream.
mod peer {
    use crate::sources::cuda::field::{Field, at};

    pub(super) const SOURCE: Field<u32> = at(44);
    pub(super) const DESTINATION: Field<u32> = at(52);
    pub(super) const CORRELATION: Field<u32> = at(60);
    pub(super) const GRAPH: Field<u32> = at(80);
}

/// CUpti_ActivityMemset4 and later.
mod memset {
    use crate::sources::cuda::field::{Field, at};

    pub(super) const START: Field<u64> = at(16);
    pub(super) const END: Field<u64> = at(24);
    pub(super) const DEVICE: Field<u32> = at(32);
    pub(super) const CONTEXT: Field<u32> = at(36);
    pub(super) const STREAM: Field<u32> = at(40);
    pub(super) const CORRELATION: Field<u32> = at(44);
    pub(super) const GRAPH: Field<u32> = at(72);
}

/// CUpti_ActivityAPI.
mod api {
    use crate::sources::cuda::field::{Field, at};

    pub(super) const CBID: Field<u32> = at(4);
    pub(super) const START: Field<u64> = at(8);
    pub(super) const END: Field<u64> = at(16);
    pub(super) const THREAD: Field<u32> = at(28);
    pub(super) const CORRELATION: Field<u32> = at(32);
    pub(super) const RETURNED: Field<u32> = at(36);
}

/// CUpti_ActivityGraphTrace and later.
mod graph {
    use crate::sources::cuda::field::{Field, at};

    pub(super) const CORRELATION: Field<u32> = at(4);
    pub(super) const START: Field<u64> = at(8);
    pub(super) const END: Field<u64> = at(16);
    pub(super) const DEVICE: Field<u32> = at(24);
    pub(super) const GRAPH: Field<u32> = at(28);
    pub(super) const CONTEXT: Field<u32> = at(32);
    pub(super) const STREAM: Field<u32> = at(36);
}

/// CUpti_ActivityMemory3 and later.
mod memory {
    use crate::sources::cuda::field::{Field, NewerField, at, since};

    pub(super) const KIND: Field<u32> = at(8);
    pub(super) const CORRELATION: Field<u32> = at(12);
    pub(super) const ADDRESS: Field<u64> = at(16);
    pub(super) const BYTES: Field<u64> = at(24);
    /// CUpti_ActivityMemory4, of 12.6.
    pub(super) const SOURCE: NewerField<usize> = since(24, 120);
}

/// CUpti_ActivitySynchronization and later.
mod synchronization {
    use crate::sources::cuda::field::{Field, at};

    pub(super) const KIND: Field<u32> = at(4);
    pub(super) const CORRELATION: Field<u32> = at(24);
    pub(super) const CONTEXT: Field<u32> = at(28);
    pub(super) const STREAM: Field<u32> = at(32);
    pub(super) const EVENT: Field<u32> = at(36);
}

/// CUpti_ActivityStream.
mod stream {
    use crate::sources::cuda::field::{Field, at};

    pub(super) const CONTEXT: Field<u32> = at(4);
    pub(super) const STREAM: Field<u32> = at(8);
    pub(super) const PRIORITY: Field<i32> = at(12);
    pub(super) const FLAG: Field<u32> = at(16);
}

/// CUpti_ActivityContext and later.
mod context {
    use crate::sources::cuda::field::{Field, at};

    pub(super) const CONTEXT: Field<u32> = at(4);
    pub(super) const DEVICE: Field<u32> = at(8);
}

/// CUpti_ActivityOverhead and later.
mod overhead {
    use crate::sources::cuda::field::{Field, at};

    pub(super) const KIND: Field<u32> = at(4);
    pub(super) const START: Field<u64> = at(24);
    pub(super) const END: Field<u64> = at(32);
}

/// One record, as far as it is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Activity {
    Call(ApiCall),
    Operation(Operation),
    /// What else is known of the call of that number.
    Detail(u32, CallDetail),
    /// What is known of the process.
    Fact(Fact),
}

/// See [`Activity`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CallDetail {
    /// CUpti_ActivityMemoryKind, the address, and where the path of the program or library that asked for it lay; 0 where CUPTI does not know that.
    Memory { kind: u32, address: u64, bytes: u64, source: usize },
    /// CUpti_ActivitySynchronizationType, and what was waited for.
    Synchronization { kind: u32, context: u32, stream: u32, event: u32 },
}

/// See [`Activity`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fact {
    /// CUpti_ActivityStreamFlag.
    Stream { context: u32, stream: u32, priority: i32, flag: u32 },
    /// CUDA's number of its GPU.
    Context { context: u32, device: u32 },
    /// CUpti_ActivityOverheadKind, and the time in ns.
    Overhead { kind: u32, time: u64 },
}

/// A call of the driver's or the runtime's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ApiCall {
    /// Of the driver; otherwise of the runtime.
    pub(super) is_driver: bool,
    /// CUPTI's number of the function.
    pub(super) cbid: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) tid: u32,
    pub(super) correlation: u32,
    /// cudaError_t or CUresult.
    pub(super) returned: u32,
}

/// Something that a GPU did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Operation {
    /// Times are ns of the recorder's clock; both are 0 where CUPTI has none.
    pub(super) start: u64,
    pub(super) end: u64,
    /// CUDA's number of the GPU in this process.
    pub(super) device: u32,
    pub(super) context: u32,
    /// Streams have numbers of their own in each context.
    pub(super) stream: u32,
    pub(super) correlation: u32,
    /// It is of a graph's node.
    pub(super) is_of_graph: bool,
    pub(super) what: What,
}

/// See [`Operation`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum What {
    Kernel(KernelRun),
    /// Devices of the two sides; none for the host.
    Copy {
        source: Option<u32>,
        destination: Option<u32>,
        bytes: u64,
        is_pinned: bool,
    },
    Fill,
    /// All of a graph, by its number.
    Graph(u32),
}

/// The run of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct KernelRun {
    /// Mangled; CUPTI keeps it.
    pub(super) name: *const c_char,
    /// Blocks.
    pub(super) grid: [u32; 3],
    /// Threads of a block.
    pub(super) block: [u32; 3],
    /// Of a thread, as allocated.
    pub(super) registers: u16,
    /// Bytes of a block.
    pub(super) static_shared: u32,
    pub(super) dynamic_shared: u32,
    /// Bytes of a thread.
    pub(super) local: u32,
    /// CUPTI's number of the launch.
    pub(super) grid_id: u64,
    /// CUPTI's numbers of the graph and of its node; 0 for none.
    pub(super) graph: u32,
    pub(super) graph_node: u64,
    /// Blocks of a cluster; 0 where there are no clusters.
    pub(super) cluster: [u32; 3],
}

impl KernelRun {
    /// That of no kernel.
    pub(super) const NONE: KernelRun = KernelRun {
        name: std::ptr::null(),
        grid: [0; 3],
        block: [0; 3],
        registers: 0,
        static_shared: 0,
        dynamic_shared: 0,
        local: 0,
        grid_id: 0,
        graph: 0,
        graph_node: 0,
        cluster: [0; 3],
    };

    /// What is not said of each launch: a cluster of one block is none.
    pub(super) fn attributes(&self) -> LaunchAttributes {
        let has_clusters = self.cluster.into_iter().any(|blocks| blocks > 1);
        LaunchAttributes {
            graph_node: self.graph_node,
            graph: self.graph,
            // CUDA has 16 blocks in a cluster at most.
            cluster: if has_clusters { self.cluster.map(|blocks| blocks as u16) } else { [0; 3] },
            reserved: [0; 3],
        }
    }

    /// Its mangled name; empty where it has none.
    ///
    /// # Safety
    /// As CUPTI has filled it in.
    pub(super) unsafe fn name<'a>(&self) -> &'a CStr {
        // SAFETY: CUPTI's own text, which it keeps for as long as the process; null is no text.
        if self.name.is_null() { c"" } else { unsafe { CStr::from_ptr(self.name) } }
    }
}

/// What a record says; nothing for one of a kind that is not used.
///
/// # Safety
/// `record` is what CUPTI of that `version`, 12.0 or later, has given as the next record.
pub(super) unsafe fn activity(record: *const u8, version: u32) -> Option<Activity> {
    // SAFETY: every record begins with its kind, which says which fields it has.
    unsafe {
        Some(match read(record, &at::<u32>(0)) {
            kind::KERNEL | kind::CONCURRENT_KERNEL => Activity::Operation(of_kernel(record)),
            kind::MEMCPY => {
                let (source, destination) = sides(read(record, &memcpy::KIND), read(record, &memcpy::DEVICE));
                let (correlation, graph) = (read(record, &memcpy::CORRELATION), read(record, &memcpy::GRAPH));
                Activity::Operation(of_copy(record, correlation, graph, source, destination))
            }
            kind::MEMCPY2 => {
                let (source, destination) = (read(record, &peer::SOURCE), read(record, &peer::DESTINATION));
                let (correlation, graph) = (read(record, &peer::CORRELATION), read(record, &peer::GRAPH));
                Activity::Operation(of_copy(record, correlation, graph, Some(source), Some(destination)))
            }
            kind::MEMSET => Activity::Operation(Operation {
                start: read(record, &memset::START),
                end: read(record, &memset::END),
                device: read(record, &memset::DEVICE),
                context: read(record, &memset::CONTEXT),
                stream: read(record, &memset::STREAM),
                correlation: read(record, &memset::CORRELATION),
                is_of_graph: read(record, &memset::GRAPH) != 0,
                what: What::Fill,
            }),
            number @ (kind::DRIVER | kind::RUNTIME) => Activity::Call(ApiCall {
                is_driver: number == kind::DRIVER,
                cbid: read(record, &api::CBID),
                start: read(record, &api::START),
                end: read(record, &api::END),
                tid: read(record, &api::THREAD),
                correlation: read(record, &api::CORRELATION),
                returned: read(record, &api::RETURNED),
            }),
            kind::GRAPH_TRACE => Activity::Operation(Operation {
                start: read(record, &graph::START),
                end: read(record, &graph::END),
                device: read(record, &graph::DEVICE),
                context: read(record, &graph::CONTEXT),
                stream: read(record, &graph::STREAM),
                correlation: read(record, &graph::CORRELATION),
                is_of_graph: true,
                what: What::Graph(read(record, &graph::GRAPH)),
            }),
            kind::MEMORY2 => {
                let detail = CallDetail::Memory {
                    kind: read(record, &memory::KIND),
                    address: read(record, &memory::ADDRESS),
                    bytes: read(record, &memory::BYTES),
                    source: read_newer(record, &memory::SOURCE, version).unwrap_or(0),
                };
                Activity::Detail(read(record, &memory::CORRELATION), detail)
            }
            kind::SYNCHRONIZATION => {
                let detail = CallDetail::Synchronization {
                    kind: read(record, &synchronization::KIND),
                    context: read(record, &synchronization::CONTEXT),
                    stream: read(record, &synchronization::STREAM),
                    event: read(record, &synchronization::EVENT),
                };
                Activity::Detail(read(record, &synchronization::CORRELATION), detail)
            }
            kind::STREAM => Activity::Fact(Fact::Stream {
                context: read(record, &stream::CONTEXT),
                stream: read(record, &stream::STREAM),
                priority: read(record, &stream::PRIORITY),
                flag: read(record, &stream::FLAG),
            }),
            kind::CONTEXT => Activity::Fact(Fact::Context {
                context: read(record, &context::CONTEXT),
                device: read(record, &context::DEVICE),
            }),
            kind::OVERHEAD => {
                let time = read(record, &overhead::END).saturating_sub(read(record, &overhead::START));
                Activity::Fact(Fact::Overhead { kind: read(record, &overhead::KIND), time })
            }
            _ => return None,
        })
    }
}

/// # Safety
/// A kernel's record.
unsafe fn of_kernel(record: *const u8) -> Operation {
    // SAFETY: the caller's promise.
    unsafe {
        Operation {
            start: read(record, &kernel::START),
            end: read(record, &kernel::END),
            device: read(record, &kernel::DEVICE),
            context: read(record, &kernel::CONTEXT),
            stream: read(record, &kernel::STREAM),
            correlation: read(record, &kernel::CORRELATION),
            is_of_graph: read(record, &kernel::GRAPH) != 0,
            what: What::Kernel(KernelRun {
                name: read(record, &kernel::NAME),
                grid: read(record, &kernel::GRID),
                block: read(record, &kernel::BLOCK),
                registers: read(record, &kernel::REGISTERS),
                static_shared: read(record, &kernel::STATIC_SHARED),
                dynamic_shared: read(record, &kernel::DYNAMIC_SHARED),
                local: read(record, &kernel::LOCAL),
                grid_id: read(record, &kernel::GRID_ID),
                graph: read(record, &kernel::GRAPH),
                graph_node: read(record, &kernel::GRAPH_NODE),
                cluster: read(record, &kernel::CLUSTER),
            }),
        }
    }
}

/// # Safety
/// A copy's record.
unsafe fn of_copy(
    record: *const u8,
    correlation: u32,
    graph: u32,
    source: Option<u32>,
    destination: Option<u32>,
) -> Operation {
    // SAFETY: the caller's promise; both kinds of copies have these fields at the same places.
    unsafe {
        Operation {
            start: read(record, &memcpy::START),
            end: read(record, &memcpy::END),
            device: read(record, &memcpy::DEVICE),
            context: read(record, &memcpy::CONTEXT),
            stream: read(record, &memcpy::STREAM),
            correlation,
            is_of_graph: graph != 0,
            what: What::Copy {
                source,
                destination,
                bytes: read(record, &memcpy::BYTES),
                is_pinned: read(record, &memcpy::MEMORY_KINDS).contains(&PINNED),
            },
        }
    }
}

/// CUPTI_ACTIVITY_MEMORY_KIND_PINNED.
const PINNED: u8 = 2;

/// From and to which device a copy of that CUpti_ActivityMemcpyKind goes; nothing for the host.
fn sides(copy_kind: u8, device: u32) -> (Option<u32>, Option<u32>) {
    const HOST_TO_DEVICE: u8 = 1;
    const DEVICE_TO_HOST: u8 = 2;
    const HOST_TO_ARRAY: u8 = 3;
    const ARRAY_TO_HOST: u8 = 4;
    const HOST_TO_HOST: u8 = 9;
    let from_host = matches!(copy_kind, HOST_TO_DEVICE | HOST_TO_ARRAY | HOST_TO_HOST);
    let to_host = matches!(copy_kind, DEVICE_TO_HOST | ARRAY_TO_HOST | HOST_TO_HOST);
    ((!from_host).then_some(device), (!to_host).then_some(device))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::cuda::abi::OLDEST_VERSION;

    fn put(record: &mut [u8], offset: usize, bytes: &[u8]) {
        record[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    #[test]
    fn a_record_of_12_0_is_read_no_further_than_it_goes() {
        // CUpti_ActivityKernel9 has 208 bytes, Memcpy5 88, MemcpyPtoP4 96, Memset4 88, API 40; see NVIDIA's headers for the others.
        let sizes = [
            (kind::CONCURRENT_KERNEL, 208),
            (kind::MEMCPY, 88),
            (kind::MEMCPY2, 96),
            (kind::MEMSET, 88),
            (kind::RUNTIME, 40),
            (kind::GRAPH_TRACE, 48),
            (kind::MEMORY2, 120),
            (kind::SYNCHRONIZATION, 40),
            (kind::STREAM, 24),
            (kind::CONTEXT, 16),
            (kind::OVERHEAD, 40),
        ];
        for (number, size) in sizes {
            // Memory of its own: a checker of memory sees what is read behind it.
            let mut record = vec![0u8; size];
            put(&mut record, 0, &number.to_le_bytes());
            // SAFETY: as long as that record is in 12.0.
            assert!(unsafe { activity(record.as_ptr(), OLDEST_VERSION) }.is_some(), "{number}");
        }
        let other = 36u32.to_le_bytes();
        // SAFETY: the kind alone is looked at.
        assert_eq!(unsafe { activity(other.as_ptr(), OLDEST_VERSION) }, None);
    }

    #[test]
    fn a_newer_field_is_read_where_the_version_has_it() {
        let mut record = vec![0u8; 128];
        put(&mut record, 0, &kind::MEMORY2.to_le_bytes());
        put(&mut record, 120, &0x7000u64.to_le_bytes());
        for (version, expected) in [(OLDEST_VERSION, true), (23, true), (24, false), (130_500, false)] {
            // SAFETY: as long as that record is in 12.6.
            let read = unsafe { activity(record.as_ptr(), version) };
            let Some(Activity::Detail(_, CallDetail::Memory { source, .. })) = read else {
                panic!("{read:?}")
            };
            assert_eq!(source == 0, expected, "{version}");
        }
    }

    #[test]
    fn copies_have_the_sides_that_their_kind_says() {
        assert_eq!(sides(1, 3), (None, Some(3)));
        assert_eq!(sides(2, 3), (Some(3), None));
        assert_eq!(sides(8, 3), (Some(3), Some(3)));
        assert_eq!(sides(9, 3), (None, None));
    }

    #[test]
    fn fields_are_read_from_their_places() {
        let mut record = vec![0u8; 208];
        put(&mut record, 0, &kind::CONCURRENT_KERNEL.to_le_bytes());
        put(&mut record, 6, &40u16.to_le_bytes());
        put(&mut record, 16, &1000u64.to_le_bytes());
        put(&mut record, 24, &2000u64.to_le_bytes());
        put(&mut record, 44, &2u32.to_le_bytes());
        put(&mut record, 48, &13u32.to_le_bytes());
        put(&mut record, 52, &7u32.to_le_bytes());
        put(&mut record, 92, &99u32.to_le_bytes());
        put(&mut record, 144, &5u64.to_le_bytes());
        put(&mut record, 156, &1u32.to_le_bytes());
        put(&mut record, 180, &2u32.to_le_bytes());
        // SAFETY: a kernel's record.
        let Some(Activity::Operation(operation)) = (unsafe { activity(record.as_ptr(), OLDEST_VERSION) })
        else {
            panic!()
        };
        assert_eq!((operation.start, operation.end, operation.correlation), (1000, 2000, 99));
        assert_eq!((operation.context, operation.stream), (2, 13));
        assert!(operation.is_of_graph);
        let What::Kernel(run) = operation.what else { panic!("{operation:?}") };
        assert_eq!((run.registers, run.grid[0]), (40, 7));
        assert_eq!((run.graph, run.graph_node, run.cluster), (1, 5, [0, 2, 0]));
        // SAFETY: it has no name.
        assert_eq!(unsafe { run.name() }, c"");
    }
}
