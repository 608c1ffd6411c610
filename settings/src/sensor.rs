//! The names of the sensors that the recorder samples (RPDT_MONITOR, `rpd record --monitor`), as `rocpd_monitor.monitorType` has them.

/// All that a GPU has; it is no fault if some are not there.
pub const AVAILABLE: &str = "available";

/// All of them.
pub const NAMES: [&str; 11] = [
    "power",
    "energy",
    "vram",
    "vram_process",
    "sclk",
    "mclk",
    "temp_edge",
    "temp_hotspot",
    "temp_mem",
    "gpu_util",
    "mem_util",
];
