//! CUDA's GPUs, and their numbers in the file.

use std::path::Path;
use std::sync::OnceLock;

use rpd_transport::source::GpuFacts;

use super::library::Driver;
use crate::gpu::buses;
use crate::hsa_runtime::agent;

static GPUS: OnceLock<Vec<GpuFacts>> = OnceLock::new();

/// Asks the driver, once. It has been initialised.
pub(super) fn learn(driver: &Driver) {
    GPUS.get_or_init(|| {
        // GPUs of AMD's come first, whether or not this process uses them: numbers are the node's.
        let first = agent::gpus_of_node();
        let all = buses::of_nvidia(Path::new("/proc"));
        let numbered = (0..).zip(driver.gpus());
        let facts = numbered.map(|(ordinal, gpu)| {
            let place = buses::place(&all, &gpu.bdf).unwrap_or(ordinal);
            GpuFacts {
                index: first + place,
                name: gpu.name,
                target: gpu.target,
                bdf: gpu.bdf,
                uuid: gpu.uuid,
            }
        });
        facts.collect()
    });
}

/// The GPUs that this process sees, in CUDA's order; none before they are known.
pub(super) fn gpus() -> &'static [GpuFacts] {
    GPUS.get().map_or(&[], Vec::as_slice)
}

/// The number in the file of the GPU that CUDA calls `ordinal`.
pub(super) fn index(ordinal: u32) -> u32 {
    gpus().get(ordinal as usize).map_or(ordinal, |gpu| gpu.index)
}
