//! A place of a queue's reservations: two threads fill it, one reads it.

use loom::sync::{Arc, atomic};
use loom::thread;

#[path = "../../tracer/src/sources/hsa/reservation/place.rs"]
mod place;

use place::Place;

const FIRST: (u64, [u64; 2]) = (3, [30, 31]);
const SECOND: (u64, [u64; 2]) = (11, [110, 111]);

fn consistent(place: &Place) -> usize {
    [FIRST, SECOND]
        .into_iter()
        .filter_map(|(index, content)| place.get(index).map(|got| assert_eq!(got, content)))
        .count()
}

/// A ring later, the place is another packet's: the reader learns what belongs to the packet, or nothing.
#[test]
fn a_reader_never_mixes_two_packets() {
    loom::model(|| {
        let place = Arc::new(Place::default());
        place.put(FIRST.0, FIRST.1);
        let writer = place.clone();
        let writer = thread::spawn(move || writer.put(SECOND.0, SECOND.1));
        consistent(&place);
        writer.join().unwrap();
        assert_eq!(place.get(SECOND.0), Some(SECOND.1));
    });
}

#[test]
fn two_threads_never_fill_a_place_together() {
    loom::model(|| {
        let place = Arc::new(Place::default());
        let threads = [FIRST, SECOND].map(|(index, content)| {
            let place = place.clone();
            thread::spawn(move || place.put(index, content))
        });
        consistent(&place);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(consistent(&place), 1, "one of the two is known");
    });
}
