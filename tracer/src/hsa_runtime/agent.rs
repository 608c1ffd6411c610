//! The GPUs of the node, as HSA agents and as numbers in the file.

use std::ffi::{CStr, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::abi::{Agent, DEVICE_GPU, SUCCESS, Status, agent_info};
use super::inquiry::Inquiry;

/// A GPU that this process sees.
pub(crate) struct Gpu {
    /// Its HSA agent.
    pub(crate) agent: Agent,
    /// Its number among the nodes of the driver's topology.
    node: u32,
    /// Index among all GPUs of the node, from 0, whatever ROCR_VISIBLE_DEVICES hides.
    pub(crate) index: u32,
    /// Target processor, such as `gfx90a`.
    pub(crate) target: String,
    /// What it is sold as.
    pub(crate) name: String,
    /// PCI address, such as `0000:03:00.0`.
    pub(crate) bdf: String,
    /// `GPU-` and 16 hex digits; empty where the runtime knows none.
    pub(crate) uuid: String,
    /// Largest queue it supports, packets.
    pub(crate) max_queue: u32,
    /// How many compute units a queue may use; none where the runtime does not say, or is told to use some alone (HSA_CU_MASK).
    pub(crate) compute_units: Option<u32>,
}

/// Queue numbers given away (0 is the copy engines'), by GPU index: over all lives of the runtime, because all share one session.
static QUEUES: [AtomicU32; MOST_GPUS] = [const { AtomicU32::new(0) }; MOST_GPUS];
/// Copies given, by GPU index.
static COPIES: [AtomicU64; MOST_GPUS] = [const { AtomicU64::new(0) }; MOST_GPUS];
/// The driver's topology.
const TOPOLOGY: &str = "/sys/devices/virtual/kfd/kfd/topology/nodes";
/// More than any node has; GPUs beyond share the last place.
const MOST_GPUS: usize = 256;

impl Gpu {
    /// Number of a new queue, from 1.
    pub(crate) fn next_queue(&self) -> u32 {
        QUEUES[self.place()].fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether it has had one queue, or none.
    pub(crate) fn has_one_queue(&self) -> bool {
        QUEUES[self.place()].load(Ordering::Relaxed) <= 1
    }

    /// How many copies it was given before this one.
    pub(crate) fn next_copy(&self) -> u64 {
        COPIES[self.place()].fetch_add(1, Ordering::Relaxed)
    }

    fn place(&self) -> usize {
        (self.index as usize).min(MOST_GPUS - 1)
    }
}

/// All GPUs that this process sees.
pub(crate) struct Gpus(Vec<Gpu>);

impl Gpus {
    /// Asks the runtime.
    pub(crate) fn find(inquiry: &Inquiry) -> Gpus {
        let mut agents: Vec<Agent> = Vec::new();
        // SAFETY: `collect` matches the callback's type and gets the vector it expects, only during the call.
        unsafe { (inquiry.iterate_agents)(collect, (&raw mut agents).cast()) };
        let nodes = gpu_nodes(Path::new(TOPOLOGY));
        let mut gpus: Vec<Gpu> = Vec::new();
        let is_masked = std::env::var_os("HSA_CU_MASK").is_some();
        for agent in agents {
            if number(inquiry, agent, agent_info::DEVICE) != Some(DEVICE_GPU) {
                continue;
            }
            let node = number(inquiry, agent, agent_info::DRIVER_NODE_ID).unwrap_or(0);
            // Without a readable topology the order of the visible agents is the best guess.
            let index = nodes.iter().position(|n| *n == node).unwrap_or(gpus.len()) as u32;
            let bdf = number(inquiry, agent, agent_info::BDFID).unwrap_or(0);
            let domain = number(inquiry, agent, agent_info::DOMAIN).unwrap_or(0);
            gpus.push(Gpu {
                agent,
                node,
                index,
                target: text(inquiry, agent, agent_info::NAME),
                name: text(inquiry, agent, agent_info::PRODUCT_NAME),
                bdf: format!("{domain:04x}:{:02x}:{:02x}.{}", bdf >> 8 & 0xff, bdf >> 3 & 0x1f, bdf & 7),
                uuid: text(inquiry, agent, agent_info::UUID),
                max_queue: number(inquiry, agent, agent_info::QUEUE_MAX_SIZE).unwrap_or(1 << 17),
                compute_units: number(inquiry, agent, agent_info::COMPUTE_UNIT_COUNT).filter(|_| !is_masked),
            });
        }
        Gpus(gpus)
    }

    /// The GPU behind `agent`; nothing for a CPU.
    pub(crate) fn of(&self, agent: Agent) -> Option<&Gpu> {
        self.0.iter().find(|gpu| gpu.agent == agent)
    }

    /// The GPU that the driver's topology calls `node`.
    pub(crate) fn at_node(&self, node: u32) -> Option<&Gpu> {
        self.0.iter().find(|gpu| gpu.node == node)
    }

    pub(crate) fn all(&self) -> &[Gpu] {
        &self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// What the runtime calls for each agent, with the vector to put it into.
pub(super) unsafe extern "C-unwind" fn collect(agent: Agent, agents: *mut c_void) -> Status {
    // SAFETY: those that have this called pass their vector.
    unsafe { &mut *agents.cast::<Vec<Agent>>() }.push(agent);
    SUCCESS
}

/// A u32 attribute.
fn number(inquiry: &Inquiry, agent: Agent, info: u32) -> Option<u32> {
    // Attributes are at most 64 bytes; a larger place than needed guards against a longer one.
    let mut value = [0u32; 16];
    // SAFETY: the buffer holds any attribute asked for here.
    let status = unsafe { (inquiry.agent_get_info)(agent, info, value.as_mut_ptr().cast()) };
    (status == SUCCESS).then_some(value[0])
}

/// A text attribute (64 bytes, NUL-terminated).
fn text(inquiry: &Inquiry, agent: Agent, info: u32) -> String {
    let mut value = [0u8; 128];
    // SAFETY: the buffer is twice the size of the longest text attribute.
    let status = unsafe { (inquiry.agent_get_info)(agent, info, value.as_mut_ptr().cast()) };
    let text = CStr::from_bytes_until_nul(&value).ok().filter(|_| status == SUCCESS);
    text.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

/// How many GPUs of AMD's the node has.
pub(crate) fn gpus_of_node() -> u32 {
    gpu_nodes(Path::new(TOPOLOGY)).len() as u32
}

/// KFD node numbers of all GPUs, ascending. A GPU that a container may not use shows its folder but not its id.
pub(crate) fn gpu_nodes(nodes: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(nodes) else { return Vec::new() };
    let mut gpus: Vec<u32> = entries
        .flatten()
        .filter_map(|entry| {
            let node = entry.file_name().to_str()?.parse().ok()?;
            let is_cpu =
                std::fs::read_to_string(entry.path().join("gpu_id")).is_ok_and(|id| id.trim() == "0");
            (!is_cpu).then_some(node)
        })
        .collect();
    gpus.sort_unstable();
    gpus
}

#[cfg(test)]
mod tests {
    #[test]
    fn nodes_without_a_gpu_are_no_gpus() {
        let dir = std::env::temp_dir().join(format!("rpd-nodes-{}", std::process::id()));
        for (node, id) in [("0", "0"), ("1", "0"), ("2", "4660"), ("10", "4661")] {
            std::fs::create_dir_all(dir.join(node)).unwrap();
            std::fs::write(dir.join(node).join("gpu_id"), id).unwrap();
        }
        std::fs::create_dir_all(dir.join("3")).unwrap();
        assert_eq!(super::gpu_nodes(&dir), [2, 3, 10], "node 3 shows no id: a GPU that may not be used");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
