//! What the process's control groups let it and its neighbours have of memory: in a container of 64 MB the recorder must not fill
//! 256 MB of buffers.

use std::fs;
use std::path::{Path, PathBuf};

/// Files with a limit in bytes: of version 2, where `high` slows down what `max` kills, and of version 1.
const LIMITS: [&str; 3] = ["memory.max", "memory.high", "memory.limit_in_bytes"];

/// The least limit of memory, in bytes, of the process's control groups and those around them. None where there is none.
pub fn memory_limit() -> Option<u64> {
    limit_in(Path::new("/"))
}

/// [`memory_limit`] in the file system at `root`.
fn limit_in(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let groups: Vec<ControlGroup<'_>> = groups.lines().filter_map(ControlGroup::of).collect();
    let mounts = mounts.lines().filter_map(Mount::of);
    let pairs = mounts.filter_map(|mount| {
        let group = groups.iter().find(|group| group.is_unified == mount.is_unified)?;
        Some((mount.path.clone(), mount.below(group.path)))
    });
    pairs.filter_map(|(top, below)| least(root, &top, &below)).min()
}

/// A line of /proc/self/cgroup: `0::/a/b` of version 2, or one of version 1 that has memory, `4:memory:/a/b`.
struct ControlGroup<'a> {
    is_unified: bool,
    path: &'a str,
}

impl ControlGroup<'_> {
    fn of(line: &str) -> Option<ControlGroup<'_>> {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_unified = number == "0" && controllers.is_empty();
        let has_memory = is_unified || controllers.split(',').any(|name| name == "memory");
        has_memory.then_some(ControlGroup { is_unified, path })
    }
}

/// A line of /proc/self/mountinfo: where a hierarchy with memory is mounted, and which of its groups is at the top there.
struct Mount {
    is_unified: bool,
    root: PathBuf,
    path: PathBuf,
}

impl Mount {
    fn of(line: &str) -> Option<Mount> {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3).map(unescaped);
        let (root, path) = (mount.next()?, mount.next()?);
        let mut filesystem = filesystem.split(' ');
        let (kind, options) = (filesystem.next()?, filesystem.nth(1)?);
        let is_unified = kind == "cgroup2";
        let has_memory = is_unified || (kind == "cgroup" && options.split(',').any(|name| name == "memory"));
        has_memory.then_some(Mount { is_unified, root, path })
    }

    /// The group's path below the place of the mount. In a container that sees the host's path of its group, but only that group
    /// mounted, it is the place itself.
    fn below(&self, group: &str) -> PathBuf {
        Path::new(group).strip_prefix(&self.root).map(Path::to_path_buf).unwrap_or_default()
    }
}

/// A path in mountinfo has its blanks and backslashes as octal numbers.
fn unescaped(text: &str) -> PathBuf {
    let codes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    codes.iter().fold(text.to_string(), |text, (code, character)| text.replace(code, character)).into()
}

/// The least limit of the group `below` the mount at `top` and of those around it up to `top`.
fn least(root: &Path, top: &Path, below: &Path) -> Option<u64> {
    let top = root.join(top.strip_prefix("/").unwrap_or(top));
    let groups = below.ancestors().map(|group| top.join(group));
    let files = groups.flat_map(|group| LIMITS.map(|name| group.join(name)));
    // `max`, and in version 1 a number of more bytes than there are, is no limit; that one cannot be the least where it counts.
    files.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

    /// The limit in a file system with these two files of /proc/self, and groups whose files have these texts.
    fn limit(cgroup: &str, mountinfo: &str, files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        let proc = [("proc/self/cgroup", cgroup), ("proc/self/mountinfo", mountinfo)];
        for (name, text) in proc.iter().chain(files) {
            let file = root.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        limit_in(root.path())
    }

    #[test]
    fn the_least_along_the_path_counts() {
        let files = [
            ("sys/fs/cgroup/memory.max", "1\n"),
            ("sys/fs/cgroup/a/memory.max", "1000000\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.high", "2000000\n"),
            ("sys/fs/cgroup/other/memory.max", "5\n"),
        ];
        assert_eq!(limit("0::/a/b\n", V2, &files[1..]), Some(1_000_000));
        assert_eq!(limit("0::/a/b\n", V2, &files[2..]), Some(2_000_000), "throttled counts");
        assert_eq!(limit("0::/a/b\n", V2, &files), Some(1), "also where the groups begin");
        assert_eq!(limit("0::/\n", V2, &files[1..]), None);
        assert_eq!(limit("0::/a/b\n", V2, &[("sys/fs/cgroup/a/b/memory.max", "max\n")]), None);
    }

    #[test]
    fn both_versions_are_read_side_by_side() {
        let cgroup = "9:name=systemd:/x\n4:cpu,memory:/a\n0::/b\n";
        let unlimited = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        let limited = ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "67108864\n");
        let mounts = format!("{V1}41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
        assert_eq!(limit(cgroup, &mounts, &[unlimited, limited]), Some(64 << 20));
        let unified = ("sys/fs/cgroup/unified/b/memory.max", "33554432\n");
        assert_eq!(limit(cgroup, &mounts, &[unlimited, limited, unified]), Some(32 << 20));
        assert_eq!(limit("3:cpuset:/a\n", &mounts, &[limited]), None);
    }

    #[test]
    fn a_container_may_see_its_group_alone() {
        let files = [("sys/fs/cgroup/memory.max", "67108864\n")];
        for root in ["/docker/1", "/docker"] {
            let mounts = V2.replace(" / /sys", &format!(" {root} /sys"));
            assert_eq!(limit("0::/docker/1\n", &mounts, &files), Some(64 << 20), "{root}");
        }
        let mounts = V2.replace(" / /sys", " /else /sys");
        assert_eq!(limit("0::/docker/1\n", &mounts, &files), Some(64 << 20));
        let mounts = V2.replace("/sys/fs/cgroup", "/a\\040place");
        assert_eq!(limit("0::/x\n", &mounts, &[("a place/x/memory.max", "7\n")]), Some(7));
    }

    #[test]
    fn nonsense_is_no_limit() {
        let files = [("sys/fs/cgroup/memory.max", "much\n")];
        for cgroup in ["", "0::\n", "0::/../..\n", "nonsense\n"] {
            assert_eq!(limit(cgroup, V2, &files), None, "{cgroup:?}");
        }
        assert_eq!(limit("0::/\n", "nonsense\n\n - cgroup2\n", &files), None);
        assert_eq!(limit_in(Path::new("/no/such")), None);
    }
}
