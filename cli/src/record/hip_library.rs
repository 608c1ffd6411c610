//! The HIP that the command will find: whether symbol interposition costs less with it than HIP's callbacks.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::record::loader;

const NAME: &str = "libamdhip64.so";
/// Where ROCm is installed; its programs look here by their own run path.
const ROCM: &str = "/opt/rocm/lib";

/// Whether the dynamic loader finds HIP 5.0 to 5.2 and no other, by the version in the name of its file. That is the first one in the
/// folders of `library_path`; without one there, all that the loader's cache and ROCm's folder have.
pub(crate) fn is_old(library_path: Option<&OsStr>) -> bool {
    let folders = std::env::split_paths(library_path.unwrap_or_default());
    let given = folders.map(|folder| in_folder(&folder)).find(|found| !found.is_empty());
    let found = given.unwrap_or_else(|| {
        let cached = loader::cache().into_iter().filter(|(name, _)| name.starts_with(NAME));
        cached.map(|(_, file)| file).chain(in_folder(Path::new(ROCM))).collect()
    });
    !found.is_empty()
        && found.iter().all(|file| version(file).is_some_and(|(major, minor)| major == 5 && minor <= 2))
}

fn in_folder(folder: &Path) -> Vec<PathBuf> {
    // An empty name is the current directory.
    let entries = fs::read_dir(folder.join(".")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|file| suffix(file).is_some()).collect()
}

/// What follows HIP's name in that of `file`.
fn suffix(file: &Path) -> Option<&str> {
    let suffix = file.file_name()?.to_str()?.strip_prefix(NAME)?;
    (suffix.is_empty() || suffix.starts_with('.')).then_some(suffix)
}

/// Major and minor version, by the name that the file has behind all links: libamdhip64.so.5.2.21153.
fn version(file: &Path) -> Option<(u32, u32)> {
    let file = file.canonicalize().ok()?;
    let mut numbers = suffix(&file)?.split('.').skip(1).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_version_is_that_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let folder = |version: &str, link: &str| {
            let folder = dir.path().join(version);
            fs::create_dir_all(&folder).unwrap();
            let file = format!("{NAME}.{version}");
            fs::write(folder.join(&file), "").unwrap();
            symlink(file, folder.join(format!("{NAME}.{link}"))).unwrap();
            folder
        };
        let [old, newer, six] = [("5.2.21153", "5"), ("5.7.31921", "5"), ("6.4.43484", "6")]
            .map(|(version, link)| folder(version, link));
        let unknown = folder("5", "old");
        let empty = dir.path().to_path_buf();
        let is_old = |folders: &[&Path]| is_old(Some(&std::env::join_paths(folders).unwrap()));
        assert!(is_old(&[&old]));
        assert!(!is_old(&[&newer]) && !is_old(&[&six]) && !is_old(&[&unknown]));
        assert!(is_old(&[&empty, &old, &six]), "the first one counts");
        assert!(!is_old(&[&six, &old]));
        symlink(six.join("libamdhip64.so.6"), old.join("libamdhip64.so.6")).unwrap();
        assert!(!is_old(&[&old]), "the program may want either");
    }
}
