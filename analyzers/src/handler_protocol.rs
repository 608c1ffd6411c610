//! The protocol between a recorder and the process of a handler of the user's: a JSON object on a line, an answer to each, over a
//! local socket. Bytes of messages lie in a file that both have open, in memory where the machine has such a place.

use std::io::{self, BufRead, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The variable that names the sockets, with colons between them.
pub const SOCKETS: &str = "RPDT_HANDLER_SOCKETS";
/// Bytes that a line may have.
const MOST: u64 = 64 << 20;

/// What a recorder asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandlerRequest {
    /// A process begins to ask; bytes are in that file from now on.
    Hello {
        /// The process.
        process: u32,
        /// The file.
        memory: String,
    },
    /// A dispatch has begun.
    Begin(HandledDispatch),
    /// So many bytes of a sub-buffer are in the file.
    Bytes {
        /// The dispatch, as it was begun.
        id: u64,
        /// Bytes, from the start of the file.
        length: u64,
    },
    /// No more come.
    End {
        /// The dispatch.
        id: u64,
        /// The kernel has run to its end.
        completed: bool,
    },
}

/// See [`HandlerRequest::Begin`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HandledDispatch {
    /// Its number among those of the process.
    pub id: u64,
    /// The demangled name of the kernel.
    pub kernel: String,
    /// The processor, such as `gfx90a`.
    pub target: String,
    /// Its place in the queue.
    pub number: u64,
    /// Workgroups of the grid.
    pub workgroups: [u32; 3],
    /// Wavefronts of a workgroup.
    pub waves: u32,
    /// Workgroups whose messages are wanted, from one number up to, not including, another.
    pub filter: [Option<(u32, u32)>; 3],
    /// Files of the source, by the hash that messages have.
    pub files: Vec<(u64, String)>,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// To the first request: what the handler is called.
    Ready {
        /// Its file's name.
        name: String,
    },
    /// To others.
    Done,
    /// To the end of a dispatch.
    Report(HandlerReport),
    /// It cannot be done.
    Failed(String),
}

/// What a handler made of a dispatch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HandlerReport {
    /// Messages that it was given, and their bytes.
    pub messages: u64,
    /// Bytes.
    pub bytes: u64,
    /// Bytes that are no messages.
    pub damaged: u64,
    /// What it printed.
    pub text: String,
    /// What it wants in the trace. JSON has no numbers that are none, so those are left out.
    pub values: Vec<(String, f64)>,
}

/// Writes one line.
///
/// # Errors
/// As writing has them.
pub fn send(to: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Reads one line; nothing where the other side has gone.
///
/// # Errors
/// As reading has them; what is no such line.
pub fn receive<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    from.take(MOST).read_until(b'\n', &mut line)?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(serde_json::from_slice(&line)?)),
        Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_and_others_are_errors() {
        let requests = [
            HandlerRequest::Hello { process: 7, memory: "/dev/shm/a b".into() },
            HandlerRequest::Begin(HandledDispatch {
                id: 1,
                filter: [None, Some((1, 3)), None],
                ..Default::default()
            }),
            HandlerRequest::Bytes { id: 1, length: 64 },
            HandlerRequest::End { id: 1, completed: true },
        ];
        let mut bytes = Vec::new();
        requests.iter().for_each(|request| send(&mut bytes, request).unwrap());
        let mut from = bytes.as_slice();
        for request in &requests {
            assert_eq!(receive::<HandlerRequest>(&mut from).unwrap().as_ref(), Some(request));
        }
        assert_eq!(receive::<HandlerRequest>(&mut from).unwrap(), None);
        for wrong in [&b"{\"end\""[..], b"{}\n", b"\xff\n", b"\n", b"{\"bytes\":{\"id\":-1,\"length\":0}}\n"]
        {
            assert!(receive::<HandlerRequest>(&mut &*wrong).is_err(), "{wrong:?}");
        }
    }
}
