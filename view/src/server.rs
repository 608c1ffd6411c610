//! The server: one trace, on this machine, for whoever knows its address.
//!
//! | file | owns |
//! |---|---|
//! | `access.rs` | who may ask, and what the browser is told not to do |
//! | `answers.rs` | what is asked, and the answers |
//! | `assets.rs` | the files of the page |
//! | `browser.rs` | opening the page |

mod access;
mod answers;
mod assets;
mod browser;
#[cfg(test)]
mod tests;

pub use browser::{Opened, open};

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use axum::Router;
use rpd_postprocess::notes::Notes;
use rpd_postprocess::trace;
use rpd_schema::Version;
use rusqlite::Connection;

use crate::pool::Pool;
use crate::reading::{self, Progress};
use crate::timeline::Timeline;

/// How long after the last question the server looks whether it is idle.
const LOOK: Duration = Duration::from_secs(1);

/// How long a browser may take to start.
const BROWSER: Duration = Duration::from_secs(120);

/// What all answers are made of.
pub(crate) struct Served {
    /// What an address must begin with, without slashes.
    token: String,
    /// What a question may call this server.
    hosts: Vec<String>,
    /// The trace, or why it cannot be read.
    timeline: OnceLock<Result<Timeline, String>>,
    progress: Progress,
    pool: Pool,
    begun: Instant,
    /// When the last question came, ms after `begun`.
    asked_ms: AtomicU64,
}

impl Served {
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
    file: PathBuf,
    trace: (Connection, Version),
    listener: std::net::TcpListener,
    served: Arc<Served>,
    address: SocketAddr,
}

/// 128 bits that nobody can guess, in hexadecimal digits.
fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Server {
    /// Opens the trace `file` and listens on `listen`, at `port`; at 0 the system picks one.
    ///
    /// # Errors
    /// When it is no trace, or the address cannot be listened on.
    pub fn of(file: &Path, listen: IpAddr, port: u16, notes: &dyn Notes) -> Result<Server> {
        let trace = trace::open(file, notes)?;
        let address = SocketAddr::new(listen, port);
        let listener =
            std::net::TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let served = Arc::new(Served {
            token: token().context("cannot read /dev/urandom")?,
            hosts: access::hosts(address),
            timeline: OnceLock::new(),
            progress: Progress::default(),
            pool: Pool::of(file)?,
            begun: Instant::now(),
            asked_ms: AtomicU64::new(0),
        });
        Ok(Server { file: file.to_path_buf(), trace, listener, served, address })
    }

    /// Where the page is.
    pub fn url(&self) -> String {
        let host = match self.address.ip() {
            ip if ip.is_unspecified() => SocketAddr::new(IpAddr::from([127, 0, 0, 1]), self.address.port()),
            _ => self.address,
        };
        format!("http://{host}/{}/", self.served.token)
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads the trace and answers, until Ctrl-C comes or nobody has asked anything for `idle`. What leads the browser here goes away when it
    /// has come.
    ///
    /// # Errors
    /// When connections cannot be taken. A trace that cannot be read is said on the page.
    pub fn run(self, idle: Option<Duration>, opened: Option<Opened>) -> Result<()> {
        let Server { file, trace: (trace, version), listener, served, .. } = self;
        let reader = Arc::clone(&served);
        let reading = std::thread::Builder::new().name("rpd-read".into()).spawn(move || {
            let timeline = reading::read(&file, (&trace, version), &reader.progress);
            let _ = reader.timeline.set(timeline.map_err(|error| format!("{error:#}")));
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
    answers::routes().layer(checks).with_state(served)
}
