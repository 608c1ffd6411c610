//! Numbers of queues in the file: those of CUDA's streams, as long as they are unique on their GPU.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use rpd_preload::lock::lock;
use rustc_hash::FxHashMap;

/// By GPU and stream, the context whose stream has that number in the file: the first that was seen.
static FIRST: LazyLock<Mutex<HashMap<(u32, u32), u32>>> = LazyLock::new(Mutex::default);

/// StreamQueues whose numbers are known, by GPU, context and stream: a number never changes.
#[derive(Default)]
pub(super) struct StreamQueues(FxHashMap<(u32, u32, u32), u32>);

impl StreamQueues {
    /// The queue that is that stream.
    pub(super) fn number(&mut self, gpu: u32, context: u32, stream: u32) -> u32 {
        *self.0.entry((gpu, context, stream)).or_insert_with(|| number(gpu, context, stream))
    }
}

/// Each context numbers its streams anew: those of further contexts on one GPU have the context's number in the upper 16 bits.
fn number(gpu: u32, context: u32, stream: u32) -> u32 {
    let first = *lock(&FIRST).entry((gpu, stream)).or_insert(context);
    if first == context { stream } else { context << 16 | stream & 0xffff }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_number_are_queues_of_their_own() {
        let gpu = 1000;
        assert_eq!(number(gpu, 2, 7), 7);
        assert_eq!(number(gpu, 3, 7), 0x3_0007);
        assert_eq!(number(gpu, 2, 7), 7);
        assert_eq!(number(gpu + 1, 3, 7), 7, "queues are each GPU's own");
        assert_eq!(number(gpu, 3, 13), 13, "no other has it");
        let mut queues = StreamQueues::default();
        assert_eq!([(); 2].map(|()| queues.number(gpu, 3, 7)), [0x3_0007; 2]);
    }
}
