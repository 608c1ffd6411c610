//! The GPUs whose sensors another process records into this process's file. Where several processes write one file, one of them records
//! the sensors of a GPU.

use std::sync::atomic::{AtomicBool, Ordering};

/// More than any node has; GPUs beyond share the last place.
const MOST_GPUS: usize = 256;

/// See the module.
pub struct AnothersSensors([AtomicBool; MOST_GPUS]);

impl Default for AnothersSensors {
    fn default() -> AnothersSensors {
        AnothersSensors([const { AtomicBool::new(false) }; MOST_GPUS])
    }
}

impl AnothersSensors {
    /// Whether another process recorded the sensors of that GPU when it was last looked at.
    pub fn are_anothers(&self, gpu: u32) -> bool {
        self.place(gpu).load(Ordering::Relaxed)
    }

    pub(crate) fn set_anothers(&self, gpu: u32, anothers: bool) {
        self.place(gpu).store(anothers, Ordering::Relaxed);
    }

    fn place(&self, gpu: u32) -> &AtomicBool {
        &self.0[(gpu as usize).min(MOST_GPUS - 1)]
    }
}
