//! The names of the sensors that the recorder samples (RPDT_MONITOR, `rpd record --monitor`), as `rocpd_monitor.monitorType` has them.

/// All of them.
pub const NAMES: [&str; 10] = [
    "power",
    "energy",
    "vram",
    "sclk",
    "mclk",
    "temp_edge",
    "temp_hotspot",
    "temp_mem",
    "gpu_util",
    "mem_util",
];
