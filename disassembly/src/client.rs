//! A disassembler in a process of its own, as the rest of the program sees it.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::server::{READY, REFUSED};
use crate::wire::{read_bytes, read_number, write_bytes, write_number};
use crate::{InstructionText, NoDisassembly, data};

/// Processes that may end on one object's code before the rest is taken for data. Code has none of these; of random bytes one instruction in
/// some thousand.
const MOST_DEATHS: u32 = 32;

/// Turns instructions of one processor into text.
///
/// LLVM is in another process: it crashes on some bytes that are no instruction. Where that happens the bytes are data, and another
/// process goes on behind them.
pub struct Disassembler {
    command: Command,
    processor: String,
    named: OsString,
    process: Option<LlvmProcess>,
    deaths: u32,
}

struct LlvmProcess {
    child: Child,
    input: BufWriter<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Disassembler {
    /// Starts `command`, which calls [`serve`](crate::serve), for a processor (`gfx90a`) and with the LLVM that `named` names, or the
    /// first one installed that knows the processor.
    ///
    /// # Errors
    /// When there is no such LLVM, and what to install; or the command cannot be started.
    pub fn start(
        command: Command,
        processor: &str,
        named: Option<&OsStr>,
    ) -> Result<Disassembler, NoDisassembly> {
        let mut disassembler = Disassembler {
            command,
            processor: processor.to_string(),
            named: named.unwrap_or_default().to_os_string(),
            process: None,
            deaths: 0,
        };
        disassembler.process = Some(disassembler.spawn()?);
        Ok(disassembler)
    }

    fn spawn(&mut self) -> Result<LlvmProcess, NoDisassembly> {
        let command = &mut self.command;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(NoDisassembly::NotStarted)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(NoDisassembly::NotStarted(io::ErrorKind::BrokenPipe.into()));
        };
        let mut process = LlvmProcess { child, input: BufWriter::new(input), output: BufReader::new(output) };
        let mut greet = || {
            write_bytes(&mut process.input, self.processor.as_bytes())?;
            write_bytes(&mut process.input, self.named.as_bytes())?;
            process.input.flush()?;
            Ok(match read_number(&mut process.output)? {
                REFUSED => Some(String::from_utf8_lossy(&read_bytes(&mut process.output)?).into_owned()),
                READY => None,
                _ => return Err(io::ErrorKind::InvalidData.into()),
            })
        };
        match greet() {
            Ok(None) => Ok(process),
            Ok(Some(why)) => Err(NoDisassembly::NoLlvm(why)),
            Err(error) => Err(NoDisassembly::NotStarted(error)),
        }
    }

    /// The instructions of a function, which lies at `address`, in waves of that size. Together they are as long as `code`.
    pub fn function(&mut self, code: &[u8], address: u64, wavefront_size: u32) -> Vec<InstructionText> {
        let mut found = Vec::new();
        let (mut done, mut is_careful) = (0, false);
        while done < code.len() {
            let before = found.len();
            let place = address.wrapping_add(done as u64);
            let asked = self.ask(&code[done..], place, wavefront_size, is_careful, &mut found);
            done +=
                found[before..].iter().map(|instruction: &InstructionText| instruction.length).sum::<usize>();
            match asked {
                Ok(()) => break,
                // It has said all that came before what it ended on.
                Err(_) if is_careful => {
                    let data = data(&code[done..]);
                    done += data.length;
                    found.push(data);
                    is_careful = false;
                    self.deaths += 1;
                }
                Err(_) => is_careful = true,
            }
        }
        found
    }

    /// How many instructions were taken for data because LLVM could not stand them.
    pub fn deaths(&self) -> u32 {
        self.deaths
    }

    /// Adds what another process says of the code. That may end in the middle.
    fn ask(
        &mut self,
        code: &[u8],
        address: u64,
        wavefront_size: u32,
        is_careful: bool,
        found: &mut Vec<InstructionText>,
    ) -> io::Result<()> {
        let mut left = code;
        if self.deaths >= MOST_DEATHS {
            while !left.is_empty() {
                let data = data(left);
                left = &left[data.length..];
                found.push(data);
            }
            return Ok(());
        }
        let mut process = match self.process.take() {
            Some(process) => process,
            None => self.spawn().map_err(io::Error::other)?,
        };
        let input = &mut process.input;
        let numbers = [wavefront_size.into(), address, is_careful.into()];
        let sent = numbers.iter().try_for_each(|number| write_number(input, *number));
        sent.and_then(|()| write_bytes(input, code)).and_then(|()| input.flush())?;
        loop {
            let length = read_number(&mut process.output)? as usize;
            if length == 0 && left.is_empty() {
                self.process = Some(process);
                return Ok(());
            }
            let text = read_bytes(&mut process.output)?;
            if length == 0 || length > left.len() {
                return Err(io::ErrorKind::InvalidData.into());
            }
            left = &left[length..];
            found.push(InstructionText { length, text: String::from_utf8_lossy(&text).into_owned() });
        }
    }
}

/// The process ends with its input; it is waited for, so that none is left.
impl Drop for LlvmProcess {
    fn drop(&mut self) {
        // It may be in the middle of something that nobody waits for any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
