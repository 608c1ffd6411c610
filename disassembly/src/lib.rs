//! Instructions of AMD GPUs as text, through an installed LLVM.
//!
//! LLVM's C interface to its disassembler has been the same since version 14 and before, so one set of declarations serves all. A library
//! of that size that somebody else installed, on bytes that somebody else wrote, does not belong into the process that shows them: LLVM
//! crashes on some. So there are two processes. [`Disassembler`] starts a command and talks to it; the command calls [`serve`], which opens
//! the library.
//!
//! All `unsafe` of looking at code is here, in `llvm`, but for two system calls in `server`.
//!
//! | file | owns |
//! |---|---|
//! | `client.rs` | starting the other process, and going on behind what it ended on |
//! | `server.rs` | that process |
//! | `wire.rs` | what the two say to each other |
//! | `llvm.rs` | opening LLVM's library and calling it |
//! | `place.rs` | where distributions put it |

mod client;
mod llvm;
mod place;
mod server;
mod wire;

pub use client::Disassembler;
pub use server::serve;

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionText {
    /// Bytes that it takes.
    pub length: usize,
    /// In LLVM's syntax: `s_add_u32 s0, s1, s2`. What is no instruction is data: `.long 0x12345678`.
    pub text: String,
}

/// What is no instruction, as assemblers take it. `code` is not empty.
fn data(code: &[u8]) -> InstructionText {
    match code.first_chunk::<4>() {
        Some(word) => {
            InstructionText { length: 4, text: format!(".long {:#010x}", u32::from_le_bytes(*word)) }
        }
        None => {
            let bytes: Vec<String> = code.iter().map(|byte| format!("{byte:#04x}")).collect();
            InstructionText { length: code.len(), text: format!(".byte {}", bytes.join(", ")) }
        }
    }
}

/// Why there is no disassembly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoDisassembly {
    /// There is no LLVM that serves: what was found, and what to install.
    #[error("{0}")]
    NoLlvm(String),
    /// The other process cannot be started, or ends at once.
    #[error("the process that disassembles does not start: {0}")]
    NotStarted(std::io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_instruction_is_data() {
        assert_eq!(data(&[1, 2, 3, 4, 5]), InstructionText { length: 4, text: ".long 0x04030201".into() });
        assert_eq!(data(&[1, 2]), InstructionText { length: 2, text: ".byte 0x01, 0x02".into() });
    }
}
