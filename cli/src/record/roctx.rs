//! roctx for commands that have none: where the libroctx64.so of this installation is, and whether the machine has a real one.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::record::loader;

/// Names under which programs link or open roctx libraries.
const NAMES: [&str; 4] =
    ["libroctx64.so.4", "libroctx64.so", "librocprofiler-sdk-roctx.so.1", "librocprofiler-sdk-roctx.so"];
/// Where ROCm is installed.
const ROCM: [&str; 2] = ["/opt/rocm/lib", "/opt/rocm/lib64"];

/// LD_LIBRARY_PATH for a command: `before`, and behind it the directory of our own library, with which programs that want roctx
/// start and are recorded. Nothing where it must not be set: the machine has a real one, or there is none of ours.
pub(crate) fn library_path(recorder: &Path, before: Option<&OsStr>) -> Option<OsString> {
    let own = directory(recorder)?;
    let before = before.unwrap_or_default();
    let folders: Vec<PathBuf> =
        std::env::split_paths(before).filter(|folder| !folder.as_os_str().is_empty()).collect();
    if folders.contains(&own) || has_real(&folders, &own) {
        return None;
    }
    let separator: &[u8] = if before.is_empty() { b"" } else { b":" };
    Some([before, OsStr::from_bytes(separator), own.as_os_str()].into_iter().collect())
}

/// Where our libroctx64.so is, by where the recorder is: an installation, then a build directory.
pub(crate) fn directory(recorder: &Path) -> Option<PathBuf> {
    let beside = recorder.parent()?;
    let mut places = [beside.join("rpd"), beside.join("roctx"), beside.to_path_buf()].into_iter();
    places.find(|place| place.join(NAMES[0]).is_file() && !place.as_os_str().as_bytes().contains(&b':'))
}

fn has_real(folders: &[PathBuf], own: &Path) -> bool {
    let mut all = folders.iter().map(PathBuf::as_path).chain(ROCM.map(Path::new));
    all.any(|folder| folder != own && NAMES.iter().any(|name| folder.join(name).exists())) || loader_knows()
}

/// Whether the dynamic loader's cache has one.
fn loader_knows() -> bool {
    loader::cache().iter().any(|(name, _)| NAMES.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_comes_last_and_only_where_there_is_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let (recorder, real) = (dir.path().join("librpd_tracer.so"), dir.path().join("real"));
        assert_eq!(library_path(&recorder, None), None, "there is none of ours");
        for folder in ["rpd", "real"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
            std::fs::write(dir.path().join(folder).join("libroctx64.so.4"), "").unwrap();
        }
        if loader_knows() || has_real(&[], Path::new("")) {
            assert_eq!(library_path(&recorder, None), None);
            return;
        }
        let own = dir.path().join("rpd");
        assert_eq!(library_path(&recorder, None).as_deref(), Some(own.as_os_str()));
        let both: OsString = [OsStr::new("/a::/b:"), own.as_os_str()].into_iter().collect();
        assert_eq!(library_path(&recorder, Some(OsStr::new("/a::/b"))), Some(both));
        assert_eq!(library_path(&recorder, Some(real.as_os_str())), None);
        assert_eq!(library_path(&recorder, Some(own.as_os_str())), None);
    }
}
