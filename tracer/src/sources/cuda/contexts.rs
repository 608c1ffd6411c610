//! CUPTI is not attached while the driver finishes a context.
//!
//! CUPTI looks for the contexts that are there, and hears of those that are created later. One that is finished meanwhile it misses, and the first
//! launch in it reads memory that is not there. A program that calls nothing but CUDA and CUPTI 13.0 (tests/cuda/attach.c) ends so where CUPTI was
//! attached, which takes 10 ms, in the last 15 ms of a creation, which takes 0.1 s on an H200. Earlier in a creation it does no harm.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::thread;
use std::time::{Duration, Instant};

use super::library::Driver;

/// An answer that takes longer waited for a context.
const ANSWER: Duration = Duration::from_millis(1);
/// How long the process has opened and mapped no device of the driver's when it creates no context. While it did, the longest pause was 21 ms on an
/// idle machine. A program whose contexts are primary ones rarely creates another.
const QUIET: Duration = Duration::from_millis(200);
const QUIET_WITH_PRIMARY: Duration = Duration::from_millis(30);
/// So often is that looked at meanwhile, whatever the machine does beside it.
const LOOKS: u32 = 10;
const STEP: Duration = Duration::from_millis(2);
/// A process that is never quiet for so long is busy with other things.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits until the driver creates no context; false: that is not wanted any more. It takes as long as the driver does.
pub(super) fn wait_for_creations(driver: &Driver, is_wanted: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    let mut devices = Devices { seen: None, since: begin, looks: 0 };
    while is_wanted() {
        devices.look();
        let asked = Instant::now();
        let has_primary = driver.has_primary_context();
        if asked.elapsed() >= ANSWER {
            // It waited for a context. There may be one of the next GPU.
            devices.seen = None;
        }
        // The driver tells nothing of contexts of cuCtxCreate.
        let quiet = if has_primary { QUIET_WITH_PRIMARY } else { QUIET };
        if devices.are_quiet_for(quiet) || begin.elapsed() >= PATIENCE {
            return is_wanted();
        }
        thread::sleep(STEP);
    }
    false
}

/// Whether the process has one of the driver's devices, which it opens in cuInit.
pub(super) fn uses_devices() -> bool {
    opened().is_some_and(|(mapped, open)| mapped + open > 0)
}

/// The driver's devices, as this process has them.
struct Devices {
    /// Nothing: it cannot be read.
    seen: Option<(usize, usize)>,
    since: Instant,
    looks: u32,
}

impl Devices {
    fn look(&mut self) {
        let now = opened();
        if now.is_none() || now != self.seen {
            *self = Devices { seen: now, since: Instant::now(), looks: 0 };
        } else {
            self.looks += 1;
        }
    }

    fn are_quiet_for(&self, time: Duration) -> bool {
        self.looks >= LOOKS && self.since.elapsed() >= time
    }
}

/// How often the process has such a device mapped, and how often open.
fn opened() -> Option<(usize, usize)> {
    const DEVICE: &[u8] = b"/dev/nvidia";
    let is_in = |text: &[u8]| text.windows(DEVICE.len()).filter(|part| *part == DEVICE).count();
    let maps = fs::read("/proc/self/maps").ok()?;
    let files = fs::read_dir("/proc/self/fd").ok()?.flatten();
    // One may be closed meanwhile.
    let paths = files.filter_map(|file| fs::read_link(file.path()).ok());
    Some((is_in(&maps), paths.filter(|path| is_in(path.as_os_str().as_bytes()) > 0).count()))
}
