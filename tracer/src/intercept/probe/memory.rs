//! What an instrumented dispatch streams its messages into: sub-buffers in memory of the host, and what the device needs to use them.

use std::time::Duration;

use rpd_dh_comms::layout::Descriptor;
use rpd_dh_comms::reader::{Reader, Regions};

use crate::hsa_runtime::abi::Agent;
use crate::intercept::kernargs::ALIGN;
use crate::intercept::runtime::Runtime;

/// How long a copy of a few bytes may take.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct MessageMemory {
    reader: Reader,
    descriptor: u64,
}

// SAFETY: memory of the process and of a device, bound to no thread.
unsafe impl Send for MessageMemory {}

/// Where the parts are, in bytes from the start of the memory of the host.
struct Parts {
    sizes: usize,
    errors: usize,
    full: usize,
    /// What is copied to the device: the descriptor and zeros for its locks.
    image: usize,
    /// Bytes of that.
    device: usize,
    all: usize,
}

impl Parts {
    fn of(count: usize, capacity: usize) -> Option<Parts> {
        let sizes = count.checked_mul(capacity)?.checked_next_multiple_of(ALIGN)?;
        let errors = sizes + (count * 8).next_multiple_of(ALIGN);
        let full = errors + ALIGN;
        let image = full + count.next_multiple_of(ALIGN);
        let device = size_of::<Descriptor>().next_multiple_of(ALIGN) + count.next_multiple_of(ALIGN);
        Some(Parts { sizes, errors, full, image, device, all: image + device })
    }
}

impl MessageMemory {
    /// So many sub-buffers of so many bytes each, for kernels of `agent`. Nothing where the runtime has not the memory.
    ///
    /// # Safety
    /// The runtime is initialised and stays so during the call, and as long as the memory is used.
    pub(super) unsafe fn allocate(
        runtime: &Runtime,
        agent: Agent,
        count: usize,
        capacity: usize,
    ) -> Option<MessageMemory> {
        let parts = Parts::of(count, capacity)?;
        // SAFETY: the caller's promise.
        let (host, device) = unsafe {
            let host = runtime.memory.kernargs(&[agent], parts.all)?;
            (host, runtime.memory.of_device(agent, parts.device))
        };
        // What is not used in the end stays: a copy that has not ended may still read and write it.
        device.and_then(|device| {
            // SAFETY: so many bytes that were just allocated.
            unsafe { host.write_bytes(0, parts.all) };
            let at = |place: usize| host.as_ptr().wrapping_add(place) as u64;
            let descriptor = Descriptor {
                sub_buffer_count: count as u64,
                sub_buffer_capacity: capacity as u64,
                buffer: at(0),
                sub_buffer_sizes: at(parts.sizes),
                error_bits: at(parts.errors),
                locks: device.as_ptr() as u64 + size_of::<Descriptor>().next_multiple_of(ALIGN) as u64,
                full_flags: at(parts.full),
            };
            // SAFETY: inside the memory, which is aligned to pages.
            unsafe { host.add(parts.image).cast::<Descriptor>().write(descriptor) };
            // SAFETY: the caller's promise; memory of this runtime that nobody else knows.
            unsafe {
                let image = host.add(parts.image);
                runtime.copy_to(agent, device.as_ptr() as u64, image, parts.device, PATIENCE)
            }
            .then_some(())?;
            // SAFETY: inside the memory, which stays as long as the runtime, and longer than this: nobody gives it back.
            let reader = unsafe {
                Reader::new(Regions {
                    count,
                    capacity,
                    buffer: host,
                    sizes: host.add(parts.sizes).cast(),
                    errors: host.add(parts.errors).cast(),
                    full: host.add(parts.full),
                })
            };
            Some(MessageMemory { reader, descriptor: device.as_ptr() as u64 })
        })
    }

    /// Its address for kernels.
    pub(super) fn descriptor(&self) -> u64 {
        self.descriptor
    }

    /// Takes out what is full; whether something was.
    pub(super) fn drain(&mut self, sink: impl FnMut(&[u8])) -> bool {
        self.reader.drain(sink) > 0
    }

    /// The kernel has ended: takes out the rest, and makes it ready for the next. What was wrong, in words.
    pub(super) fn finish(&mut self, sink: impl FnMut(&[u8])) -> Vec<String> {
        let finished = self.reader.finish(sink);
        let mut trouble = Vec::new();
        if finished.too_large {
            trouble.push(
                "messages larger than a sub-buffer were dropped by the kernel (RPDT_PROBE_SUB_BUFFER_KB)"
                    .into(),
            );
        }
        if finished.stuck > 0 {
            trouble.push(format!("{} sub-buffers were full when the kernel ended", finished.stuck));
        }
        if finished.clamped > 0 {
            trouble.push(format!("sub-buffers said sizes that they do not have: {}", finished.clamped));
        }
        trouble
    }
}
