//! `rpd view`: the timeline of a trace in a browser, and the overview of a dataset.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use rpd_postprocess::text;
use rpd_view::server::{self, DatasetServer, Opened, Server, Serving, ServingDataset};

use crate::args::value;
use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::verb::disassembler;

/// To whoever names a part of the trace.
pub(crate) const WHY_NO_PART: &str = "the page shows all of a trace, and the part is chosen there; rpd export timeline writes a page of a part";

/// Show a trace as a timeline in the browser, or the ranks of a dataset
///
/// Serves one page on this machine and opens it in the browser; prints its address. Ends on Ctrl-C. The page asks no other host for
/// anything, and nothing is written into the trace or beside it.
///
/// Of a dataset, which rpd dataset makes, the page has a track for each rank, with how busy its GPUs were over time. A click opens the rank
/// there as a trace, which is made in a temporary directory ($TMPDIR).
#[derive(Args)]
#[command(after_help = "\
The address has 128 random bits. Whoever does not know them gets no answer,
other users of this machine included. A browser on another machine reaches the
page through ssh, by the line that is printed in a session of ssh.

On the page, ? shows all keys. The address always has what you look at: times,
the selected event, the search. Rows of a process are the levels of its
calls, rows of a GPU operations of a queue that overlap; the bar at the top of
each is how busy it is.

Example:
  rpd view trace.rpd
  rpd view --no-open --port 8080 trace.rpd
  rpd view --live trace.rpd
  rpd view before.rpd after.rpd
  rpd view jobs
  rpd view jobs --job 4711
  rpd view --idle 30m trace.rpd &")]
pub(crate) struct View {
    /// The trace; a second one is shown below it, to compare them. Or a dataset
    #[arg(value_name = "FILE", required = true, num_args = 1..=2)]
    files: Vec<PathBuf>,
    /// Follow a trace that is being recorded
    #[arg(long)]
    live: bool,
    /// Show this job of a dataset alone
    #[arg(long)]
    job: Option<String>,
    /// Listen on this port; 0: one that is free
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Open no browser
    #[arg(long)]
    no_open: bool,
    /// Listen on this address of the machine, where others reach it
    #[arg(long, value_name = "ADDR", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    listen: IpAddr,
    /// End when no page has asked for anything for this time
    #[arg(long, value_name = "TIME", value_parser = value::time)]
    idle: Option<Duration>,
}

impl View {
    /// Serves the page until it is ended.
    ///
    /// # Errors
    /// When the trace cannot be read, or the port is not free.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let View { files, live, job, listen, port, .. } = &self;
        if let Some(dataset) = files.iter().find(|file| file.is_dir()) {
            return self.dataset(dataset);
        }
        if job.is_some() {
            bail!("--job chooses a job of a dataset, and a trace was named: leave --job away");
        }
        if *live && files.len() > 1 {
            bail!("--live follows one trace: give one FILE, or leave --live away to compare two");
        }
        let serving = Serving { files, is_live: *live, listen: *listen, port: *port };
        let notes = notes();
        let server = Server::of(&serving, &*notes)?.disassembling(disassembler::command);
        drop(notes);
        let opened = self.opened(&server.url(), server.address())?;
        server.run(self.idle, opened)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Serves the overview of a dataset.
    fn dataset(&self, directory: &Path) -> Result<ExitCode> {
        if self.files.len() > 1 {
            bail!(
                "{} is a directory, and a dataset is shown alone: name nothing else",
                text::escape_path(directory)
            );
        }
        if self.live {
            bail!(
                "--live follows a trace; a dataset is shown as it is when rpd view begins: leave --live away"
            );
        }
        let serving =
            ServingDataset { directory, job: self.job.as_deref(), listen: self.listen, port: self.port };
        let server = DatasetServer::of(&serving, disassembler::command)?;
        let opened = self.opened(&server.url(), server.address())?;
        server.run(self.idle, opened)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Prints where the page is, and opens it.
    fn opened(&self, url: &str, address: SocketAddr) -> Result<Option<Opened>> {
        output::write(|out| writeln!(out, "{url}"))?;
        if !address.ip().is_loopback() {
            note(format_args!("anyone who reaches {address} and knows this address can read what is shown"));
        }
        let opened = if self.no_open { None } else { server::open(url) };
        // Where no browser can be opened, it is on another machine.
        if opened.is_none() && (!self.no_open || std::env::var_os("SSH_CONNECTION").is_some()) {
            let port = address.port();
            note(format_args!("from the machine with the browser: ssh -L {port}:127.0.0.1:{port} HOST"));
        }
        Ok(opened)
    }
}
