//! The server: one trace or two, on this machine, for whoever knows its address.
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

mod access;
mod answers;
pub(crate) mod assets;
mod browser;
mod compared;
mod panes;
mod published;
mod reader;
#[cfg(test)]
mod tests;

pub use browser::{Opened, open};

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    /// What an address must begin with, without slashes.
    token: String,
    /// Where it listens.
    address: SocketAddr,
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
    begun: Instant,
    /// When the last question came, ms after `begun`.
    asked_ms: AtomicU64,
}

impl Served {
    /// Connections to the trace with this number.
    pub(crate) fn pool(&self, source: usize) -> Result<&Pool> {
        self.pools.get(source).context("there is no such trace")
    }

    fn touch(&self) {
        let ms = self.begun.elapsed().as_millis();
        self.asked_ms.store(u64::try_from(ms).unwrap_or(u64::MAX).max(1), Ordering::Relaxed);
    }

    fn is_asked(&self) -> bool {
        self.asked_ms.load(Ordering::Relaxed) > 0
    }

    fn idle(&self) -> Duration {
        let asked = Duration::from_millis(self.asked_ms.load(Ordering::Relaxed));
        self.begun.elapsed().saturating_sub(asked)
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
        let opened =
            |file: &PathBuf| trace::open(file, notes).map(|(trace, version)| (file.clone(), trace, version));
        let traces = files.iter().map(opened).collect::<Result<_>>()?;
        let address = SocketAddr::new(listen, port);
        let listener =
            std::net::TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let served = Arc::new(Served {
            token: token().context("cannot read /dev/urandom")?,
            address,
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
            begun: Instant::now(),
            asked_ms: AtomicU64::new(0),
        });
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
        let address = self.address();
        let host = match address.ip() {
            ip if ip.is_unspecified() => SocketAddr::new(IpAddr::from([127, 0, 0, 1]), address.port()),
            _ => address,
        };
        format!("http://{host}/{}/", self.served.token)
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.served.address
    }

    /// Reads the trace and answers, until Ctrl-C comes or nobody has asked anything for `idle`. What leads the browser here goes away when it
    /// has come.
    ///
    /// # Errors
    /// When connections cannot be taken. A trace that cannot be read is said on the page.
    pub fn run(self, idle: Option<Duration>, opened: Option<Opened>) -> Result<()> {
        let Server { mut traces, listener, served, .. } = self;
        let reader = Arc::clone(&served);
        let reading = std::thread::Builder::new().name("rpd-read".into()).spawn(move || {
            let read = AssertUnwindSafe(|| match traces.pop() {
                Some(trace) if reader.is_live => reader::follow(trace, &reader),
                last => {
                    traces.extend(last);
                    reader::whole(traces, &reader);
                }
            });
            // A page that waits for what never comes would be worse.
            if catch_unwind(read).is_err() {
                let why =
                    "reading failed by a defect of rpd view; rpd check says what is wrong with the trace";
                reader.published.put(Err(why.to_string()), true);
            }
        })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let answered = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let router = router(Arc::clone(&served));
            let end = ended(&served, idle);
            tokio::spawn(until_asked(Arc::clone(&served), opened));
            tokio::select! {
                answered = async { axum::serve(listener, router).await } => answered,
                () = end => Ok(()),
            }
        });
        // What is being worked out for an answer is not waited for.
        runtime.shutdown_background();
        served.has_ended.store(true, Ordering::Relaxed);
        drop(reading);
        Ok(answered?)
    }
}

/// Keeps what leads the browser here until it has come.
async fn until_asked(served: Arc<Served>, opened: Option<Opened>) {
    let begun = Instant::now();
    while opened.is_some() && !served.is_asked() && begun.elapsed() < BROWSER {
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until the server is to end.
async fn ended(served: &Served, idle: Option<Duration>) {
    let idle = async {
        match idle {
            None => std::future::pending().await,
            Some(idle) => {
                while served.idle() < idle {
                    tokio::time::sleep(LOOK.min(idle)).await;
                }
            }
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => (),
        () = idle => (),
    }
}

/// All that is answered, behind the checks.
pub(crate) fn router(served: Arc<Served>) -> Router {
    let checks = axum::middleware::from_fn_with_state(Arc::clone(&served), access::check);
    answers::routes(Arc::clone(&served)).layer(checks).with_state(served)
}
