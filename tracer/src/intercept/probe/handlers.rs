//! Handlers of the user's own. Each runs in a process that `rpd probe` has started, so that one that crashes, hangs or takes all memory
//! costs its own findings and nothing else. A thread of ours for each hands it the messages, and waits for its answers.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rpd_analyzers::handler_protocol::{HandledDispatch, HandlerReport, HandlerRequest, Reply, receive, send};
use rpd_preload::errands::Errands;
use rpd_preload::lock::lock;
use rpd_schema::Finding;
use rpd_transport::log;
use rpd_transport::source::AnalysisText;

use super::analysis;
use super::pool::{Dispatched, Pool};

/// How long a handler may take for one request.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that may wait for a handler, and how long is waited until there is room for more.
const MOST_WAITING: usize = 32 << 20;
const ROOM_PATIENCE: Duration = Duration::from_millis(500);

pub(super) struct UserHandler {
    socket: PathBuf,
    /// What it calls itself, once it was asked.
    name: OnceLock<String>,
    link: Mutex<HandlerLink>,
    queue: Errands<HandlerWork>,
    /// The last bytes found no room in time.
    drops: AtomicBool,
    /// Bytes of dispatches that it was not given.
    missed: Mutex<HashMap<u64, u64>>,
    /// Dispatches that have ended, until it has said what it has found.
    asked: Mutex<Vec<Asked>>,
}

/// Who finds the ending has it.
type Asked = Arc<Mutex<Option<Ending>>>;

/// What a handler is to be told.
enum HandlerWork {
    Bytes(&'static UserHandler, Arc<Pool>, Arc<Dispatched>, Arc<[u8]>),
    /// The handler of that number.
    End(usize, Asked),
}

/// A dispatch that has ended, on its way from one handler to the next.
pub(super) struct Ending {
    pub(super) pool: Arc<Pool>,
    pub(super) dispatch: Arc<Dispatched>,
    pub(super) completed: bool,
    /// What was wrong with its messages.
    pub(super) trouble: Vec<String>,
    /// What analyzers and handlers before have found.
    pub(super) analyses: Vec<AnalysisText>,
}

struct HandlerLink {
    state: LinkState,
    /// Dispatches that it was told of.
    begun: HashSet<u64>,
}

enum LinkState {
    New,
    Open(Conversation),
    /// Why it is asked no more.
    Gone(String),
}

/// The socket, and the file for bytes.
struct Conversation {
    stream: CheckedFile,
    memory: CheckedFile,
}

/// A file that stays open. A program may close all descriptors that it finds, and open others of the same numbers.
struct CheckedFile {
    file: Option<File>,
    id: (u64, u64),
}

impl CheckedFile {
    fn new(file: File) -> io::Result<CheckedFile> {
        let found = file.metadata()?;
        Ok(CheckedFile { id: (found.dev(), found.ino()), file: Some(file) })
    }

    fn get(&self) -> io::Result<&File> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let found = file.metadata()?;
        match (found.dev(), found.ino()) == self.id {
            true => Ok(file),
            false => Err(io::Error::other("the program has closed the connection to it")),
        }
    }
}

impl Drop for CheckedFile {
    fn drop(&mut self) {
        if self.get().is_err()
            && let Some(file) = self.file.take()
        {
            // The number is the program's now.
            let _ = file.into_raw_fd();
        }
    }
}

impl Conversation {
    /// Connects, and says where bytes will be; what the handler is called.
    fn open(socket: &Path) -> io::Result<(Conversation, String)> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let process = std::process::id();
        let path = socket.with_extension(process.to_string());
        let mut options = File::options();
        let memory = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        let conversation = CheckedFile::new(File::from(OwnedFd::from(stream)))
            .and_then(|stream| Ok(Conversation { stream, memory: CheckedFile::new(memory)? }));
        let hello = HandlerRequest::Hello { process, memory: path.to_string_lossy().into_owned() };
        let greeted = conversation.and_then(|conversation| {
            let reply = conversation.ask(&hello)?;
            Ok((conversation, reply))
        });
        // Both have it open, or nobody will.
        let _ = fs::remove_file(&path);
        match greeted? {
            (conversation, Reply::Ready { name }) => Ok((conversation, name)),
            _ => Err(io::Error::other("it does not answer as a handler does")),
        }
    }

    fn ask(&self, request: &HandlerRequest) -> io::Result<Reply> {
        let mut stream = self.stream.get()?;
        let answered = send(&mut stream, request).and_then(|()| receive(&mut BufReader::new(stream)));
        match answered {
            Ok(Some(Reply::Failed(why))) => Err(io::Error::other(why)),
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err(io::Error::other("its process has ended")),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(io::Error::other(format!("it took more than {} s", PATIENCE.as_secs())))
            }
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                Err(io::Error::other("its process has ended"))
            }
            Err(error) => Err(error),
        }
    }
}

impl HandlerLink {
    /// Asks where it can be asked; whether it was.
    fn with(
        &mut self,
        handler: &UserHandler,
        ask: impl FnOnce(&Conversation, &mut HashSet<u64>) -> io::Result<()>,
    ) -> bool {
        if let LinkState::New = self.state {
            self.state = match Conversation::open(&handler.socket) {
                Ok((conversation, name)) => {
                    let _ = handler.name.set(name);
                    LinkState::Open(conversation)
                }
                Err(error) => handler.gone(&error),
            };
        }
        let LinkState::Open(conversation) = &self.state else { return false };
        let asked = ask(conversation, &mut self.begun);
        if let Err(error) = &asked {
            self.state = handler.gone(error);
        }
        asked.is_ok()
    }
}

/// Those whose sockets the variable names, for sub-buffers of `capacity` bytes.
pub(super) fn named(sockets: &str, capacity: usize) -> Vec<&'static UserHandler> {
    let sockets = sockets.split(':').filter(|socket| !socket.is_empty());
    let handler = |socket: &str| {
        let socket = PathBuf::from(socket);
        let link = HandlerLink { state: LinkState::New, begun: HashSet::new() };
        let handler: &'static UserHandler = Box::leak(Box::new(UserHandler {
            socket,
            name: OnceLock::new(),
            link: Mutex::new(link),
            queue: Errands::new(c"rpd-handler", MOST_WAITING.max(4 * capacity), work),
            drops: AtomicBool::new(false),
            missed: Mutex::default(),
            asked: Mutex::default(),
        }));
        handler
    };
    sockets.map(handler).collect()
}

impl UserHandler {
    /// Gives it the bytes of a sub-buffer, as soon as it has time for them. Waits a moment where it has none.
    pub(super) fn bytes(&'static self, pool: &Arc<Pool>, dispatch: &Arc<Dispatched>, bytes: &Arc<[u8]>) {
        let patience = if self.drops.load(Ordering::Relaxed) { Duration::ZERO } else { ROOM_PATIENCE };
        let work = || HandlerWork::Bytes(self, Arc::clone(pool), Arc::clone(dispatch), Arc::clone(bytes));
        let drops = !self.queue.wait_for_room(bytes.len(), patience) || !self.queue.add(work(), bytes.len());
        self.drops.store(drops, Ordering::Relaxed);
        if drops {
            self.miss(dispatch, bytes.len());
        }
    }

    /// It was not given so many bytes.
    fn miss(&self, dispatch: &Arc<Dispatched>, bytes: usize) {
        *lock(&self.missed).entry(id(dispatch)).or_default() += bytes as u64;
    }

    /// Waits up to `patience` until it has answered everything; whether it has. What others have found does not wait longer.
    pub(super) fn finish(&self, patience: Duration) -> bool {
        let finished = self.queue.finish(patience);
        for asked in std::mem::take(&mut *lock(&self.asked)) {
            if let Some(mut ending) = lock(&asked).take() {
                let dropped = lock(&self.missed).remove(&id(&ending.dispatch)).unwrap_or(0);
                let silent = self.silent("it had not answered when the recording ended");
                ending.analyses.push(AnalysisText { dropped, ..silent });
                analysis::add(ending);
            }
        }
        finished
    }

    /// It is asked no more, and that is said.
    fn gone(&self, error: &io::Error) -> LinkState {
        let why = error.to_string();
        log::problem(&format!("the handler {} is given no more messages: {why}", self.name()));
        LinkState::Gone(why)
    }

    fn name(&self) -> String {
        let socket = || self.socket.file_name().map(|name| name.to_string_lossy().into_owned());
        self.name.get().cloned().or_else(socket).unwrap_or_default()
    }

    /// It has found nothing.
    fn silent(&self, reason: &str) -> AnalysisText {
        AnalysisText { analyzer: self.name(), reason: reason.to_string(), ..AnalysisText::default() }
    }

    fn tell(&self, pool: &Pool, dispatch: &Arc<Dispatched>, bytes: &[u8]) {
        let id = id(dispatch);
        let given = lock(&self.link).with(self, |conversation, begun| {
            begin(conversation, begun, pool, dispatch)?;
            conversation.memory.get()?.write_all_at(bytes, 0)?;
            conversation.ask(&HandlerRequest::Bytes { id, length: bytes.len() as u64 }).map(drop)
        });
        if !given {
            self.miss(dispatch, bytes.len());
        }
    }

    /// What it has found, once a dispatch has ended; `reasons` are why it may not be all.
    fn end(
        &self,
        pool: &Pool,
        dispatch: &Arc<Dispatched>,
        completed: bool,
        mut reasons: Vec<String>,
    ) -> AnalysisText {
        let id = id(dispatch);
        let mut report = HandlerReport::default();
        let missed = lock(&self.missed).remove(&id).unwrap_or(0);
        let dropped = missed + dispatch.dropped.load(Ordering::Relaxed);
        let completed = completed && dropped == 0;
        let mut link = lock(&self.link);
        link.with(self, |conversation, begun| {
            begin(conversation, begun, pool, dispatch)?;
            begun.remove(&id);
            match conversation.ask(&HandlerRequest::End { id, completed })? {
                Reply::Report(found) => report = found,
                _ => return Err(io::Error::other("it does not answer as a handler does")),
            }
            Ok(())
        });
        if let LinkState::Gone(why) = &link.state {
            reasons.push(format!("the handler is gone: {why}"));
        }
        if report.damaged > 0 {
            reasons.push(format!("{} bytes are no messages, and were skipped", report.damaged));
        }
        analysis::log(report.text);
        AnalysisText {
            analyzer: self.name(),
            messages: report.messages,
            bytes: report.bytes,
            dropped,
            reason: reasons.join("; "),
            findings: report.values.into_iter().map(|(name, value)| Finding::Value { name, value }).collect(),
        }
    }
}

/// A number for the dispatch, which no other has before it has ended.
fn id(dispatch: &Arc<Dispatched>) -> u64 {
    Arc::as_ptr(dispatch) as u64
}

/// Tells of a dispatch, once.
fn begin(
    conversation: &Conversation,
    begun: &mut HashSet<u64>,
    pool: &Pool,
    dispatch: &Arc<Dispatched>,
) -> io::Result<()> {
    let id = id(dispatch);
    if !begun.insert(id) {
        return Ok(());
    }
    let subject = analysis::subject(dispatch);
    let dispatch = HandledDispatch {
        id,
        kernel: subject.kernel.to_string(),
        target: subject.target.to_string(),
        number: subject.dispatch,
        workgroups: subject.blocks,
        waves: subject.waves,
        filter: pool.config.filter.ranges(),
        files: subject.files.all().map(|(hash, name)| (hash, name.to_string())).collect(),
    };
    conversation.ask(&HandlerRequest::Begin(dispatch)).map(drop)
}

/// No more bytes come: asks the handlers from number `next` on, one after the other, and hands over what all have found.
pub(super) fn end(ending: Ending, next: usize) {
    let Some(handler) = ending.pool.config.handlers.get(next) else { return analysis::add(ending) };
    let asked = Arc::new(Mutex::new(Some(ending)));
    lock(&handler.asked).push(Arc::clone(&asked));
    if !handler.queue.add(HandlerWork::End(next, Arc::clone(&asked)), 0)
        && let Some(mut ending) = lock(&asked).take()
    {
        ending.analyses.push(handler.silent("there is no thread that could ask it"));
        end(ending, next + 1);
    }
}

/// The body of a handler's thread.
fn work(all: Vec<HandlerWork>) {
    for work in all {
        match work {
            HandlerWork::Bytes(handler, pool, dispatch, bytes) => handler.tell(&pool, &dispatch, &bytes),
            HandlerWork::End(number, asked) => answer(number, &asked),
        }
    }
}

/// Asks the handler of that number what it has found, and then the next.
fn answer(number: usize, asked: &Asked) {
    let ending = lock(asked).as_ref().map(|ending| {
        let (pool, dispatch) = (Arc::clone(&ending.pool), Arc::clone(&ending.dispatch));
        (pool, dispatch, ending.completed, ending.trouble.clone())
    });
    let Some((pool, dispatch, completed, trouble)) = ending else { return };
    let handler = pool.config.handlers[number];
    let found = handler.end(&pool, &dispatch, completed, trouble);
    lock(&handler.asked).retain(|other| !Arc::ptr_eq(other, asked));
    // Nobody waited for it any longer.
    let Some(mut ending) = lock(asked).take() else { return };
    ending.analyses.push(found);
    end(ending, number + 1);
}
