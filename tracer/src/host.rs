//! What names this process among the ranks of a job: host, boot, rank, command line.

/// Host name as `uname -n` prints it.
pub(crate) fn name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|s| s.trim().to_string())
        .unwrap_or_else(|_| "unknown".into())
}

/// Identity of this boot of the host: CLOCK_MONOTONIC values of two files compare only within one boot.
pub(crate) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|s| s.trim().to_string())
        .unwrap_or_default()
}

/// The rank that a launcher gave this process, global ranks first.
pub(crate) fn rank() -> Option<String> {
    ["RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "LOCAL_RANK"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

/// The command line, arguments joined by spaces.
pub(crate) fn command() -> String {
    let bytes = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let words: Vec<_> = bytes.split(|b| *b == 0).map(String::from_utf8_lossy).collect();
    words.join(" ").trim_end().to_string()
}

/// Path of the executable, empty when it cannot be read.
pub(crate) fn executable() -> std::path::PathBuf {
    std::fs::read_link("/proc/self/exe").unwrap_or_default()
}
