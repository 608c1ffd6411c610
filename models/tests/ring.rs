//! The byte ring of one thread, and the calls that it says are open.

use std::sync::Arc;

use loom::thread;
use rpd_models::correlation::{self, Counter};
use rpd_models::records::Kind;
use rpd_models::records::budget::Budget;
use rpd_models::records::ring::{Consumer, Producer, ring};

fn new_ring() -> (Producer, Consumer) {
    ring(&Arc::new(Budget), 1).unwrap()
}

fn push(producer: &mut Producer, number: u64) {
    let body: Vec<u8> = [number; 3].into_iter().flat_map(u64::to_ne_bytes).collect();
    assert!(producer.push(Kind::Mark, &body, [&[], &[]]));
}

/// Adds the numbers of the records that a drain finds; whether the producer is gone and the ring empty.
fn drain(consumer: &mut Consumer, numbers: &mut Vec<u64>) -> bool {
    consumer.drain(|entry| {
        let number = u64::from_ne_bytes(entry.body[..8].try_into().unwrap());
        assert_eq!(entry.body[16..], number.to_ne_bytes());
        numbers.push(number);
    })
}

#[test]
fn records_come_out_once_and_in_order() {
    loom::model(|| {
        let (mut producer, mut consumer) = new_ring();
        let producing = thread::spawn(move || (1..=3).for_each(|number| push(&mut producer, number)));
        let mut numbers = vec![];
        let waiting = consumer.waiting() as usize;
        let gone = drain(&mut consumer, &mut numbers);
        assert!(waiting <= numbers.len() && (!gone || numbers.len() == 3), "{waiting} {gone} {numbers:?}");
        producing.join().unwrap();
        assert!(drain(&mut consumer, &mut numbers));
        assert_eq!(numbers, [1, 2, 3]);
    });
}

/// A call below the watermark is open, or its record is in the ring.
fn given_out_is_open_or_recorded(threads: usize, preemptions: Option<usize>) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        let counter = loom::sync::Arc::new(Counter::new());
        let (producers, mut consumers): (Vec<_>, Vec<_>) = (0..threads).map(|_| new_ring()).unzip();
        let threads: Vec<_> = producers
            .into_iter()
            .map(|mut producer| {
                let counter = counter.clone();
                thread::spawn(move || {
                    let call = counter.open(&producer);
                    push(&mut producer, call);
                    producer.open_call(0);
                })
            })
            .collect();
        // A thread of its own: to a thread that has waited loom shows no value from before that.
        let watching = thread::spawn(move || {
            let watermark = counter.watermark();
            let open: Vec<u64> =
                consumers.iter().map(Consumer::open_call).filter(|open| *open != 0).collect();
            let mut recorded = vec![];
            consumers.iter_mut().for_each(|consumer| {
                drain(consumer, &mut recorded);
            });
            for call in 1..watermark {
                let is_open = open.iter().any(|open| correlation::may_be(*open, call));
                assert!(
                    is_open || recorded.contains(&call),
                    "call {call}: open {open:?}, recorded {recorded:?}"
                );
            }
        });
        watching.join().unwrap();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn the_call_of_one_thread_is_open_or_recorded() {
    given_out_is_open_or_recorded(1, None);
}

#[test]
fn calls_of_two_threads_are_open_or_recorded() {
    given_out_is_open_or_recorded(2, Some(1));
}
