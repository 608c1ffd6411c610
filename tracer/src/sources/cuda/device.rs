//! CUDA's GPUs, and their numbers in the file.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use rpd_transport::source::GpuFacts;

use super::library::Driver;
use crate::hsa_runtime::agent;

static GPUS: OnceLock<Vec<GpuFacts>> = OnceLock::new();

/// Asks the driver, once. It has been initialised.
pub(super) fn learn(driver: &Driver) {
    GPUS.get_or_init(|| {
        // GPUs of AMD's come first, whether or not this process uses them: numbers are the node's.
        let first = agent::gpus_of_node();
        let all = buses(Path::new("/proc/driver/nvidia/gpus"));
        let numbered = (0..).zip(driver.gpus());
        let facts = numbered.map(|(ordinal, gpu)| {
            let place = all.iter().position(|bus| *bus == gpu.bdf).map_or(ordinal, |place| place as u32);
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

/// PCI addresses of all GPUs of the node, in their order, whatever CUDA_VISIBLE_DEVICES hides.
fn buses(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut buses: Vec<String> =
        entries.filter_map(|entry| Some(entry.file_name().to_str()?.to_lowercase())).collect();
    buses.sort_unstable();
    buses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_of_the_node_are_in_the_order_of_their_places() {
        let folder = tempfile::tempdir().unwrap();
        for bus in ["0000:AF:00.0", "0000:04:00.0"] {
            fs::create_dir(folder.path().join(bus)).unwrap();
        }
        assert_eq!(buses(folder.path()), ["0000:04:00.0", "0000:af:00.0"]);
        assert!(buses(Path::new("/nowhere")).is_empty());
    }
}
