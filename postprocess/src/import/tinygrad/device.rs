//! What names of devices and copies say, and the numbers that a trace has for devices.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Devices that are no GPUs: their numbers come last.
const NO_GPU: [&str; 5] = ["CPU", "DISK", "NPY", "PYTHON", "TINYFS"];

/// How tinygrad calls the host's memory where it says from and to where a copy goes.
pub(super) const HOST: &str = "TINY";

/// What a device is called without its queue, and its queue: `AMD:1:SDMA:0` is the queue `SDMA:0` of `AMD:1`.
pub(super) fn device_and_queue(name: &str) -> (&str, &str) {
    let kind = name.find(':').unwrap_or(name.len());
    let first = name[kind..].split(':').nth(1).unwrap_or_default();
    let is_number = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit());
    let device = &name[..kind + if is_number { 1 + first.len() } else { 0 }];
    (device, name[device.len()..].trim_start_matches(':'))
}

/// The kind of a device, and its number.
fn kind_and_number(device: &str) -> (&str, u64) {
    let (kind, number) = device.split_once(':').unwrap_or((device, "0"));
    (kind, number.parse().unwrap_or(u64::MAX))
}

pub(super) fn is_gpu(device: &str) -> bool {
    let kind = kind_and_number(device).0;
    kind != HOST && !NO_GPU.contains(&kind)
}

/// From and to where something copies, by its name: `TINY -> AMD` is what ran, `copy 2.00 KB, AMD <- CPU` its launch. Nothing for kernels.
pub(super) fn ends_of_copy(name: &str) -> Option<(&str, &str)> {
    if let Some((from, to)) = name.split_once(" -> ") {
        return Some((from.trim(), to.trim()));
    }
    let (to, from) = name.strip_prefix("copy ")?.split_once("<-")?;
    Some((from.trim(), to.rsplit_once(',')?.1.trim()))
}

/// What a trace calls the type of an operation with this name.
pub(super) fn op_type(name: &str) -> &'static str {
    match ends_of_copy(name).map(|(from, to)| (is_gpu(from), is_gpu(to))) {
        None => "KernelExecution",
        Some((true, true)) => "CopyDeviceToDevice",
        Some((true, false)) => "CopyDeviceToHost",
        Some((false, true)) => "CopyHostToDevice",
        Some((false, false)) => "CopyHostToHost",
    }
}

/// The numbers of devices, and of the queues of each.
pub(super) struct Places<'a> {
    /// By their numbers.
    pub(super) devices: Vec<&'a str>,
    queues: HashMap<(&'a str, &'a str), (u32, u32)>,
}

impl<'a> Places<'a> {
    /// Of devices with these names.
    pub(super) fn of(names: impl Iterator<Item = &'a str>) -> Places<'a> {
        let mut found: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
        for name in names {
            let (device, queue) = device_and_queue(name);
            // What has no name is where kernels run, and the first of its device.
            found.entry((!is_gpu(device), kind_and_number(device), device)).or_default().insert(queue);
        }
        let mut places = Places { devices: Vec::new(), queues: HashMap::new() };
        for (gpu, ((.., device), queues)) in (0..).zip(found) {
            places.queues.extend((0..).zip(queues).map(|(number, queue)| ((device, queue), (gpu, number))));
            places.devices.push(device);
        }
        places
    }

    /// The GPU and queue of a device.
    pub(super) fn of_device(&self, name: &str) -> (u32, u32) {
        self.queues.get(&device_and_queue(name)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_have_a_number_and_a_queue() {
        for (name, expected) in [
            ("AMD", ("AMD", "")),
            ("AMD:1", ("AMD:1", "")),
            ("AMD:1:SDMA:0", ("AMD:1", "SDMA:0")),
            ("NULL:SDMA:0", ("NULL", "SDMA:0")),
            ("PYTHON:COPY", ("PYTHON", "COPY")),
            ("", ("", "")),
            (":", ("", "")),
            ("A::1", ("A", "1")),
        ] {
            assert_eq!(device_and_queue(name), expected, "{name}");
        }
    }

    #[test]
    fn copies_have_two_ends() {
        assert_eq!(ends_of_copy("TINY -> AMD"), Some(("TINY", "AMD")));
        assert_eq!(ends_of_copy("copy    2.00 KB,    NULL <- PYTHON"), Some(("PYTHON", "NULL")));
        assert_eq!(ends_of_copy("copy  128 B, AMD:1 <- AMD"), Some(("AMD", "AMD:1")));
        assert_eq!(ends_of_copy("copy  4 B, AMD <- AMD, AMD:1"), Some(("AMD, AMD:1", "AMD")));
        assert_eq!(ends_of_copy("r_64_32_16"), None);
        assert_eq!(ends_of_copy("copy_kernel"), None);
        assert_eq!(op_type("AMD -> AMD:1"), "CopyDeviceToDevice");
        assert_eq!(op_type("DISK -> NV"), "CopyHostToDevice");
    }
}
