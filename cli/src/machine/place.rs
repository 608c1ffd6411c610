//! The directory that a trace would be written to: whether it can be, how much room it has, and on what file system it is.

use std::path::Path;

use super::finding::MachineFinding;
use super::system::System;
use crate::system::facts;

/// Room for a trace, below which it is scarce: some ten million events.
const LITTLE: u64 = 1 << 30;
/// Room in which no run fits.
const NONE: u64 = 16 << 20;
/// File systems whose locks are another host's business.
const SHARED: [&str; 9] = ["nfs", "nfs4", "lustre", "gpfs", "beegfs", "cifs", "smb3", "ceph", "9p"];

/// The working directory.
pub(crate) fn examine(system: &System) -> Vec<MachineFinding> {
    let directory = match std::env::current_dir() {
        Ok(directory) => directory,
        Err(error) => {
            let found = format!("the working directory is not there: {error}");
            return vec![MachineFinding::missing(
                "directory",
                found,
                "cd to another, or name a trace with -o",
            )];
        }
    };
    let shown = directory.display();
    if let Err(error) = tempfile::tempfile_in(&directory) {
        let found = format!("{shown} cannot be written to: {error}");
        return vec![MachineFinding::missing(
            "directory",
            found,
            "cd to another, or name a trace elsewhere with -o",
        )];
    }
    let kind = kind(system, &directory).unwrap_or_else(|| "file system not known".into());
    let free = facts::space(&directory).map(|space| space.free);
    let room =
        free.as_ref().map_or_else(|_| "room not known".into(), |free| format!("{} MiB free", free >> 20));
    let found = format!("{shown}: {kind}, {room}");
    vec![match free {
        Ok(free) if free < NONE => {
            MachineFinding::missing("directory", found, "make room, or name a trace elsewhere with -o")
        }
        _ if SHARED.contains(&kind.as_str()) => MachineFinding::warn(
            "directory",
            format!("{found}: hosts that write one trace there wait for each other"),
            "a trace for each host or rank: rpd record -o '%h-%r.rpd'; then rpd merge",
        ),
        Ok(free) if free < LITTLE => MachineFinding::warn(
            "directory",
            found,
            "rpd record --max-mb SIZE ends the recording before the disk is full",
        ),
        _ => MachineFinding::ok("directory", found),
    }]
}

/// The type of the file system that a path is on, by the longest mount point in front of it.
fn kind(system: &System, path: &Path) -> Option<String> {
    // 36 35 98:0 /mnt1 /mnt/parent rw,noatime master:1 - ext3 /dev/root rw (proc(5)); a later mount covers an earlier one.
    let mounts = system.text("/proc/self/mountinfo")?;
    let mounts = mounts.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let point =
            left.split(' ').nth(4)?.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\");
        path.starts_with(&point)
            .then(|| (point.len(), right.split(' ').next().unwrap_or_default().to_string()))
    });
    mounts.max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_is_that_of_the_longest_mount_point() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        let others: String =
            (0..5000).map(|n| format!("9 1 0:1 / /var/lib/mount-{n} rw - overlay overlay rw\n")).collect();
        std::fs::write(
            dir.path().join("proc/self/mountinfo"),
            others
                + "1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:1 / /data\\040set rw shared:1 - nfs4 host:/x rw\n\
             3 1 0:1 / /home rw - xfs /dev/sdb rw\n4 1 0:1 / /home rw - btrfs /dev/sdc rw\nnonsense\n",
        )
        .unwrap();
        let system = System::new(Some(dir.path()), std::iter::empty());
        let of = |path: &str| kind(&system, Path::new(path)).unwrap_or_default();
        assert_eq!(of("/data set/a"), "nfs4");
        assert_eq!(of("/data"), "ext4");
        assert_eq!(of("/home/me"), "btrfs");
    }
}
