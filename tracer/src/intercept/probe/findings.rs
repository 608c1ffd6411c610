//! What analyzers have found, until the writer asks for it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rpd_preload::lock::lock;
use rpd_transport::log;
use rpd_transport::source::InstrumentedText;

/// Dispatches whose findings may wait: the file may take none for a long time.
const MOST: usize = 1 << 16;

static FINDINGS: Mutex<Vec<InstrumentedText>> = Mutex::new(Vec::new());
/// There is something.
static ANY: AtomicBool = AtomicBool::new(false);

/// Dispatches whose findings are in no file.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Whether there is something that nobody has taken.
pub(crate) fn has_findings() -> bool {
    ANY.load(Ordering::Acquire)
}

/// All of it, once.
pub(crate) fn take_findings() -> Vec<InstrumentedText> {
    if !has_findings() {
        return Vec::new();
    }
    let mut findings = lock(&FINDINGS);
    ANY.store(false, Ordering::Release);
    std::mem::take(&mut findings)
}

/// A dispatch was analyzed.
pub(super) fn add(found: InstrumentedText) {
    let mut findings = lock(&FINDINGS);
    if findings.len() >= MOST {
        LOST.fetch_add(1, Ordering::Relaxed);
        return;
    }
    findings.push(found);
    ANY.store(true, Ordering::Release);
}

/// Says how many dispatches' findings are in no file, where there are some.
pub(super) fn say_lost() {
    let lost = LOST.load(Ordering::Relaxed);
    if lost > 0 {
        log::problem(&format!(
            "what {lost} instrumented dispatches have streamed out is not in the trace: too many waited for it"
        ));
    }
}
