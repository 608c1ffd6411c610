use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// A block as the kernel gives it: zeros.
fn block() -> Box<SharedBlock> {
    // SAFETY: atomics of integers, for which all-zero bytes are a value.
    unsafe { Box::new(std::mem::zeroed()) }
}

#[test]
fn zeros_are_no_block() {
    let block = block();
    assert_eq!(block.check(), Err(0));
    assert!(block.status.read().is_none() && block.asked().is_none());
    block.publish();
    assert_eq!(block.check(), Ok(()));
    block.layout.store(7, Ordering::Relaxed);
    assert_eq!(block.check(), Err(7));
}

#[test]
fn a_request_and_its_answer() {
    let block = block();
    let number = block.ask(&Command { verb: RequestVerb::Start, duration_ns: 5, file: b"/t/x.rpd".to_vec() });
    assert!(!block.is_idle() && block.answer(number).is_none());
    let (asked, verb, command) = block.asked().unwrap();
    assert_eq!(
        (asked, verb, command.duration_ns, &command.file[..]),
        (number, Some(RequestVerb::Start), 5, &b"/t/x.rpd"[..])
    );
    block.reply(number, RequestOutcome::Problem, b"disk full");
    assert!(block.is_idle() && block.asked().is_none());
    assert_eq!(block.answer(number), Some(Some((RequestOutcome::Problem, b"disk full".to_vec()))));
    for _ in 0..ANSWERS {
        let number = block.ask(&Command { verb: RequestVerb::Stop, duration_ns: 0, file: vec![] });
        block.reply(number, RequestOutcome::Done, b"");
    }
    assert_eq!(block.answer(number), Some(None), "forgotten, but known to have been answered");
}

#[test]
fn what_makes_no_sense_is_not_believed() {
    let block = block();
    block.status.write(&Reading::nothing());
    assert_eq!(block.status.read().unwrap().state, RecorderState::Ready);
    block.status.version.fetch_add(1, Ordering::Relaxed);
    assert!(block.status.read().is_none(), "a writer that stands still");
    let number = block.ask(&Command { verb: RequestVerb::Look, duration_ns: 0, file: vec![b'x'; 9000] });
    block.request.verb.store(99, Ordering::Relaxed);
    let (_, verb, command) = block.asked().unwrap();
    assert_eq!((verb, command.file.len()), (None, 4096));
    block.reply(number, RequestOutcome::Unknown, &[b'y'; 9000]);
    assert_eq!(block.answer(number).unwrap().unwrap().1.len(), 512);
}

#[test]
fn readers_never_see_half_of_a_status() {
    let (block, done) = (block(), AtomicBool::new(false));
    block.status.write(&Reading::nothing());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..20_000_u64 {
                let file = vec![b'a' + (n % 26) as u8; (n % 50) as usize];
                block.status.write(&Reading { events: n, lost: n, file, ..Reading::nothing() });
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let Some(known) = block.status.read() else { continue };
            assert_eq!(known.events, known.lost);
            assert_eq!(known.file, vec![b'a' + (known.events % 26) as u8; (known.events % 50) as usize]);
        }
    });
}
