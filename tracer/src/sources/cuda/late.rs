//! CUPTI is attached behind cuInit by a thread of its own. It may have to wait for the driver, which creates a context, and neither the program
//! nor the writer waits for that.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rpd_preload::threads;
use rpd_transport::recorder::Recorder;

use super::library::Driver;
use super::{attach, contexts};

/// The process that has such a thread now; 0 for none. A forked child has none.
static ATTACHING: AtomicU32 = AtomicU32::new(0);

/// Has CUPTI attached soon: `at_once`, or when the driver creates no context.
pub(super) fn attach(recorder: &'static Recorder, driver: &'static Driver, at_once: bool) {
    let (own, before) = (std::process::id(), ATTACHING.load(Ordering::Acquire));
    let is_claimed = || ATTACHING.compare_exchange(before, own, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    if before == own || !is_claimed() {
        return;
    }
    let spawned = threads::spawn(c"rpd-cuda-start", move || {
        let _ends = Ends;
        let is_wanted = || attach::is_wanted(recorder) && !threads::are_alone();
        if at_once || contexts::wait_for_creations(driver, is_wanted) {
            attach::attach(recorder, driver, false);
        }
    });
    if spawned.is_err() {
        // The next visit tries again.
        ATTACHING.store(0, Ordering::Release);
    }
}

/// Waits for that, `deadline` at most.
pub(super) fn wait(deadline: Duration) {
    let begin = Instant::now();
    while ATTACHING.load(Ordering::Acquire) == std::process::id() && begin.elapsed() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
}

/// The thread ends, maybe by a panic.
struct Ends;

impl Drop for Ends {
    fn drop(&mut self) {
        ATTACHING.store(0, Ordering::Release);
    }
}
