//! The files, variables and libraries that are looked at: those of this machine, or of a tree that has the same paths.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::record::loader;
use crate::system::capabilities;

/// As much of a file of the kernel as is read: the mounts of a busy host take some hundred KiB.
const LONGEST: usize = 16 << 20;
/// Where the dynamic loader looks, and where ROCm and CUDA are installed.
const FOLDERS: [&str; 11] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
    "/usr/local/lib",
    "/opt/rocm/lib",
    "/opt/rocm/lib64",
    "/usr/local/cuda/lib64",
    "/usr/local/nvidia/lib64",
];

/// A machine.
pub(crate) struct System {
    /// What is in front of every path; `/` for this machine.
    root: PathBuf,
    environment: BTreeMap<OsString, OsString>,
    /// Libraries by name.
    cache: Vec<(String, PathBuf)>,
}

impl System {
    /// This machine, or the tree below `root`.
    pub(crate) fn new(
        root: Option<&Path>,
        environment: impl Iterator<Item = (OsString, OsString)>,
    ) -> System {
        let cache = if root.is_some() { vec![] } else { loader::cache() };
        let root = root.unwrap_or(Path::new("/")).to_path_buf();
        System { root, environment: environment.collect(), cache }
    }

    /// Whether it is this machine, in which programs can be run.
    pub(crate) fn is_here(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Where an absolute path of the machine is.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A variable that is set to something.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Names of all variables.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &OsStr> {
        self.environment.keys().map(OsString::as_os_str)
    }

    /// The beginning of a text; nothing where it cannot be read.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        use io::Read;
        let path = self.path(path);
        // A pipe in the place of a file would keep us waiting.
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        fs::File::open(path).ok()?.take(LONGEST as u64).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_string())
    }

    /// Names in a folder, sorted; none where it cannot be read.
    pub(crate) fn names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Whether there is such a file.
    pub(crate) fn has(&self, path: impl AsRef<Path>) -> bool {
        fs::symlink_metadata(self.path(path)).is_ok()
    }

    /// Whether a device may be read and written.
    ///
    /// # Errors
    /// Why not, in words, and what mends it.
    pub(crate) fn usable(&self, device: &str) -> Result<(), (String, String)> {
        let path = self.path(device);
        let Err(error) = capabilities::may_read_and_write(&path) else { return Ok(()) };
        let metadata = fs::metadata(&path).ok();
        let group = metadata.map(|metadata| {
            let number = metadata.gid();
            (self.group(number).unwrap_or_else(|| number.to_string()), metadata.mode() & 0o060 == 0o060)
        });
        let mend = match (error.kind(), group) {
            (io::ErrorKind::PermissionDenied, Some((group, true))) if group != "root" => {
                format!("sudo usermod -a -G {group} $USER, and log in again; in a container: --group-add {group}")
            }
            (io::ErrorKind::PermissionDenied, _) => {
                "the user has to be in the groups render and video, and the device has to belong to one of them".to_string()
            }
            _ => format!("the device has to be one that opens: ls -lL {device}"),
        };
        Err((format!("{device} may not be used: {error}"), mend))
    }

    /// The name of a group.
    fn group(&self, number: u32) -> Option<String> {
        let groups = self.text("/etc/group")?;
        let mut lines = groups.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let found = lines.find(|fields| fields.get(2) == Some(&number.to_string().as_str()))?;
        Some(found[0].to_string())
    }

    /// Files of a library whose name begins so (`libcuda.so`), in the order in which a program finds them; each once.
    pub(crate) fn libraries(&self, begin: &str, more: &[PathBuf]) -> Vec<PathBuf> {
        let is_it = |name: &OsStr| {
            let rest = name.as_bytes().strip_prefix(begin.as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
        };
        let given = self.variable("LD_LIBRARY_PATH").unwrap_or_default();
        let given: Vec<PathBuf> =
            std::env::split_paths(given).filter(|folder| !folder.as_os_str().is_empty()).collect();
        let cached =
            self.cache.iter().filter(|(name, _)| is_it(OsStr::new(name))).map(|(_, file)| file.clone());
        let in_folder = |folder: &PathBuf| {
            let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
            let mut files: Vec<PathBuf> =
                entries.filter(|entry| is_it(&entry.file_name())).map(|entry| entry.path()).collect();
            files.sort();
            files
        };
        let usual = FOLDERS.map(PathBuf::from);
        let mut found: Vec<PathBuf> = Vec::new();
        let files = given.iter().flat_map(in_folder).chain(cached);
        for file in files.chain(more.iter().chain(&usual).flat_map(in_folder)) {
            // The name that it has behind all links has its version.
            if let Ok(file) = file.canonicalize()
                && !found.contains(&file)
            {
                found.push(file);
            }
        }
        found
    }
}

/// What follows `.so.` in the name of a library.
pub(crate) fn version(file: &Path) -> Option<&str> {
    let (_, version) = file.file_name()?.to_str()?.split_once(".so.")?;
    Some(version).filter(|version| !version.is_empty())
}

/// A library for people: its file, and the version in its name.
pub(crate) fn shown(file: &Path) -> String {
    match version(file) {
        Some(version) => format!("{version}: {}", file.display()),
        None => file.display().to_string(),
    }
}
