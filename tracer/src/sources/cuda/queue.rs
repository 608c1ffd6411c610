//! Numbers of queues in the file: those of CUDA's streams, as long as they are unique on their GPU.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use rpd_preload::lock::lock;
use rustc_hash::FxHashMap;

/// By GPU and number in the file, the context and stream that have it: whichever was seen first.
type Taken = HashMap<(u32, u32), (u32, u32)>;

static TAKEN: LazyLock<Mutex<Taken>> = LazyLock::new(Mutex::default);

/// Queues whose numbers are known, by context and stream. A number never changes.
#[derive(Default)]
pub(super) struct StreamQueues {
    numbers: FxHashMap<(u32, u32), u32>,
    /// Of each context.
    gpus: FxHashMap<u32, u32>,
}

impl StreamQueues {
    /// A context is of that GPU.
    pub(super) fn learn(&mut self, context: u32, gpu: u32) {
        self.gpus.insert(context, gpu);
    }

    /// The queue that is that stream.
    pub(super) fn number(&mut self, gpu: u32, context: u32, stream: u32) -> u32 {
        *self.numbers.entry((context, stream)).or_insert_with(|| {
            self.gpus.insert(context, gpu);
            number(gpu, context, stream)
        })
    }

    /// The same, where the GPU of the context is known; otherwise CUPTI's number.
    pub(super) fn waited_for(&mut self, context: u32, stream: u32) -> u32 {
        match self.gpus.get(&context) {
            Some(gpu) => self.number(*gpu, context, stream),
            None => stream,
        }
    }
}

/// Each context numbers its streams anew: those of further contexts on one GPU have the context's number in the upper 16 bits, or the next number
/// that is free.
fn number(gpu: u32, context: u32, stream: u32) -> u32 {
    let mut taken = lock(&TAKEN);
    let composed = context << 16 | stream & 0xffff;
    let further = (0..=u32::MAX).map(|more| composed.wrapping_add(more));
    std::iter::once(stream)
        .chain(further)
        .find(|number| *taken.entry((gpu, *number)).or_insert((context, stream)) == (context, stream))
        .unwrap_or(stream)
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
        assert_eq!(queues.waited_for(3, 7), 7, "nothing is known of the context");
        assert_eq!([(); 2].map(|()| queues.number(gpu, 3, 7)), [0x3_0007; 2]);
        assert_eq!(queues.waited_for(3, 7), 0x3_0007);
        // One that has so many streams that its number is what another's would be.
        assert_eq!(number(gpu, 1, 20), 20);
        assert_eq!(number(gpu, 2, 0x1_0014), 0x1_0014);
        assert_eq!(number(gpu, 1, 0x2_0014), 0x2_0014);
        assert_eq!(number(gpu, 2, 20), 0x2_0015, "0x2_0014 is taken");
        assert_eq!(number(gpu, 2, 20), 0x2_0015);
    }
}
