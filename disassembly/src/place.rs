//! The places in which distributions put LLVM's library.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Versions whose names are tried, the newest first: it knows the most processors.
const VERSIONS: std::ops::RangeInclusive<u32> = 14..=22;

/// Names to open, in order: those that the dynamic loader finds, then files where distributions and ROCm put them.
pub(crate) fn names() -> Vec<OsString> {
    let mut names: Vec<OsString> = Vec::new();
    for version in VERSIONS.rev() {
        // From 18 on the name of the library is another. Debian has the old one too.
        names.push(format!("libLLVM.so.{version}.1").into());
        names.push(format!("libLLVM-{version}.so.1").into());
        names.push(format!("libLLVM-{version}.so").into());
    }
    for version in VERSIONS.rev() {
        for folder in [
            format!("/usr/lib/llvm-{version}/lib"),
            format!("/usr/lib64/llvm{version}/lib64"),
            format!("/usr/lib64/llvm{version}/lib"),
            format!("/usr/lib/llvm/{version}/lib64"),
            format!("/usr/lib/llvm{version}/lib"),
        ] {
            names.extend(libraries(Path::new(&folder)));
        }
    }
    for folder in ["/opt/rocm/lib/llvm/lib", "/opt/rocm/llvm/lib"] {
        names.extend(libraries(Path::new(folder)));
    }
    names
}

/// The files of a folder that are LLVM's library, by their names.
fn libraries(folder: &Path) -> Vec<OsString> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_llvm = |name: &str| {
        ["libLLVM.so", "libLLVM-"].iter().any(|begin| name.starts_with(begin)) && name.contains(".so")
    };
    let paths = entries.flatten().filter(|entry| is_llvm(&entry.file_name().to_string_lossy()));
    let mut paths: Vec<OsString> = paths.map(|entry| entry.path().into_os_string()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_versions_are_tried_the_newest_first() {
        let names = names();
        let at = |name: &str| names.iter().position(|found| found == name);
        for version in 14..22 {
            let (older, newer) = (format!("libLLVM-{version}.so.1"), format!("libLLVM-{}.so.1", version + 1));
            assert!(at(&newer).is_some() && at(&newer) < at(&older), "{version}");
        }
        assert!(at("libLLVM.so.18.1").is_some());
    }

    #[test]
    fn libraries_are_known_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["libLLVM-15.so", "libLLVM.so.19.1", "libLLVMCore.a", "libLTO.so.15", "LLVMgold.so"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = libraries(folder.path());
        let wanted =
            ["libLLVM-15.so", "libLLVM.so.19.1"].map(|name| folder.path().join(name).into_os_string());
        assert_eq!(found, wanted);
        assert!(libraries(Path::new("/nowhere")).is_empty());
    }
}
