//! Ids of calls, as many counters as there are runs of a model.

#[path = "../../transport/src/correlation/ids.rs"]
mod ids;

use crate::atomic::AtomicU64;
use crate::records::ring::Producer;
use ids::NextId;
pub use ids::may_be;

pub struct Counter(NextId);

impl Counter {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Counter {
        Counter(NextId(AtomicU64::new(1)))
    }

    pub fn open(&self, producer: &Producer) -> u64 {
        self.0.open(producer)
    }

    pub fn watermark(&self) -> u64 {
        self.0.watermark()
    }
}
