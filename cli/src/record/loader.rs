//! Questions to the dynamic loader about libraries.

use std::path::PathBuf;
use std::process::Command;

/// Names of libraries in its cache, and their files.
pub(crate) fn cache() -> Vec<(String, PathBuf)> {
    let Ok(output) = Command::new("/sbin/ldconfig").arg("-p").env_remove("LD_PRELOAD").output() else {
        return vec![];
    };
    let list = String::from_utf8_lossy(&output.stdout);
    let entries = list.lines().filter_map(|line| line.split_once(" => "));
    entries
        .filter_map(|(name, file)| Some((name.split_whitespace().next()?.to_string(), file.into())))
        .collect()
}
