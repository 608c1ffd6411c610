//! Link options of librpd_hip.so, and the list of its symbols: the functions that the recorder has wrappers for.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const DESCRIPTION: &str = "../tracer/src/sources/hip/description/hip_api.tsv";
const TABLE: &str = "../tracer/src/sources/hip/description/dispatch.txt";

/// Functions that HIP has (also) as those of C++, with their symbols there.
const MANGLED: [(&str, &str); 4] = [
    ("hipCreateSurfaceObject", "_Z22hipCreateSurfaceObjectPP13__hip_surfacePK15hipResourceDesc"),
    ("hipDestroySurfaceObject", "_Z23hipDestroySurfaceObjectP13__hip_surface"),
    (
        "hipExtModuleLaunchKernel",
        "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j",
    ),
    (
        "hipHccModuleLaunchKernel",
        "_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_",
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    // Programs keep the addresses of these functions.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librpd_hip.so");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs");
    for file in ["build.rs", DESCRIPTION, TABLE] {
        println!("cargo:rerun-if-changed={file}");
    }
    let (description, table) = (fs::read_to_string(DESCRIPTION)?, fs::read_to_string(TABLE)?);
    let described = description.lines().filter_map(|line| line.strip_prefix("api\t")?.split('\t').next());
    let described: BTreeSet<&str> = described.collect();
    // Functions for streams of a thread are wrapped as those that they stand for.
    let others = table.lines().filter_map(|line| line.split(' ').nth(2));
    let others = others.filter(|name| name.strip_suffix("_spt").is_some_and(|name| described.contains(name)));
    let mut names: BTreeSet<&str> = described.iter().copied().chain(others).collect();
    // They return texts, not a status: they are not recorded.
    names.retain(|name| !["hipGetErrorString", "hipGetErrorName"].contains(name));
    let mangled =
        MANGLED.into_iter().filter(|(name, _)| names.contains(name)).map(|(name, symbol)| (symbol, name));
    let symbols: BTreeMap<&str, &str> = names.iter().map(|name| (*name, *name)).chain(mangled).collect();
    // In a process without HIP there is no GPU: hipErrorNoDevice.
    let mut text = format!(
        "rpd_interposition::interpose! {{ asks c\"rpd_hip_symbol\", without 100; {}\n",
        symbols.len()
    );
    for (place, (symbol, name)) in symbols.iter().enumerate() {
        writeln!(text, "    {place} {symbol} c\"{symbol}\" c\"{name}\";")?;
    }
    text.push_str("}\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("symbols.rs"), text)?;
    Ok(())
}
