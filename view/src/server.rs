//! The server: one trace or two, or a dataset, on this machine, for whoever knows its address.
//!
//! | file | owns |
//! |---|---|
//! | `access.rs` | who may ask, and what the browser is told not to do |
//! | `answers.rs` | what is asked, and the answers |
//! | `assets.rs` | the files of the page |
//! | `panes.rs` | answers that read the file for a pane: SQL, reports, trees, code |
//! | `browser.rs` | opening the page |
//! | `reader.rs` | the thread that reads the traces |
//! | `published.rs` | what is shown now, and its number |
//! | `compared.rs` | how two traces lie to each other |
//! | `jobs.rs` | the ranks of a dataset, each of which can be opened as a trace |

mod access;
mod answers;
pub(crate) mod assets;
mod browser;
mod compared;
mod jobs;
mod panes;
mod published;
mod reader;
#[cfg(test)]
mod tests;

pub use browser::{Opened, open};
pub use jobs::{DatasetServer, ServingDataset};

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use axum::Router;
use rpd_postprocess::notes::Notes;
use rpd_postprocess::trace;

use crate::gathering::Progress;
use crate::kernel_code::Disassembler;
use crate::pool::Pool;
use crate::timeline::Timeline;
use access::Access;
use compared::Compared;
use published::Published;

/// How long after the last question the server looks whether it is idle.
const LOOK: Duration = Duration::from_secs(1);

/// How long a browser may take to start.
const BROWSER: Duration = Duration::from_secs(120);

/// A search and its hits.
struct Searched {
    timeline: Weak<Timeline>,
    text: String,
    hits: Arc<Vec<u32>>,
}

/// What all answers are made of.
pub(crate) struct Served {
    access: Arc<Access>,
    /// What is shown of the traces.
    published: Published,
    compared: Compared,
    progress: Progress,
    /// Connections to each trace.
    pools: Vec<Pool>,
    files: Vec<PathBuf>,
    disassembler: OnceLock<Disassembler>,
    /// The last search.
    searched: Mutex<Option<Searched>>,
    /// Held by who works long on a file: one at a time, so that the machine has something left for the timeline.
    at_work: Mutex<()>,
    /// Whether the trace may grow.
    is_live: bool,
    has_ended: AtomicBool,
}

impl Served {
    /// Connections to the trace with this number.
    pub(crate) fn pool(&self, source: usize) -> Result<&Pool> {
        self.pools.get(source).context("there is no such trace")
    }

    /// Opens the traces for whoever has `access`.
    fn of(
        files: &[PathBuf],
        is_live: bool,
        access: Arc<Access>,
        notes: &dyn Notes,
    ) -> Result<(Vec<reader::OpenedTrace>, Arc<Served>)> {
        let opened =
            |file: &PathBuf| trace::open(file, notes).map(|(trace, version)| (file.clone(), trace, version));
        let traces = files.iter().map(opened).collect::<Result<_>>()?;
        let served = Arc::new(Served {
            access,
            published: Published::new(),
            compared: Compared::default(),
            progress: Progress::default(),
            pools: files.iter().map(|file| Pool::of(file)).collect::<Result<_>>()?,
            files: files.to_vec(),
            disassembler: OnceLock::new(),
            searched: Mutex::default(),
            at_work: Mutex::new(()),
            is_live,
            has_ended: AtomicBool::new(false),
        });
        Ok((traces, served))
    }

    /// Reads the traces.
    fn read(self: &Arc<Served>, mut traces: Vec<reader::OpenedTrace>) {
        let read = AssertUnwindSafe(|| match traces.pop() {
            Some(trace) if self.is_live => reader::follow(trace, self),
            last => {
                traces.extend(last);
                reader::whole(traces, self);
            }
        });
        // A page that waits for what never comes would be worse.
        if catch_unwind(read).is_err() {
            let why = "reading failed by a defect of rpd view; rpd check says what is wrong with the trace";
            self.published.put(Err(why.to_string()), true);
        }
    }
}

/// A server that listens and answers nothing yet.
pub struct Server {
    traces: Vec<reader::OpenedTrace>,
    listener: std::net::TcpListener,
    served: Arc<Served>,
}

/// What is served, and where.
#[derive(Debug, Clone)]
pub struct Serving<'a> {
    /// The trace, or two that are compared.
    pub files: &'a [PathBuf],
    /// Whether what is written to the trace from now on is shown as well.
    pub is_live: bool,
    /// The address of this machine to listen on.
    pub listen: IpAddr,
    /// The port; at 0 the system picks one.
    pub port: u16,
}

/// 128 bits that nobody can guess, in hexadecimal digits.
fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Server {
    /// Opens the traces and listens.
    ///
    /// # Errors
    /// When one is no trace, or the address cannot be listened on.
    pub fn of(serving: &Serving<'_>, notes: &dyn Notes) -> Result<Server> {
        let Serving { files, is_live, listen, port } = *serving;
        if files.is_empty() || files.len() > 2 || (is_live && files.len() > 1) {
            bail!("one trace is shown, or two that do not grow");
        }
        let (listener, access) = listening(listen, port)?;
        let (traces, served) = Served::of(files, is_live, access, notes)?;
        Ok(Server { traces, listener, served })
    }

    /// Lets the page show instructions, which what `disassembler` starts tells.
    #[must_use]
    pub fn disassembling(self, disassembler: Disassembler) -> Server {
        self.served.disassembler.get_or_init(|| disassembler);
        self
    }

    /// Where the page is.
    pub fn url(&self) -> String {
        self.served.access.url()
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.served.access.address
    }

    /// Reads the trace and answers, until Ctrl-C comes or nobody has asked anything for `idle`. What leads the browser here goes away when it
    /// has come.
    ///
    /// # Errors
    /// When connections cannot be taken. A trace that cannot be read is said on the page.
    pub fn run(self, idle: Option<Duration>, opened: Option<Opened>) -> Result<()> {
        let Server { traces, listener, served } = self;
        let reader = Arc::clone(&served);
        let reading =
            std::thread::Builder::new().name("rpd-read".into()).spawn(move || reader.read(traces))?;
        let answered = answer(listener, router(Arc::clone(&served)), &served.access, idle, opened);
        served.has_ended.store(true, Ordering::Relaxed);
        drop(reading);
        answered
    }
}

/// Listens on an address of this machine.
fn listening(listen: IpAddr, port: u16) -> Result<(std::net::TcpListener, Arc<Access>)> {
    let address = SocketAddr::new(listen, port);
    let listener =
        std::net::TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    listener.set_nonblocking(true)?;
    let token = token().context("cannot read /dev/urandom")?;
    let access = Arc::new(Access::new(token, listener.local_addr()?));
    Ok((listener, access))
}

/// Answers until the server is to end.
fn answer(
    listener: std::net::TcpListener,
    router: Router,
    access: &Arc<Access>,
    idle: Option<Duration>,
    opened: Option<Opened>,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answered = runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let end = ended(access, idle);
        tokio::spawn(until_asked(Arc::clone(access), opened));
        tokio::select! {
            answered = async { axum::serve(listener, router).await } => answered,
            () = end => Ok(()),
        }
    });
    // What is being worked out for an answer is not waited for.
    runtime.shutdown_background();
    Ok(answered?)
}

/// Keeps what leads the browser here until it has come.
async fn until_asked(access: Arc<Access>, opened: Option<Opened>) {
    let begun = Instant::now();
    while opened.is_some() && !access.is_asked() && begun.elapsed() < BROWSER {
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits for a signal other than Ctrl-C's that ends a command: what it has made for itself is removed then too.
async fn signalled() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::terminate()), signal(SignalKind::hangup())) {
        (Ok(mut terminate), Ok(mut hangup)) => tokio::select! {
            _ = terminate.recv() => (),
            _ = hangup.recv() => (),
        },
        _ => std::future::pending().await,
    }
}

/// Waits until the server is to end.
async fn ended(access: &Access, idle: Option<Duration>) {
    let idle = async {
        match idle {
            None => std::future::pending().await,
            Some(idle) => {
                while access.idle() < idle {
                    tokio::time::sleep(LOOK.min(idle)).await;
                }
            }
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => (),
        () = signalled() => (),
        () = idle => (),
    }
}

/// All that is answered, behind the checks.
pub(crate) fn router(served: Arc<Served>) -> Router {
    let checks = axum::middleware::from_fn_with_state(Arc::clone(&served.access), access::check);
    answers::routes(Arc::clone(&served)).layer(checks).with_state(served)
}
