//! Versions of the driver and the runtimes that the process uses: two runs compare only where they are the same.

use std::fs;
use std::path::Path;

use rpd_preload::library;

/// Runtimes, and what the names of their libraries begin with.
const RUNTIMES: [(&str, &str); 2] = [("hsa", "libhsa-runtime64.so"), ("hip", "libamdhip64.so")];

/// What is known, with the names that the file has for it.
pub(crate) fn all() -> Vec<(&'static str, String)> {
    let libraries = library::all();
    let of = |start: &str| libraries.iter().find_map(|library| of_library(&library.path, start));
    let runtimes = RUNTIMES.into_iter().filter_map(|(name, start)| Some((name, of(start)?)));
    [("driver", driver())].into_iter().chain(runtimes).collect()
}

/// The version in the name of a library's file, where that begins so: the one behind all symbolic links.
fn of_library(path: &Path, start: &str) -> Option<String> {
    let is_it = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start));
    let file = fs::canonicalize(path).ok().filter(|_| is_it(path))?;
    let name = file.file_name()?.to_string_lossy().into_owned();
    name.strip_prefix(start)?.strip_prefix('.').map(str::to_string)
}

/// The driver's own version where it has one; one that came with the kernel has the kernel's.
fn driver() -> String {
    let text = |path| fs::read_to_string(path).map(|text| text.trim().to_string()).unwrap_or_default();
    let kernel = format!("Linux {}", text("/proc/sys/kernel/osrelease"));
    match text("/sys/module/amdgpu/version") {
        own if own.is_empty() => kernel,
        own => format!("amdgpu {own}, {kernel}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_has_the_version_of_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("libamdhip64.so.5.2.21153"), "").unwrap();
        std::os::unix::fs::symlink("libamdhip64.so.5.2.21153", at("libamdhip64.so.5")).unwrap();
        fs::write(at("libother.so.7"), "").unwrap();
        let of = |name: &str| of_library(&at(name), "libamdhip64.so");
        assert_eq!(of("libamdhip64.so.5"), Some("5.2.21153".to_string()));
        assert_eq!([of("libother.so.7"), of("libamdhip64.so.6")], [None, None]);
        assert!(driver().starts_with("Linux ") || driver().starts_with("amdgpu "), "{}", driver());
    }
}
