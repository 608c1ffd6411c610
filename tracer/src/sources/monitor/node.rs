//! The GPUs of this node where no GPU runtime tells of them: AMD's as the kernel's driver lists them, NVIDIA's as NVML does. They have the
//! numbers that recordings of programs give them.

use std::path::Path;

use rpd_transport::source::GpuFacts;

use super::nvml;
use super::sysfs;
use crate::gpu::buses;
use crate::hsa_runtime::agent;

/// The topology of the driver of AMD's GPUs, below /sys.
const TOPOLOGY: &str = "class/kfd/kfd/topology/nodes";

/// All of them. `root` stands for /sys, `procfs` for /proc.
pub(super) fn gpus(root: &Path, procfs: &Path) -> Vec<GpuFacts> {
    number(root, &buses::of_nvidia(procfs), nvml::gpus())
}

/// AMD's GPUs come first, as the topology numbers them; then NVIDIA's. Where ROCm's part of AMD's driver is not there, no recording has
/// AMD's GPUs: the cards of the other part come last, by their PCI addresses.
fn number(root: &Path, buses: &[String], nvidia: Vec<GpuFacts>) -> Vec<GpuFacts> {
    let nodes = root.join(TOPOLOGY);
    let numbers = agent::gpu_nodes(&nodes);
    let of_node = |(index, node): (u32, &u32)| of_node(index, &nodes.join(node.to_string()));
    let mut gpus: Vec<GpuFacts> = (0..).zip(&numbers).filter_map(of_node).collect();
    let first = numbers.len() as u32;
    let behind = first + nvidia.len().max(buses.len()) as u32;
    // A container may see some of them only.
    let place = |ordinal, gpu: &GpuFacts| buses::place(buses, &gpu.bdf).unwrap_or(ordinal);
    gpus.extend(
        (0..).zip(nvidia).map(|(ordinal, gpu)| GpuFacts { index: first + place(ordinal, &gpu), ..gpu }),
    );
    if numbers.is_empty() {
        let of_card = |(index, bdf)| GpuFacts { index, bdf, ..GpuFacts::default() };
        gpus.extend((behind..).zip(sysfs::cards(root)).map(of_card));
    }
    gpus
}

/// One of the topology; nothing for one that may not be used here.
fn of_node(index: u32, node: &Path) -> Option<GpuFacts> {
    let bdf = sysfs::node_bdf(node)?;
    let version = sysfs::node_property(node, "gfx_target_version").filter(|version| *version > 0);
    Some(GpuFacts { index, bdf, target: version.map(target).unwrap_or_default(), ..GpuFacts::default() })
}

/// 90010 is gfx90a.
fn target(version: u32) -> String {
    format!("gfx{}{}{:x}", version / 10_000, version / 100 % 100, version % 100)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn gpus_of_the_topology_have_the_numbers_of_the_node() {
        let root = tempfile::tempdir().unwrap();
        for (node, id, properties) in [
            ("0", "0", "simd_count 0\n"),
            ("1", "51", "simd_count 440\nlocation_id 1024\ndomain 0\ngfx_target_version 90010\n"),
            ("10", "52", "simd_count 440\nlocation_id 44808\ndomain 1\ngfx_target_version 100300\n"),
        ] {
            let node = root.path().join(TOPOLOGY).join(node);
            fs::create_dir_all(&node).unwrap();
            fs::write(node.join("gpu_id"), id).unwrap();
            fs::write(node.join("properties"), properties).unwrap();
        }
        // One that a container may not use.
        fs::create_dir(root.path().join(TOPOLOGY).join("3")).unwrap();
        let nvidia = GpuFacts { target: "sm_90".into(), ..GpuFacts::default() };
        let found =
            number(root.path(), &[], vec![nvidia]).into_iter().map(|gpu| (gpu.index, gpu.bdf, gpu.target));
        let found: Vec<(u32, String, String)> = found.collect();
        let expected = [(0, "0000:04:00.0", "gfx90a"), (2, "0001:af:01.0", "gfx1030"), (3, "", "sm_90")];
        assert_eq!(found, expected.map(|(index, bdf, target)| (index, bdf.to_string(), target.to_string())));
    }

    #[test]
    fn without_a_topology_cards_are_in_the_order_of_their_places() {
        let root = tempfile::tempdir().unwrap();
        for (card, driver, bdf) in [
            ("card0", "amdgpu", "0000:c3:00.0"),
            ("card1", "ast", "0000:01:00.0"),
            ("card2", "amdgpu", "0000:43:00.0"),
        ] {
            let device = root.path().join("class/drm").join(card).join("device");
            fs::create_dir_all(&device).unwrap();
            fs::write(device.join("uevent"), format!("DRIVER={driver}\nPCI_SLOT_NAME={bdf}\n")).unwrap();
        }
        let nvidia = GpuFacts { bdf: "0000:0a:00.0".into(), ..GpuFacts::default() };
        let buses = ["0000:08:00.0".to_string(), "0000:0a:00.0".to_string()];
        let found = number(root.path(), &buses, vec![nvidia]).into_iter().map(|gpu| (gpu.index, gpu.bdf));
        let expected = [(1, "0000:0a:00.0"), (2, "0000:43:00.0"), (3, "0000:c3:00.0")];
        assert_eq!(found.collect::<Vec<_>>(), expected.map(|(index, bdf)| (index, bdf.to_string())));
        assert!(number(Path::new("/nowhere"), &[], Vec::new()).is_empty());
    }
}
