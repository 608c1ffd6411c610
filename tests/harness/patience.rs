//! How long tests wait for what must come. Only a test that fails waits that long, so it is long enough for any machine at any load.

use std::time::{Duration, Instant};

/// Whatever takes longer than this has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// Asks `there` until it gives something; fails the test after [`PATIENCE`], saying that there is no `what`.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut there: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = there() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "no {what} after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
