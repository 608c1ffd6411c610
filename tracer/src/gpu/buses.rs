//! Where NVIDIA's GPUs are on their buses, by which they are numbered.

use std::fs;
use std::path::Path;

/// PCI addresses of all GPUs of the node, ascending, whatever CUDA_VISIBLE_DEVICES hides. `procfs` stands for /proc.
pub(crate) fn of_nvidia(procfs: &Path) -> Vec<String> {
    let entries = fs::read_dir(procfs.join("driver/nvidia/gpus")).into_iter().flatten().flatten();
    let mut buses: Vec<String> =
        entries.filter_map(|entry| Some(entry.file_name().to_str()?.to_lowercase())).collect();
    buses.sort_unstable();
    buses
}

/// The place of that address among them.
pub(crate) fn place(buses: &[String], bdf: &str) -> Option<u32> {
    buses.iter().position(|bus| bus == bdf).map(|place| place as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_of_the_node_are_in_the_order_of_their_places() {
        let proc = tempfile::tempdir().unwrap();
        for bus in ["0000:AF:00.0", "0000:04:00.0"] {
            fs::create_dir_all(proc.path().join("driver/nvidia/gpus").join(bus)).unwrap();
        }
        let buses = of_nvidia(proc.path());
        assert_eq!(buses, ["0000:04:00.0", "0000:af:00.0"]);
        assert_eq!((place(&buses, "0000:af:00.0"), place(&buses, "0000:01:00.0")), (Some(1), None));
        assert!(of_nvidia(Path::new("/nowhere")).is_empty());
    }
}
