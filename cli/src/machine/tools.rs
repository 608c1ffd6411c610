//! Other tools in the environment that take what the recorder needs, and variables of ours with a name that nobody reads.

use std::ffi::OsStr;

use rpd_settings::variable;

use super::finding::MachineFinding;
use super::system::System;

/// What the recorder is called in every installation.
const OWN: [&str; 4] = ["librpd_tracer.so", "librpd_hip.so", "librpd_libraries.so", "librpd_remote.so"];
/// Beginnings of names of libraries that profile GPUs when they are preloaded.
const PROFILERS: [&str; 9] = [
    "librocprofiler",
    "libroctracer",
    "librocprof-",
    "libToolsInjection",
    "libcupti",
    "libomnitrace",
    "librocprof_trace",
    "libdh_comms",
    "liblogDuration",
];
/// Beginnings of names of libraries that check memory and threads.
const SANITIZERS: [&str; 4] = ["libasan", "libtsan", "libubsan", "liblsan"];

/// What of the environment concerns a recording.
pub(crate) fn examine(system: &System) -> Vec<MachineFinding> {
    let mut findings: Vec<MachineFinding> =
        [hsa_tools(system), preloaded(system), cuda_injection(system), rocprofiler(system)]
            .into_iter()
            .flatten()
            .collect();
    if findings.is_empty() {
        findings.push(MachineFinding::ok("other profilers", "none in the environment"));
    }
    findings.extend(misspelt(system));
    findings
}

/// Libraries of a list that are none of ours.
fn others<'a>(list: &'a str, separators: &[char]) -> Vec<&'a str> {
    let names = list.split(separators).filter(|name| !name.is_empty());
    names.filter(|name| !OWN.contains(&file_name(name))).collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn value(system: &System, name: &str) -> String {
    system.variable(name).unwrap_or_default().to_string_lossy().into_owned()
}

fn hsa_tools(system: &System) -> Option<MachineFinding> {
    let list = value(system, "HSA_TOOLS_LIB");
    let others = others(&list, &[' ', '"']);
    (!others.is_empty()).then(|| {
        MachineFinding::warn(
            "other profilers",
            format!(
                "HSA_TOOLS_LIB starts {}, which may take the runtime's functions and signals too",
                others.join(", ")
            ),
            "unset HSA_TOOLS_LIB while you record",
        )
    })
}

fn preloaded(system: &System) -> Option<MachineFinding> {
    let list = value(system, "LD_PRELOAD");
    let others = others(&list, &[' ', ':']);
    let begins =
        |names: &[&str], library: &str| names.iter().any(|begin| file_name(library).starts_with(begin));
    let profilers: Vec<&str> = others.iter().copied().filter(|library| begins(&PROFILERS, library)).collect();
    if !profilers.is_empty() {
        return Some(MachineFinding::warn(
            "other profilers",
            format!("LD_PRELOAD loads {}: two profilers in one program", profilers.join(", ")),
            "unset LD_PRELOAD while you record",
        ));
    }
    let sanitizers: Vec<&str> =
        others.iter().copied().filter(|library| begins(&SANITIZERS, library)).collect();
    (!sanitizers.is_empty()).then(|| {
        MachineFinding::warn(
            "sanitizers",
            format!("LD_PRELOAD loads {}", sanitizers.join(", ")),
            "it has to stand in front of the recorder: docs/sanitizers.md says how",
        )
    })
}

fn cuda_injection(system: &System) -> Option<MachineFinding> {
    let library = value(system, "CUDA_INJECTION64_PATH");
    (!others(&library, &[]).is_empty()).then(|| {
        MachineFinding::missing(
            "other profilers",
            format!("CUDA_INJECTION64_PATH names {library}, which gets CUPTI: of NVIDIA GPUs markers alone are recorded"),
            "unset CUDA_INJECTION64_PATH while you record",
        )
    })
}

fn rocprofiler(system: &System) -> Option<MachineFinding> {
    let set = |name: &&str| !others(&value(system, name), &[':', ' ']).is_empty();
    let names: Vec<&str> = ["ROCP_TOOL_LIB", "ROCP_TOOL_LIBRARIES", "ROCPROFILER_REGISTER_LIBRARY"]
        .into_iter()
        .filter(set)
        .collect();
    (!names.is_empty()).then(|| {
        MachineFinding::warn(
            "other profilers",
            format!("{}: AMD's rocprofiler starts a tool in each program", names.join(", ")),
            format!("unset {} while you record", names.join(" ")),
        )
    })
}

/// Variables with our beginnings that no part of rpd reads.
fn misspelt(system: &System) -> Vec<MachineFinding> {
    let known: [(&str, &[&str]); 3] = [
        ("RPDT_", &variable::RECORDER),
        ("LOGDUR_", &variable::LOGDURATION),
        ("RPD_REMOTE", &variable::LOADER),
    ];
    let lines = known.into_iter().flat_map(|(prefix, known)| {
        variable::unknown(system.variables().map(OsStr::to_os_string), prefix, known)
    });
    lines.map(|line| MachineFinding::warn("variables", line, "unset it, or correct its name")).collect()
}
