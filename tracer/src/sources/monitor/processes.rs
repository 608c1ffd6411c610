//! How much of a GPU's memory a process and its descendants hold: sensor `vram_process`. The kernel's driver says it of AMD's GPUs, in
//! /sys/class/kfd where programs of ROCm are concerned and in /proc/PID/fdinfo for all others; NVML of NVIDIA's.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::metric::{Micro, ONE};

/// How often the memory is asked for, and how often new processes are looked for: both take many files.
const MEMORY_EVERY: Duration = Duration::from_millis(100);
const PROCESSES_EVERY: Duration = Duration::from_secs(1);
/// More than any tree of processes that share a GPU has.
const MOST: usize = 10_000;

/// A process and its descendants.
#[derive(Clone, Debug)]
pub(super) struct ProcessTree {
    /// Stands for /proc.
    procfs: PathBuf,
    root: u32,
    members: Vec<u32>,
    looked: Option<Instant>,
    asked: Option<(Instant, Result<Micro, String>)>,
}

impl ProcessTree {
    /// That of `root`.
    pub(super) fn of(procfs: &Path, root: u32) -> ProcessTree {
        ProcessTree { procfs: procfs.into(), root, members: Vec::new(), looked: None, asked: None }
    }

    /// What `ask` says of the members, asked now or a moment ago.
    pub(super) fn memory(
        &mut self,
        ask: impl FnOnce(&Path, &[u32]) -> Result<u64, String>,
    ) -> Result<Micro, String> {
        if let Some((when, said)) = &self.asked
            && when.elapsed() < MEMORY_EVERY
        {
            return said.clone();
        }
        // A process may be about to start its first child.
        let is_alone = self.members.len() < 2;
        let said = if is_alone || self.looked.is_none_or(|looked| looked.elapsed() >= PROCESSES_EVERY) {
            self.looked = Some(Instant::now());
            self.descendants().map(|members| self.members = members)
        } else {
            Ok(())
        };
        let said = said.and_then(|()| ask(&self.procfs, &self.members));
        let said = said.map(|bytes| Micro::from(bytes) * ONE);
        self.asked = Some((Instant::now(), said.clone()));
        said
    }

    /// The root first.
    ///
    /// # Errors
    /// Where the kernel does not say which processes a process has started.
    fn descendants(&self) -> Result<Vec<u32>, String> {
        let mut members = vec![self.root];
        let mut next = 0;
        while next < members.len() && members.len() < MOST {
            let threads = fs::read_dir(self.procfs.join(members[next].to_string()).join("task"));
            for thread in threads.into_iter().flatten().flatten() {
                let file = thread.path().join("children");
                match fs::read_to_string(&file) {
                    Ok(children) => {
                        let children = children.split_whitespace();
                        members.extend(children.filter_map(|child| child.parse::<u32>().ok()));
                    }
                    // The thread may have ended by now.
                    Err(_) if next > 0 || !thread.path().is_dir() => {}
                    Err(error) => return Err(format!("{}: {error}", file.display())),
                }
            }
            next += 1;
        }
        Ok(members)
    }
}

/// What the driver of AMD's GPUs says of those processes, bytes. `gpu_id` is the GPU's name in ROCm's part of the driver.
///
/// # Errors
/// Where it says nothing of any process.
pub(super) fn on_amd(
    root: &Path,
    (gpu_id, bdf): (Option<&str>, &str),
    procfs: &Path,
    members: &[u32],
) -> Result<u64, String> {
    let kfd = root.join("class/kfd/kfd/proc");
    if let Some(gpu_id) = gpu_id
        && kfd.is_dir()
    {
        let held = |process: &u32| {
            let file = kfd.join(process.to_string()).join(format!("vram_{gpu_id}"));
            fs::read_to_string(file).ok()?.trim().parse::<u64>().ok()
        };
        let held: Vec<u64> = members.iter().filter_map(held).collect();
        let mut users = fs::read_dir(&kfd).into_iter().flatten().flatten();
        // In a container these are the numbers that processes have outside of it.
        let is_of_here = users.all(|user| procfs.join(user.file_name()).exists());
        if !held.is_empty() || is_of_here {
            return Ok(held.into_iter().fold(0, u64::saturating_add));
        }
    }
    // A client of the driver has several descriptors, in several processes too.
    let mut clients = HashMap::new();
    let mut is_said = false;
    for process in members {
        let descriptors = fs::read_dir(procfs.join(process.to_string()).join("fdinfo"));
        for descriptor in descriptors.into_iter().flatten().flatten() {
            let text = fs::read_to_string(descriptor.path()).unwrap_or_default();
            if let Some(client) = Client::parse(&text) {
                is_said = true;
                if client.bdf.eq_ignore_ascii_case(bdf) {
                    clients.insert(client.id, client.vram);
                }
            }
        }
    }
    if !is_said {
        return Err(format!("neither {} nor a descriptor of the process has it", kfd.display()));
    }
    Ok(clients.into_values().fold(0, u64::saturating_add))
}

/// What a descriptor's file says of a client of the driver (Linux, Documentation/gpu/drm-usage-stats.rst).
#[derive(Debug, PartialEq, Eq)]
struct Client {
    bdf: String,
    id: u64,
    /// Bytes.
    vram: u64,
}

impl Client {
    fn parse(text: &str) -> Option<Client> {
        if !text.contains("drm-driver:") {
            return None;
        }
        let value = |name: &str| text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim()));
        let held = value("drm-memory-vram:").or_else(|| value("drm-total-vram:"))?;
        let (number, unit) = held.split_once(' ').unwrap_or((held, ""));
        let scale = match unit.trim() {
            "" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            _ => return None,
        };
        Some(Client {
            bdf: value("drm-pdev:")?.to_string(),
            id: value("drm-client-id:")?.parse().ok()?,
            vram: number.parse::<u64>().ok()?.checked_mul(scale)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, files: &[(&str, &str)]) {
        for (name, content) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }

    #[test]
    fn descendants_of_all_threads_are_members() {
        let proc = tempfile::tempdir().unwrap();
        put(
            proc.path(),
            &[
                ("7/task/7/children", "8 "),
                ("7/task/70/children", "9 10 "),
                ("9/task/9/children", "11 x"),
                ("12/task/12/children", "7"),
            ],
        );
        let mut tree = ProcessTree::of(proc.path(), 7);
        let mut seen = Vec::new();
        assert_eq!(
            tree.memory(|_, members| {
                seen = members.to_vec();
                Ok(3)
            }),
            Ok(3 * ONE)
        );
        seen.sort_unstable();
        assert_eq!(seen, [7, 8, 9, 10, 11]);
        assert_eq!(tree.memory(|_, _| Err("asked again at once".into())), Ok(3 * ONE));
        fs::remove_file(proc.path().join("7/task/7/children")).unwrap();
        let why = ProcessTree::of(proc.path(), 7).memory(|_, _| Ok(3)).unwrap_err();
        assert!(why.contains("7/task/7/children: "), "{why}");
    }

    #[test]
    fn rocms_part_of_the_driver_says_it_first() {
        let (sys, proc) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        put(
            sys.path(),
            &[
                ("class/kfd/kfd/proc/7/vram_51", "4096\n"),
                ("class/kfd/kfd/proc/7/vram_52", "1\n"),
                ("class/kfd/kfd/proc/8/vram_51", "1024\n"),
                ("class/kfd/kfd/proc/9/vram_51", "999\n"),
                ("class/kfd/kfd/proc/10/vram_51", "lots\n"),
            ],
        );
        let held = |members: &[u32]| on_amd(sys.path(), (Some("51"), "0000:04:00.0"), proc.path(), members);
        assert_eq!(held(&[7, 8, 10, 11]), Ok(5120));
        assert!(held(&[11]).is_err(), "these are numbers of another PID namespace");
        for process in ["7", "8", "9", "10"] {
            fs::create_dir(proc.path().join(process)).unwrap();
        }
        assert_eq!(held(&[11]), Ok(0));
    }

    #[test]
    fn a_client_counts_once_however_many_descriptors_it_has() {
        let (sys, proc) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let client = |id: u32, bdf: &str, kib: u32| {
            format!(
                "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t{id}\ndrm-pdev:\t{bdf}\ndrm-memory-vram:\t{kib} KiB\n"
            )
        };
        put(
            proc.path(),
            &[
                ("7/fdinfo/3", &client(1, "0000:04:00.0", 4)),
                ("7/fdinfo/4", &client(1, "0000:04:00.0", 4)),
                ("7/fdinfo/5", &client(2, "0000:05:00.0", 100)),
                ("7/fdinfo/6", "pos:\t0\nflags:\t02\n"),
                ("8/fdinfo/3", &client(3, "0000:04:00.0", 1)),
            ],
        );
        assert_eq!(on_amd(sys.path(), (None, "0000:04:00.0"), proc.path(), &[7, 8]), Ok(5120));
        let why = on_amd(sys.path(), (None, "0000:04:00.0"), proc.path(), &[9]).unwrap_err();
        assert!(why.starts_with("neither "), "{why}");
    }

    #[test]
    fn what_a_descriptor_says_may_be_anything() {
        let said = |held: &str| {
            Client::parse(&format!(
                "drm-driver: amdgpu\ndrm-client-id: 1\ndrm-pdev: x\ndrm-memory-vram: {held}\n"
            ))
            .map(|client| client.vram)
        };
        assert_eq!(said("7"), Some(7));
        assert_eq!(said("7 MiB"), Some(7 << 20));
        for wrong in ["", "-1 KiB", "7 GB", "99999999999999999999", "18446744073709551615 MiB"] {
            assert_eq!(said(wrong), None, "{wrong}");
        }
    }
}
