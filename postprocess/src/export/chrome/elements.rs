//! The elements of the array of events, as bytes on their way out.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::{Result, anyhow};

/// Bytes that are handed to the writer at once.
const CHUNK: usize = 256 << 10;

/// Chunks that wait for the writer.
const WAITING: usize = 4;

/// Lets `fill` make elements while another thread writes them to `out`.
///
/// # Errors
/// What `fill` or `out` fails with; of the latter an [`io::Error`] is in the chain.
pub(super) fn write<T>(
    out: &mut (dyn Write + Send),
    fill: impl FnOnce(&mut Elements) -> Result<T>,
) -> Result<T> {
    thread::scope(|scope| {
        let (chunks, arriving) = sync_channel(WAITING);
        let writer = scope.spawn(move || drain(out, &arriving));
        let mut elements = Elements { buffer: Vec::with_capacity(CHUNK * 2), chunks, is_first: true };
        let filled = fill(&mut elements).and_then(|result| elements.send().map(|()| result));
        // Without a sender the writer comes to its end.
        drop(elements);
        let written = writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer failed")));
        // Where the writer stops first, `fill` only knows that it did.
        written?;
        filled
    })
}

fn drain(out: &mut (dyn Write + Send), arriving: &Receiver<Vec<u8>>) -> io::Result<()> {
    while let Ok(chunk) = arriving.recv() {
        out.write_all(&chunk)?;
    }
    out.flush()
}

/// Where elements are made.
pub(super) struct Elements {
    buffer: Vec<u8>,
    chunks: SyncSender<Vec<u8>>,
    is_first: bool,
}

impl Elements {
    /// The bytes of a further element, to be appended to.
    ///
    /// # Errors
    /// When the writer has stopped.
    pub(super) fn next(&mut self) -> Result<&mut Vec<u8>> {
        if self.buffer.len() >= CHUNK {
            self.send()?;
        }
        if !self.is_first {
            self.buffer.extend_from_slice(b",\n");
        }
        self.is_first = false;
        Ok(&mut self.buffer)
    }

    /// The bytes of what is around the elements.
    pub(super) fn raw(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    fn send(&mut self) -> Result<()> {
        let full = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK * 2));
        self.chunks.send(full).map_err(|_| anyhow!("the writer has stopped"))
    }
}

/// Appends the digits of a number.
pub(super) fn digits(bytes: &mut Vec<u8>, number: i64) {
    bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends a time of `ns` in us: whole ones, or with three decimals; never by way of a floating-point number.
pub(super) fn microseconds(bytes: &mut Vec<u8>, ns: i64) {
    if ns < 0 {
        bytes.push(b'-');
    }
    let ns = ns.unsigned_abs();
    bytes.extend_from_slice(itoa::Buffer::new().format(ns / 1000).as_bytes());
    let rest = ns % 1000;
    if rest != 0 {
        let digit = |of: u64| b'0' + (rest / of % 10) as u8;
        bytes.extend_from_slice(&[b'.', digit(100), digit(10), digit(1)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_every_digit() {
        for (ns, us) in [
            (0, "0"),
            (1, "0.001"),
            (999, "0.999"),
            (1000, "1"),
            (1010, "1.010"),
            (3_489_389_197_956_317, "3489389197956.317"),
            (i64::MAX, "9223372036854775.807"),
            (-1, "-0.001"),
            (i64::MIN, "-9223372036854775.808"),
        ] {
            let mut bytes = Vec::new();
            microseconds(&mut bytes, ns);
            assert_eq!(String::from_utf8(bytes).unwrap(), us);
        }
    }

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
        let failed = write(&mut Full, |elements| {
            loop {
                elements.next()?.extend_from_slice(&[b'x'; 1000]);
            }
            #[expect(unreachable_code, reason = "the type of the result")]
            Ok(())
        });
        let error = failed.unwrap_err();
        assert_eq!(error.downcast_ref::<io::Error>().map(io::Error::kind), Some(io::ErrorKind::StorageFull));
    }
}
