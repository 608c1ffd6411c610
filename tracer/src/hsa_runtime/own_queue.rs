//! A queue of our own, which no interceptor sees, and signals that only the device and we know.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU16, Ordering};

use super::abi::*;

/// The runtime's functions for it, the originals.
#[derive(Clone, Copy)]
pub(crate) struct QueueFunctions {
    pub(crate) create: QueueCreate,
    pub(crate) destroy: QueueDestroy,
    pub(crate) add_write_index: AddWriteIndex,
    pub(crate) signal_create: AmdSignalCreate,
    pub(crate) signal_destroy: SignalDestroy,
    pub(crate) signal_store: SignalStore,
}

/// Packets of a queue: the least that HSA allows everywhere.
const SIZE: u32 = 64;
/// hsa_queue_type_t MULTI.
const MULTI: u32 = 0;
/// The type of a packet that the device must not look at yet (HSA 1.2 §2.9.1 INVALID).
const INVALID: u16 = 1;
/// Value of a signal that nothing has changed yet.
const ARMED: i64 = 1;

impl QueueFunctions {
    /// A signal of value 1; none where the runtime has no memory for it.
    ///
    /// # Safety
    /// The runtime is initialised and stays so during the call.
    pub(crate) unsafe fn signal(&self) -> Option<Signal> {
        let mut signal = Signal(0);
        // SAFETY: the caller's promise; no consumers, a valid place for the handle.
        let status = unsafe { (self.signal_create)(ARMED, 0, ptr::null(), SIGNAL_AMD_GPU_ONLY, &mut signal) };
        (status == SUCCESS && signal.0 != 0).then_some(signal)
    }

    /// A queue on that agent.
    ///
    /// # Safety
    /// As for [`QueueFunctions::signal`].
    pub(crate) unsafe fn queue(&self, agent: Agent) -> Option<OwnQueue> {
        let mut queue = ptr::null_mut();
        // SAFETY: the caller's promise; no callback, sizes that the runtime chooses, a valid place for the address.
        let status = unsafe {
            (self.create)(agent, SIZE, MULTI, None, ptr::null_mut(), u32::MAX, u32::MAX, &mut queue)
        };
        let queue = NonNull::new(queue).filter(|_| status == SUCCESS)?;
        Some(OwnQueue { functions: *self, queue })
    }
}

pub(crate) struct OwnQueue {
    functions: QueueFunctions,
    queue: NonNull<Queue>,
}

impl OwnQueue {
    /// Gives one packet to the device.
    ///
    /// # Safety
    /// The runtime lives; fewer than [`SIZE`] packets of this queue have not completed; what the packet names stays until it has.
    pub(crate) unsafe fn submit(&self, packet: &Packet) {
        // SAFETY: a queue of the runtime, which is not destroyed yet.
        let queue = unsafe { self.queue.as_ref() };
        // SAFETY: the caller's promise.
        let index = unsafe { (self.functions.add_write_index)(queue, 1) };
        let place = (index % u64::from(queue.size)) as usize;
        let slot = queue.base_address.cast::<Packet>().wrapping_add(place);
        // SAFETY: a slot of the ring that is free by the caller's promise. The device looks at the header first, which is written last.
        unsafe {
            slot.write(Packet { header: INVALID, ..*packet });
            AtomicU16::from_ptr(slot.cast()).store(packet.header, Ordering::Release);
            (self.functions.signal_store)(queue.doorbell, index.cast_signed());
        }
    }

    /// Ends it, and with it what has not completed.
    ///
    /// # Safety
    /// The runtime lives.
    pub(crate) unsafe fn destroy(self) {
        // SAFETY: the caller's promise; a queue of the runtime, destroyed once.
        unsafe { (self.functions.destroy)(self.queue.as_ptr()) };
    }
}
