//! The names of the environment variables, so that a misspelt one is noticed. docs/environment.md says what they mean.

use std::ffi::OsString;

use crate::nearest::tip;

/// Those of the recorder, in the order of the page.
pub const RECORDER: [&str; 48] = [
    "RPDT_FILENAME",
    "RPDT_APPEND",
    "RPDT_AUTOSTART",
    "RPDT_DELAY",
    "RPDT_DURATION",
    "RPDT_MAX_MB",
    "RPDT_ROTATE",
    "RPDT_AUTOFLUSH",
    "RPDT_BUFFER_MB",
    "RPDT_WAIT_MS",
    "RPDT_EXIT_MS",
    "RPDT_LOG",
    "RPDT_LOG_FILE",
    "RPDT_STACKFRAMES",
    "RPDT_TICKS",
    "RPDT_TIMING",
    "RPDT_HIP_APIS",
    "RPDT_HSA_APIS",
    "RPDT_HIP_CALLS",
    // The name that RPDT_HIP_CALLS had.
    "RPDT_HIP_DOOR",
    "RPDT_CUPTI",
    "RPDT_CUPTI_YIELD",
    "RPDT_CUDA_APIS",
    "RPDT_CUDA_GRAPHS",
    "RPDT_LIBRARIES",
    "RPDT_MONITOR",
    "RPDT_MONITOR_GPUS",
    "RPDT_MONITOR_PERIOD",
    "RPDT_MONITOR_PROCESS",
    "RPDT_PROCFS",
    "RPDT_SYSFS",
    // The names that rocmProfileData has for them.
    "RPDT_SMI_METRICS",
    "RPDT_SMI_PERIOD",
    "RPDT_ALTERNATE",
    "RPDT_SEED",
    "RPDT_VALIDATE",
    "RPDT_VALIDATE_CALLS",
    "RPDT_VALIDATE_AS",
    "RPDT_VALIDATE_MB",
    "RPDT_PROBE_SUB_BUFFERS",
    "RPDT_PROBE_SUB_BUFFER_KB",
    "RPDT_PROBE_IN_FLIGHT",
    "RPDT_COUNT_BLOCKS",
    // Set by `rpd probe`.
    "RPDT_HANDLER_SOCKETS",
    "RPDT_SAVE_CODE",
    "RPDT_REPORT",
    "RPDT_LOADED",
    // Read by a library with the feature panic-in-hooks alone.
    "RPDT_PANIC_IN",
];

/// Those that logduration and omniprobe have, in the order of the page.
pub const LOGDURATION: [&str; 9] = [
    "LOGDUR_KERNEL_CACHE",
    "LOGDUR_LIBRARY_FILTER",
    "LOGDUR_FILTER",
    "LOGDUR_LOG_LOCATION",
    "LOGDUR_LOG_FORMAT",
    "LOGDUR_INSTRUMENTED",
    "LOGDUR_DISPATCHES",
    "LOGDUR_HANDLERS",
    // Read by libraries of omniprobe's with handlers.
    "LOGDUR_VERBOSE",
];

/// Those of the loader.
pub const LOADER: [&str; 2] = ["RPD_REMOTE", "RPD_REMOTE_FROM"];

/// One line about each variable of `environment` that begins with `prefix` and is not `known`.
pub fn unknown(environment: impl Iterator<Item = OsString>, prefix: &str, known: &[&str]) -> Vec<String> {
    let names = environment.filter_map(|name| name.into_string().ok());
    let mut unknown: Vec<String> =
        names.filter(|name| name.starts_with(prefix) && !known.contains(&name.as_str())).collect();
    unknown.sort();
    unknown
        .iter()
        .map(|name| {
            format!("{name} is not a variable of rpd, and is ignored{}", tip(name, known.iter().copied()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_one_line_with_the_nearest() {
        let environment =
            ["PATH", "RPDT_FILENAM", "RPDT_LOG", "RPDT_NOTHING_OF_THE_KIND"].map(OsString::from);
        assert_eq!(
            unknown(environment.into_iter(), "RPDT_", &RECORDER),
            [
                "RPDT_FILENAM is not a variable of rpd, and is ignored; did you mean RPDT_FILENAME?",
                "RPDT_NOTHING_OF_THE_KIND is not a variable of rpd, and is ignored"
            ]
        );
        let environment = ["LOGDUR_KERNEL_CASHE", "LOGDUR_FILTER", "LOGDURATION"].map(OsString::from);
        assert_eq!(
            unknown(environment.into_iter(), "LOGDUR_", &LOGDURATION),
            [
                "LOGDUR_KERNEL_CASHE is not a variable of rpd, and is ignored; did you mean LOGDUR_KERNEL_CACHE?"
            ]
        );
    }

    /// The page is what users look names up in.
    #[test]
    fn every_name_is_on_the_page() {
        let page = include_str!("../../docs/environment.md");
        for name in RECORDER
            .iter()
            .chain(&LOGDURATION)
            .chain(&LOADER)
            .filter(|name| !["RPDT_PANIC_IN"].contains(*name))
        {
            assert!(page.contains(&format!("`{name}")), "{name}");
        }
    }
}
