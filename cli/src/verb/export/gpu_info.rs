//! `rpd export gpu-info`: what sensors read, as madengine's users have it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use rpd_postprocess::export::gpu_info::{self, GpuInfoOptions};
use rpd_postprocess::moment::{Moment, TimeRange};
use rpd_postprocess::trim::window::Window;
use rpd_postprocess::{text, trace};

use super::destination::OutputArgs;
use crate::args::value;
use crate::output::note::note;
use crate::output::progress::notes;

/// To whoever names a part of the trace.
pub(super) const WHY_NO_PART: &str = "what a sensor read is of a GPU and a time alone: --gpu, --start, --end";

/// Write gpu_info_power_profiler_output.csv or gpu_info_vram_profiler_output.csv, as madengine's profiler does
///
/// The file has a row for each moment at which a GPU was sampled. From a trace recorded with --monitor power or --monitor vram.
#[derive(Args)]
#[command(after_help = "\
Columns: time, the local time with microseconds; Power(Watt) GPUn, or vram(%) GPUn: the share of all memory that is in use. N/A where
nothing was read; lines end with CR and LF.

Example:
  rpd export gpu-info power trace.rpd -o gpu_info_power_profiler_output.csv
  rpd export gpu-info vram trace.rpd --gpu 0,1 --every 1s")]
pub(super) struct GpuInfo {
    /// What the columns have
    #[arg(value_enum)]
    sensor: Sensor,
    /// The trace
    file: PathBuf,
    /// These GPUs, in that order [default: all that were sampled]
    #[arg(long, value_name = "GPUS", value_delimiter = ',')]
    gpu: Vec<u32>,
    /// The time from one row to the next: 100ms, 1s; seconds without a unit
    #[arg(long, value_name = "TIME", value_parser = value::distance, default_value = "100ms")]
    every: Duration,
    /// Sensors from this time on, as rpd trim has times: 2s or 1500 (ns) on the trace's clock, +2s from the first call, 25%
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    start: Option<Moment>,
    /// Sensors up to this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    end: Option<Moment>,
    #[command(flatten)]
    to: OutputArgs,
}

/// [`gpu_info::GpuInfoColumn`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum Sensor {
    Power,
    Vram,
}

impl From<Sensor> for gpu_info::GpuInfoColumn {
    fn from(sensor: Sensor) -> gpu_info::GpuInfoColumn {
        match sensor {
            Sensor::Power => gpu_info::GpuInfoColumn::Power,
            Sensor::Vram => gpu_info::GpuInfoColumn::Vram,
        }
    }
}

impl GpuInfo {
    /// Writes the file.
    ///
    /// # Errors
    /// When the trace cannot be read or the output not be written.
    pub(super) fn run(self) -> Result<ExitCode> {
        let (trace, version) = trace::open(&self.file, &*notes())?;
        let time = TimeRange { start: self.start, end: self.end };
        let options = GpuInfoOptions {
            sensor: self.sensor.into(),
            gpus: self.gpu,
            period_ns: i64::try_from(self.every.as_nanos()).unwrap_or(i64::MAX).max(1),
            window: Window::of(&trace, version, &time)?,
        };
        let notes = notes();
        let rows = self.to.write(&*notes, |out| gpu_info::export(&trace, &options, &*notes, out))?;
        if rows == 0 {
            let sensor = options.sensor.name();
            note(format_args!(
                "{} has no readings of the sensor {sensor}: rpd record --monitor {sensor} records them where the machine has that sensor",
                text::escape_path(&self.file)
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}
