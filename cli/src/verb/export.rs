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

/// Makes of the list the enum that clap reads, and its dispatch.
macro_rules! formats {
    ($($(#[cfg($when:meta)])? $name:ident($arguments:ty),)*) => {
        #[derive(Subcommand)]
        enum Format {
            $($(#[cfg($when)])? $name($arguments)),*
        }

        impl Export {
            /// Writes the trace in that format.
            ///
            /// # Errors
            /// What failed; no file has changed then.
            pub(crate) fn run(self) -> Result<ExitCode> {
                match self.format {
                    $($(#[cfg($when)])? Format::$name(arguments) => arguments.run()),*
                }
            }
        }
    };
}

// In the order of `rpd export --help`.
formats! {
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

/// Why a format takes only some options that name a part.
pub(super) fn why_no_part(format: &str) -> Option<&'static str> {
    (format == "gpu-info").then_some(gpu_info::WHY_NO_PART)
}
