//! HIP's numbers of devices as numbers of GPUs.

use std::sync::OnceLock;

use rpd_transport::records::NO_GPU;

use crate::hsa_runtime::known;

/// The GPU that HIP calls device `ordinal`, `NO_GPU` where that is not known.
///
/// HIP numbers the GPUs that the runtime shows in the runtime's order, or those of them that HIP_VISIBLE_DEVICES or, without it,
/// CUDA_VISIBLE_DEVICES names, in the order named and up to the first name that is none (HIP 5.2 hip_device_runtime.cpp, ROCclr device.cpp).
pub(super) fn gpu(ordinal: i32) -> u32 {
    static VISIBLE: OnceLock<Vec<u32>> = OnceLock::new();
    let visible = VISIBLE.get_or_init(|| {
        let shown: Vec<(u32, &str)> = known::gpus().iter().map(|gpu| (gpu.index, &*gpu.uuid)).collect();
        let named = ["HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"].into_iter().find_map(|name| {
            let value = std::env::var(name).ok()?;
            (!value.is_empty()).then_some(value)
        });
        order(&shown, named.as_deref())
    });
    usize::try_from(ordinal).ok().and_then(|place| visible.get(place)).copied().unwrap_or(NO_GPU)
}

fn order(shown: &[(u32, &str)], named: Option<&str>) -> Vec<u32> {
    let Some(named) = named else { return shown.iter().map(|(index, _)| *index).collect() };
    let find = |name: &str| {
        let name = name.trim();
        let by_number = name.parse::<usize>().ok().and_then(|place| shown.get(place));
        by_number.or_else(|| shown.iter().find(|(_, uuid)| !uuid.is_empty() && *uuid == name))
    };
    named.split(',').map_while(find).map(|(index, _)| *index).collect()
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn devices_are_numbered_as_they_are_named() {
        let shown = [(2, "GPU-aa"), (5, "GPU-bb"), (7, "GPU-cc")];
        assert_eq!(order(&shown, None), [2, 5, 7]);
        assert_eq!(order(&shown, Some("2,0")), [7, 2]);
        assert_eq!(order(&shown, Some("GPU-bb, 0")), [5, 2]);
        assert_eq!(order(&shown, Some("1,9,0")), [5], "the rest is not looked at");
        assert_eq!(order(&shown, Some("-1")), [0u32; 0]);
    }
}
