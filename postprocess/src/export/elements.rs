//! The elements of an export, as bytes on their way out.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::{Result, anyhow};

/// Bytes that are handed to the writer at once.
const CHUNK: usize = 256 << 10;

/// Chunks of each maker that wait for the writer.
const WAITING: usize = 4;

/// Lets `fill` make elements while another thread writes them to `out`, between `head` and `tail` and with `separator` between two of them. The first two makers may be used by
/// two threads: their elements are written by turns, a chunk of one and a chunk of the other, so that the same elements give the same bytes
/// however fast either is. What the third one makes comes behind; it must not be used before the others are dropped.
///
/// # Errors
/// What `fill` or `out` fails with; of the latter an [`io::Error`] is in the chain.
pub(super) fn write<T>(
    out: &mut (dyn Write + Send),
    (head, separator, tail): (&[u8], &'static [u8], &[u8]),
    fill: impl FnOnce([Elements; 3]) -> Result<T>,
) -> Result<T> {
    thread::scope(|scope| {
        let (makers, arriving): (Vec<Elements>, Vec<Receiver<Vec<u8>>>) =
            (0..3).map(|_| Elements::new(separator)).unzip();
        let makers = makers.try_into().map_err(|_| anyhow!("three makers are three"))?;
        let writer = scope.spawn(move || drain(out, (head, separator, tail), arriving));
        // Without senders the writer comes to its end.
        let filled = fill(makers);
        let written = writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer failed")));
        // Where the writer stops first, `fill` only knows that it did.
        written?;
        filled
    })
}

fn drain(
    out: &mut (dyn Write + Send),
    (head, separator, tail): (&[u8], &[u8], &[u8]),
    arriving: Vec<Receiver<Vec<u8>>>,
) -> io::Result<()> {
    out.write_all(head)?;
    let mut is_first = true;
    let mut put = |chunk: Vec<u8>| {
        if !is_first {
            out.write_all(separator)?;
        }
        is_first = false;
        out.write_all(&chunk)
    };
    let mut arriving = arriving.into_iter();
    let mut by_turns: Vec<Receiver<Vec<u8>>> = arriving.by_ref().take(2).collect();
    while !by_turns.is_empty() {
        let mut open = Vec::with_capacity(2);
        for maker in by_turns {
            if let Ok(chunk) = maker.recv() {
                put(chunk)?;
                open.push(maker);
            }
        }
        by_turns = open;
    }
    for maker in arriving {
        while let Ok(chunk) = maker.recv() {
            put(chunk)?;
        }
    }
    out.write_all(tail)?;
    out.flush()
}

/// Where elements are made. Dropping it hands over the last ones.
pub(super) struct Elements {
    buffer: Vec<u8>,
    separator: &'static [u8],
    chunks: SyncSender<Vec<u8>>,
}

impl Elements {
    fn new(separator: &'static [u8]) -> (Elements, Receiver<Vec<u8>>) {
        let (chunks, arriving) = sync_channel(WAITING);
        (Elements { buffer: Vec::new(), separator, chunks }, arriving)
    }

    /// The bytes of a further element, to be appended to.
    ///
    /// # Errors
    /// When the writer has stopped.
    pub(super) fn next(&mut self) -> Result<&mut Vec<u8>> {
        if self.buffer.len() >= CHUNK {
            let full = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK + CHUNK / 4));
            self.chunks.send(full).map_err(|_| anyhow!("the writer has stopped"))?;
        }
        if !self.buffer.is_empty() {
            self.buffer.extend_from_slice(self.separator);
        }
        Ok(&mut self.buffer)
    }
}

impl Drop for Elements {
    fn drop(&mut self) {
        if !self.buffer.is_empty() {
            // A writer that has stopped says itself why.
            let _ = self.chunks.send(std::mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_writer_that_fails_ends_the_work() {
        let failed: Result<()> = write(&mut Full, (b"[", b",\n", b"]"), |[mut elements, ..]| {
            loop {
                elements.next()?.extend_from_slice(&[b'x'; 1000]);
            }
        });
        let error = failed.unwrap_err();
        assert_eq!(error.downcast_ref::<io::Error>().map(io::Error::kind), Some(io::ErrorKind::StorageFull));
    }

    #[test]
    fn elements_of_two_makers_have_an_order() {
        let written = |delayed: usize| {
            let mut out = Vec::new();
            write(&mut out, (b"[", b",\n", b"]"), |[one, other, mut last]| {
                thread::scope(|scope| {
                    for (at, (mut maker, letter)) in [(one, b'1'), (other, b'2')].into_iter().enumerate() {
                        scope.spawn(move || {
                            for _ in 0..2000 * (at + 1) {
                                if at == delayed {
                                    thread::yield_now();
                                }
                                maker.next().unwrap().extend_from_slice(&[letter; 400]);
                            }
                        });
                    }
                });
                last.next()?.push(b'3');
                Ok(())
            })
            .unwrap();
            out
        };
        let out = written(0);
        assert!(out == written(1));
        let text = String::from_utf8(out).unwrap();
        let elements: Vec<&str> = text[1..text.len() - 1].split(",\n").collect();
        let of = |letter: char| elements.iter().filter(|element| element.starts_with(letter)).count();
        assert_eq!((of('1'), of('2'), of('3'), elements.len()), (2000, 4000, 1, 6001));
        assert!(
            elements.last() == Some(&"3") && elements.iter().all(|element| matches!(element.len(), 1 | 400))
        );
        let mut none = Vec::new();
        write(&mut none, (b"[", b",\n", b"\n]"), |_| Ok(())).unwrap();
        assert_eq!(none, b"[\n]");
    }
}
