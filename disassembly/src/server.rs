//! The process that has LLVM in it.

use std::ffi::OsString;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::ffi::OsStringExt;

use crate::llvm::Llvm;
use crate::wire::{read_bytes, read_number, write_bytes, write_number};

/// Seconds that one function may take: the largest take some.
const PATIENCE: u32 = 60;

/// How the answer to the first message begins.
pub(crate) const READY: u64 = 0;
pub(crate) const REFUSED: u64 = 1;

/// Answers a [`Disassembler`](crate::Disassembler) in another process, by standard input and output, until that is gone. For a process that
/// does nothing else.
///
/// # Errors
/// When it cannot be read from or written to.
pub fn serve() -> io::Result<()> {
    let (mut input, mut out) = (BufReader::new(io::stdin().lock()), BufWriter::new(io::stdout().lock()));
    let processor = String::from_utf8_lossy(&read_bytes(&mut input)?).into_owned();
    let named = OsString::from_vec(read_bytes(&mut input)?);
    let llvm = match Llvm::find(&processor, Some(named.as_os_str()).filter(|named| !named.is_empty())) {
        Ok(llvm) => llvm,
        Err(error) => {
            write_number(&mut out, REFUSED)?;
            write_bytes(&mut out, error.to_string().as_bytes())?;
            return out.flush();
        }
    };
    write_number(&mut out, READY)?;
    out.flush()?;
    leave_no_core();
    loop {
        let wavefront_size = match read_number(&mut input) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            size => size?,
        };
        let (mut address, is_careful) = (read_number(&mut input)?, read_number(&mut input)? != 0);
        let code = read_bytes(&mut input)?;
        end_in(PATIENCE);
        let mut disassembler = llvm.disassembler(wavefront_size as u32).map_err(io::Error::other)?;
        let mut rest = code.as_slice();
        while !rest.is_empty() {
            if is_careful {
                // What comes next may end this process.
                out.flush()?;
            }
            let instruction = disassembler.instruction(rest, address);
            write_number(&mut out, instruction.length as u64)?;
            write_bytes(&mut out, instruction.text.as_bytes())?;
            address = address.wrapping_add(instruction.length as u64);
            rest = &rest[instruction.length..];
        }
        write_number(&mut out, 0)?;
        out.flush()?;
    }
}

/// LLVM that crashes on bytes that are no code is expected, and nothing to keep.
fn leave_no_core() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads the structure, which lives until the call returns.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
}

/// Ends this process after so many seconds, unless it is asked again before.
fn end_in(seconds: u32) {
    // SAFETY: takes a number; the signal has its default action, which is to end the process.
    unsafe { libc::alarm(seconds) };
}
