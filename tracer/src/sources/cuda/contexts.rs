//! CUPTI is not attached while the driver finishes a context.
//!
//! CUPTI looks for the contexts that are there, and hears of those that are created later. One that is finished meanwhile it misses, and the first
//! launch in it reads memory that is not there. A program that calls nothing but CUDA and CUPTI 13.0 (tests/cuda/attach.c) ends so where CUPTI was
//! attached, which takes 10 ms, in the last 15 ms of a creation, which takes 0.1 s on an H200. Earlier in a creation it does no harm.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::library::Driver;

/// How long the driver opens and maps nothing when it creates no context: while it does, the longest pause was 21 ms.
const QUIET: Duration = Duration::from_millis(40);
/// An answer that takes longer waited for a context.
const ANSWER: Duration = Duration::from_millis(1);
/// A driver that is never quiet for so long is busy with other things.
const PATIENCE: Duration = Duration::from_secs(1);

/// Waits until the driver creates no context.
pub(super) fn wait_for_creations(driver: &Driver) {
    let begin = Instant::now();
    let (mut seen, mut quiet_from) = (device_files(), begin);
    while begin.elapsed() < PATIENCE && quiet_from.elapsed() < QUIET {
        let asked = Instant::now();
        let has_primary = driver.has_primary_context();
        if asked.elapsed() >= ANSWER {
            // It waited for a context. There may be one of the next GPU.
            quiet_from = Instant::now();
        } else if has_primary {
            return;
        } else {
            // The driver tells nothing of contexts of cuCtxCreate.
            thread::sleep(Duration::from_millis(2));
            let now = device_files();
            if now != seen {
                (seen, quiet_from) = (now, Instant::now());
            }
        }
    }
}

/// How often the process has a device of the driver's mapped, and how often open.
fn device_files() -> (usize, usize) {
    const DEVICE: &str = "/dev/nvidia";
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open = open.filter_map(|file| fs::read_link(file.path()).ok());
    (maps.matches(DEVICE).count(), open.filter(|path| path.to_string_lossy().starts_with(DEVICE)).count())
}
