//! `rpd export`: a trace in the formats of other tools.

mod asked;
mod chrome;
mod columns;
mod destination;
mod flame;
mod gpu_info;
mod html;
mod kineto;
mod library_trace;
mod lines;
mod page;
mod perfetto;
mod rocprofv3;
mod timeline;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Write a trace in the format of another tool
#[derive(Args)]
#[command(after_help = "\
Example:
  rpd export chrome trace.rpd -o trace.json.gz
  rpd export perfetto trace.rpd -o trace.pftrace
  rpd export csv trace.rpd kernels
  rpd export timeline trace.rpd -o trace.html
  rpd export chrome --help")]
pub(crate) struct Export {
    #[command(subcommand)]
    format: Format,
}

#[derive(Subcommand)]
enum Format {
    Perfetto(perfetto::Perfetto),
    Kineto(kineto::Kineto),
    Rocprofv3(rocprofv3::Rocprofv3),
    Rocprofv3Csv(rocprofv3::Rocprofv3Csv),
    Chrome(Box<chrome::Chrome>),
    Html(html::Html),
    Timeline(page::Page),
    Collapsed(flame::Collapsed),
    Speedscope(flame::Speedscope),
    LibraryTrace(library_trace::LibraryTrace),
    LibraryPerf(library_trace::LibraryPerf),
    GpuInfo(gpu_info::GpuInfo),
    Csv(lines::Csv),
    Jsonl(lines::Jsonl),
    Arrow(columns::Arrow),
    #[cfg(feature = "parquet")]
    Parquet(columns::Parquet),
}

impl Export {
    /// Writes the trace in that format.
    ///
    /// # Errors
    /// What failed; no file has changed then.
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.format {
            Format::Chrome(chrome) => chrome.run(),
            Format::Perfetto(perfetto) => perfetto.run(),
            Format::Kineto(kineto) => kineto.run(),
            Format::Rocprofv3(rocprofv3) => rocprofv3.run(),
            Format::Rocprofv3Csv(tables) => tables.run(),
            Format::Html(html) => html.run(),
            Format::Timeline(page) => page.run(),
            Format::Collapsed(collapsed) => collapsed.run(),
            Format::Speedscope(speedscope) => speedscope.run(),
            Format::LibraryTrace(calls) => calls.run(),
            Format::LibraryPerf(calls) => calls.run(),
            Format::GpuInfo(sensors) => sensors.run(),
            Format::Csv(csv) => csv.run(),
            Format::Jsonl(jsonl) => jsonl.run(),
            Format::Arrow(arrow) => arrow.run(),
            #[cfg(feature = "parquet")]
            Format::Parquet(parquet) => parquet.run(),
        }
    }
}
