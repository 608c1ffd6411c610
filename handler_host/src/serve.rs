//! Serving the recorders that use a handler, each process over a connection of its own.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, BufReader};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rpd_analyzers::BlockFilter;
use rpd_analyzers::handler_protocol::{HandledDispatch, HandlerReport, HandlerRequest, Reply, receive, send};
use rpd_dh_comms::message;
use rustc_hash::FxHashMap;

use crate::bounds;
use crate::library::{HandlerLibrary, Handling};

/// Bytes of a sub-buffer, at most.
const MOST: u64 = 1 << 30;

/// Loads the library, and answers whoever connects to `socket`, which is made here.
///
/// # Errors
/// Why it cannot.
pub fn serve(socket: &Path, library: &Path) -> Result<Infallible, String> {
    let name = library.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    bounds::set();
    let library = HandlerLibrary::open(library)?;
    // Its functions are never called at the same time.
    let turn = Arc::new(Mutex::new(()));
    let listener = UnixListener::bind(socket).map_err(|error| format!("{}: {error}", socket.display()))?;
    loop {
        let (stream, _) = listener.accept().map_err(|error| format!("{}: {error}", socket.display()))?;
        let (turn, name) = (Arc::clone(&turn), name.clone());
        std::thread::spawn(move || {
            let connection =
                Connection { library, name, process: 0, memory: None, dispatches: HashMap::new() };
            // A recorder that goes takes its messages with it.
            let _ = connection.converse(&stream, &turn);
        });
    }
}

/// What one process asks.
struct Connection {
    library: HandlerLibrary,
    name: String,
    process: u32,
    memory: Option<File>,
    dispatches: HashMap<u64, Handled>,
}

/// A dispatch that has not ended.
struct Handled {
    handling: Handling,
    filter: BlockFilter,
    files: FxHashMap<u64, CString>,
    report: HandlerReport,
}

impl Connection {
    fn converse(mut self, stream: &UnixStream, turn: &Mutex<()>) -> io::Result<()> {
        let mut requests = BufReader::new(stream);
        while let Some(request) = receive::<HandlerRequest>(&mut requests)? {
            let mine = turn.lock().unwrap_or_else(PoisonError::into_inner);
            let reply = self.answer(request).unwrap_or_else(|error| Reply::Failed(error.to_string()));
            drop(mine);
            send(&mut &*stream, &reply)?;
        }
        let _mine = turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.dispatches.drain().for_each(|(_, handled)| drop(handled.handling.finish(false)));
        Ok(())
    }

    fn answer(&mut self, request: HandlerRequest) -> io::Result<Reply> {
        match request {
            HandlerRequest::Hello { process, memory } => {
                self.process = process;
                self.memory = Some(File::open(memory)?);
                return Ok(Reply::Ready { name: self.name.clone() });
            }
            HandlerRequest::Begin(dispatch) => {
                let handled = Handled::new(self.library.begin(self.process, &dispatch), &dispatch);
                self.dispatches.insert(dispatch.id, handled);
            }
            HandlerRequest::Bytes { id, length } => {
                let mut bytes = vec![0; length.min(MOST) as usize];
                self.memory.as_ref().ok_or(io::ErrorKind::NotConnected)?.read_exact_at(&mut bytes, 0)?;
                self.dispatches.get_mut(&id).ok_or(io::ErrorKind::NotFound)?.take(&bytes);
            }
            HandlerRequest::End { id, completed } => {
                let handled = self.dispatches.remove(&id).ok_or(io::ErrorKind::NotFound)?;
                let found = handled.handling.finish(completed);
                return Ok(Reply::Report(HandlerReport {
                    text: found.text,
                    values: found.values,
                    ..handled.report
                }));
            }
        }
        Ok(Reply::Done)
    }
}

impl Handled {
    fn new(handling: Handling, dispatch: &HandledDispatch) -> Handled {
        let name = |name: &str| CString::new(name.replace('\0', " ")).unwrap_or_default();
        let files = dispatch.files.iter().map(|(hash, file)| (*hash, name(file))).collect();
        Handled {
            handling,
            filter: BlockFilter::of(dispatch.filter),
            files,
            report: HandlerReport::default(),
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let Handled { handling, filter, files, report } = self;
        let mut damaged = 0;
        let take = |message: message::Message<'_>| {
            let header = &message.header;
            if !filter.allows(header.block) {
                return;
            }
            report.messages += 1;
            report.bytes += message.len() as u64;
            let unknown = || CString::new(format!("{:#018x}", header.file)).unwrap_or_default();
            let file: &CStr = files.entry(header.file).or_insert_with(unknown);
            handling.message(&message, file);
        };
        message::each(bytes, take, |_, bytes| damaged += bytes as u64);
        report.damaged += damaged;
    }
}
