//! Whether ROCm comes from TheRock, which madengine's tool `therock_check` asks before a run: by its command, its Python package, or its manifest.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A file in the directory of a ROCm that comes from TheRock.
pub(crate) const MANIFEST: &str = "share/therock/therock_manifest.json";
/// Variables that name such a directory, and where it is looked for too.
const VARIABLES: [&str; 3] = ["ROCM_PATH", "ROCM_HOME", "HIP_PATH"];
const PLACES: [&str; 2] = ["/opt/rocm", "/usr/local/rocm"];

/// Where TheRock was found by a command with these variables on top of this process's own, for people; nothing where it was not.
pub(crate) fn found(variables: &[(String, OsString)]) -> Option<String> {
    let variable = |name: &str| {
        let of_command = variables.iter().find(|(of, _)| of == name).map(|(_, value)| value.clone());
        of_command.or_else(|| env::var_os(name))
    };
    let directories: Vec<PathBuf> = variable("PATH").iter().flat_map(env::split_paths).collect();
    let variables = VARIABLES.into_iter().filter_map(variable).map(PathBuf::from);
    let manifest = in_directories(variables.chain(PLACES.iter().map(PathBuf::from)), MANIFEST);
    manifest.or_else(|| in_directories(directories.into_iter(), "rocm-sdk")).or_else(package)
}

fn in_directories(mut directories: impl Iterator<Item = PathBuf>, name: &str) -> Option<String> {
    let file = |directory: PathBuf| Some(directory.join(name)).filter(|file| file.is_file());
    directories.find_map(|directory| file(directory).as_deref().map(rpd_postprocess::text::escape_path))
}

/// The package that pip installs.
fn package() -> Option<String> {
    const PROGRAM: &str =
        "import importlib.util, sys\nsys.exit(importlib.util.find_spec('rocm_sdk') is None)";
    let mut python = Command::new("python3");
    python.args(["-c", PROGRAM]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let has = python.status().is_ok_and(|status| status.success());
    has.then(|| "the Python package rocm_sdk".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_in_a_directory_of_rocm() {
        let dir = tempfile::tempdir().unwrap();
        let other = || [dir.path().join("none"), dir.path().to_path_buf()].into_iter();
        assert_eq!(in_directories(other(), MANIFEST), None);
        std::fs::create_dir_all(dir.path().join("share/therock")).unwrap();
        std::fs::write(dir.path().join(MANIFEST), "{}").unwrap();
        assert!(in_directories(other(), MANIFEST).unwrap().ends_with(MANIFEST));
    }
}
