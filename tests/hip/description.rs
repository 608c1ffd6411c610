use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::harness::tool;

/// Exported functions that have no id of their own in HIP's table of callbacks, so that it never tells of them.
const NO_CALLBACK: [&str; 51] = [
    // Called by compiled code and by tools.
    "__hipGetPCH",
    "__hipRegisterFatBinary",
    "__hipRegisterFunction",
    "__hipRegisterManagedVar",
    "__hipRegisterSurface",
    "__hipRegisterTexture",
    "__hipRegisterVar",
    "__hipUnregisterFatBinary",
    "hipApiName",
    "hipEnableActivityCallback",
    "hipGetCmdName",
    "hipGetStreamDeviceId",
    "hipInitActivityCallback",
    "hipKernelNameRef",
    "hipKernelNameRefByPtr",
    "hipRegisterActivityCallback",
    "hipRegisterApiCallback",
    "hipRemoveActivityCallback",
    "hipRemoveApiCallback",
    // Say something that never changes.
    "hipCreateChannelDesc",
    "hipDriverGetVersion",
    "hipGetErrorName",
    "hipRuntimeGetVersion",
    // Textures, most of them without a GPU operation.
    "hipBindTexture",
    "hipBindTexture2D",
    "hipBindTextureToArray",
    "hipBindTextureToMipmappedArray",
    "hipCreateTextureObject",
    "hipDestroyTextureObject",
    "hipGetTextureAlignmentOffset",
    "hipGetTextureObjectResourceDesc",
    "hipGetTextureObjectResourceViewDesc",
    "hipGetTextureObjectTextureDesc",
    "hipGetTextureReference",
    "hipTexObjectCreate",
    "hipTexObjectDestroy",
    "hipTexObjectGetResourceDesc",
    "hipTexObjectGetResourceViewDesc",
    "hipTexObjectGetTextureDesc",
    "hipTexRefGetAddressMode",
    "hipTexRefGetFilterMode",
    "hipTexRefGetMipmapFilterMode",
    "hipTexRefSetAddressMode",
    "hipTexRefSetArray",
    "hipTexRefSetFilterMode",
    "hipTexRefSetFlags",
    "hipTexRefSetMipmapFilterMode",
    "hipTexRefSetMipmapLevelBias",
    "hipUnbindTexture",
    "hipGetErrorString",
    "hipMemcpyFromArray",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("tracer/src/sources/hip/description")
}

fn described() -> BTreeSet<String> {
    let text = std::fs::read_to_string(folder().join("hip_api.tsv")).unwrap();
    text.lines()
        .filter_map(|line| Some(line.strip_prefix("api\t")?.split('\t').next()?.to_string()))
        .collect()
}

#[test]
fn every_exported_function_is_described_or_has_its_reason() {
    let exports = tool("nm", &["-D", "--defined-only", "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5"]);
    let described = described();
    let reasons = BTreeSet::from(NO_CALLBACK);
    let mut missing = Vec::new();
    for line in exports.lines() {
        let [_, "T" | "W", symbol] = line.split_whitespace().collect::<Vec<_>>()[..] else { continue };
        let name = symbol.split('@').next().unwrap();
        // Run-time compilation is another library in the same file, and calls nothing on the GPU.
        let is_hip = name.trim_start_matches('_').starts_with("hip") && !name.starts_with("hiprtc");
        // Functions for streams per thread report themselves under the plain name.
        let plain = name.trim_end_matches("_spt");
        if is_hip && !described.contains(plain) && !reasons.contains(name) {
            missing.push(name.to_string());
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn the_description_is_what_the_installed_headers_say() {
    let script = folder().join("generate.py");
    let made = tool("python3", &[script.to_str().unwrap(), "5.2=/usr/include"]);
    let kept = std::fs::read_to_string(folder().join("hip_api.tsv")).unwrap();
    let of_5_2 = |text: &str| -> BTreeSet<String> {
        let ours = |line: &&str| line.split('\t').any(|cell| cell == "5.2");
        text.lines().filter(ours).map(str::to_string).collect()
    };
    assert_eq!(of_5_2(&made), of_5_2(&kept), "run `make hip-api`");
    assert!(of_5_2(&made).len() > 300);
}
