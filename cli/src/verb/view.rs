//! `rpd view`: the timeline of a trace in a browser.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use rpd_view::server::{self, Server, Serving};

use crate::args::value;
use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::verb::disassembler;

/// Show a trace as a timeline in the browser
///
/// Serves one page on this machine and opens it in the browser; prints its address. Ends on Ctrl-C. The page asks no other host for
/// anything, and nothing is written into the trace or beside it.
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
  rpd view --idle 30m trace.rpd &")]
pub(crate) struct View {
    /// The trace; a second one is shown below it, to compare them
    #[arg(value_name = "FILE", required = true, num_args = 1..=2)]
    files: Vec<PathBuf>,
    /// Follow a trace that is being recorded
    #[arg(long)]
    live: bool,
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
        let View { files, live, listen, port, .. } = &self;
        if *live && files.len() > 1 {
            bail!("--live follows one trace: give one FILE, or leave --live away to compare two");
        }
        let serving = Serving { files, is_live: *live, listen: *listen, port: *port };
        let notes = notes();
        let server = Server::of(&serving, &*notes)?.disassembling(disassembler::command);
        drop(notes);
        let (url, address) = (server.url(), server.address());
        output::write(|out| writeln!(out, "{url}"))?;
        if !address.ip().is_loopback() {
            note(format_args!("anyone who reaches {address} and knows this address can read the trace"));
        }
        let opened = if self.no_open { None } else { server::open(&url) };
        // Where no browser can be opened, it is on another machine.
        if opened.is_none() && (!self.no_open || std::env::var_os("SSH_CONNECTION").is_some()) {
            let port = address.port();
            note(format_args!("from the machine with the browser: ssh -L {port}:127.0.0.1:{port} HOST"));
        }
        server.run(self.idle, opened)?;
        Ok(ExitCode::SUCCESS)
    }
}
