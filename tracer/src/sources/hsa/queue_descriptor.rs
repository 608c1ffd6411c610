//! hsa_amd_queue_create: queues by descriptor, several in one call, as HIP of the ROCm 10 line makes them.
//!
//! An intercept queue cannot be made by descriptor, so one that the older call can describe is made by that, and gets its CU mask
//! and priority afterwards. All others are made as asked for, unrecorded.

use rpd_transport::log;

use super::queue;
use super::state::{Hsa, get};
use crate::hsa_runtime::abi::*;
use crate::hsa_runtime::agent::Gpu;

/// Bytes of an AQL packet.
const PACKET: u32 = size_of::<Packet>() as u32;
/// "Unknown", for sizes that the older call asks for.
const ANY: u32 = u32::MAX;

/// hsa_amd_queue_create.
pub(super) unsafe extern "C-unwind" fn create(
    agent: Agent,
    descriptors: *mut Described,
    count: u32,
) -> Status {
    let Some(hsa) = get() else { return ERROR };
    let Some(original) = hsa.originals.create_described else { return ERROR };
    let gpu = hsa.known.gpus.of(agent).filter(|_| hsa.usable() && !descriptors.is_null());
    let Some(gpu) = gpu else {
        // SAFETY: the caller's arguments, passed on.
        return unsafe { original(agent, descriptors, count) };
    };
    let mut first_error = SUCCESS;
    for place in 0..count as usize {
        // SAFETY: the caller gives `count` descriptors.
        let described = unsafe { &mut *descriptors.add(place) };
        if made(hsa, gpu, described) {
            continue;
        }
        // SAFETY: one of the caller's descriptors, passed on.
        let status = unsafe { original(agent, described, 1) };
        if status == SUCCESS && described.engine == described::COMPUTE {
            log::problem("a queue cannot be intercepted: its kernels are not recorded");
        }
        if first_error == SUCCESS {
            first_error = status;
        }
    }
    first_error
}

/// Makes an intercept queue of that description; false if there is none like it.
fn made(hsa: &'static Hsa, gpu: &'static Gpu, described: &mut Described) -> bool {
    let packets = described.size_bytes / PACKET;
    let plain = described.version == described::VERSION
        && described.flags == 0
        && described.engine == described::COMPUTE
        && described.size_bytes.is_multiple_of(PACKET)
        && described.kind != queue::COOPERATIVE;
    if !plain {
        return false;
    }
    let mut made = std::ptr::null_mut();
    // SAFETY: the caller's values, a place for the result.
    let status = unsafe {
        queue::create_intercepted(
            (hsa, gpu),
            packets,
            described.kind,
            described.callback,
            described.data,
            described.private_segment,
            ANY,
            &mut made,
        )
    };
    if status != SUCCESS {
        return false;
    }
    // SAFETY: the queue just made, the caller's mask.
    let completed = unsafe {
        (described.cu_mask_count == 0
            || queue::set_cu_mask(made, described.cu_mask_count, described.cu_mask) == SUCCESS)
            && (described.priority == described::PRIORITY_NORMAL
                || (hsa.originals.set_priority)(made, described.priority) == SUCCESS)
    };
    if completed {
        described.queue = made;
    } else {
        // SAFETY: nobody else knows the queue.
        unsafe { queue::destroy(made) };
    }
    completed
}
