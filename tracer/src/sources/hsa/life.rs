//! Notices the runtime's shutdown. ROCr calls OnUnload only for tools that it started (the tool table). With a registered table, this
//! module counts calls of hsa_init and hsa_shut_down, as ROCr does.

use std::sync::atomic::{AtomicU32, Ordering};

use super::state::{get, unload};
use crate::guard::guard;
use crate::hsa_runtime::abi::{ERROR, SUCCESS, Status};

/// Calls of hsa_init that no hsa_shut_down has taken back.
static USERS: AtomicU32 = AtomicU32::new(0);

/// Tables are offered inside the first hsa_init of a life.
pub(super) fn begin() {
    USERS.store(1, Ordering::Relaxed);
}

/// hsa_init.
pub(super) unsafe extern "C-unwind" fn init() -> Status {
    let Some(hsa) = get() else { return ERROR };
    // SAFETY: no arguments.
    let status = unsafe { (hsa.originals.init)() };
    if status == SUCCESS {
        USERS.fetch_add(1, Ordering::Relaxed);
    }
    status
}

/// hsa_shut_down: the last one ends the runtime.
pub(super) unsafe extern "C-unwind" fn shut_down() -> Status {
    let Some(hsa) = get() else { return ERROR };
    let users = USERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |users| users.checked_sub(1));
    if users == Ok(1) {
        guard((), unload);
    }
    // SAFETY: no arguments.
    unsafe { (hsa.originals.shut_down)() }
}
