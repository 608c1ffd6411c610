//! `rpd monitor`: samples the sensors of GPUs, with no recorder in any program.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use rpd_postprocess::text::{self, counted};
use rpd_schema::session_fact::RECORDER_CPU_NS;
use rpd_settings::{file_name, sensor};

use crate::args::monitor::{self, Monitored};
use crate::args::value;
use crate::output::note::note;
use crate::record::destination::{Destination, Existing};
use crate::record::executable;
use crate::record::launch::{self, Ending, Failure};
use crate::record::preload;
use crate::system::interruption::Interruption;
use crate::system::own_recorder::OwnRecorder;
use crate::verb::record::not_runnable;

/// Sample power, energy, memory, clocks and load of this machine's GPUs
///
/// Samples until COMMAND ends, or without one until Ctrl-C or --duration. COMMAND is not recorded and does not notice; `rpd record
/// --monitor` has its kernels in the same file.
#[derive(Args)]
#[command(
    override_usage = "rpd monitor [OPTIONS] [--] [COMMAND [ARGUMENT]...]",
    after_help = "\
Exit status: the command's, 127 if it was not found, 126 if it cannot be executed; without a command 0. 1 if nothing can be sampled, in which
case the command was not run.

Example:
  rpd monitor -o node.rpd --sensors power,energy:100ms -- ./train"
)]
pub(crate) struct Monitor {
    /// The file to record into. %p in it is rpd's process, %h the host, %r the rank, %j the job
    #[arg(short, long, value_name = "FILE", default_value = "monitor.rpd", value_parser = value::output())]
    output: PathBuf,
    /// Add to the recordings that FILE already holds
    #[arg(long, conflicts_with = "force")]
    append: bool,
    /// Replace FILE if it already holds recordings. Given twice, also while a program records into it
    #[arg(long, action = clap::ArgAction::Count)]
    force: u8,
    /// Sample all GPUs, which is the default
    #[arg(long, conflicts_with = "gpu")]
    all: bool,
    /// Sample these GPUs: numbers as traces of programs have them, with commas between them
    #[arg(long, value_name = "N", value_delimiter = ',')]
    gpu: Vec<u32>,
    /// What to sample: power, energy, vram, vram_process, sclk, mclk, temp_edge, temp_hotspot, temp_mem, gpu_util and mem_util, with
    /// commas between them, or available: what each GPU has of them. PERIOD is the time from one sample to the next, from 1ms to
    /// 60s [default of PERIOD: 10ms]
    #[arg(long, value_name = "SENSORS[:PERIOD]", default_value = sensor::AVAILABLE, value_parser = monitor::parse)]
    sensors: Monitored,
    /// End after that long: 10s, 1.5ms; seconds without a unit. COMMAND goes on
    #[arg(long, value_name = "TIME", value_parser = value::time)]
    duration: Option<Duration>,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// How often it is looked whether Ctrl-C came.
const LOOK: Duration = Duration::from_millis(50);

impl Monitor {
    /// See [`Monitor`]. Does not return if a signal ended the command: rpd ends by the same one.
    ///
    /// # Errors
    /// When nothing can be sampled. The command has not run then.
    pub(crate) fn run(mut self) -> Result<ExitCode> {
        self.gpu.sort_unstable();
        self.gpu.dedup();
        if env::var_os("RPDT_LOADED").is_some_and(|loaded| !loaded.is_empty()) {
            bail!(
                "a program is being recorded here, rpd itself: rpd record --monitor samples while it records"
            );
        }
        let library = preload::find_library()?;
        let name = self.command.first().map(OsString::as_os_str);
        if let Some(name) = name
            && let Err(why) = executable::resolve(name, env::var_os("PATH").as_deref())
        {
            return Ok(not_runnable(name, why).repeat());
        }
        let existing = match (self.append, self.force) {
            (true, _) => Existing::Append,
            (false, 0) => Existing::Refuse,
            (false, 1) => Existing::Replace,
            (false, _) => Existing::Take,
        };
        if let Some(missing) = file_name::missing_values(&self.output) {
            note(text::escape(&missing));
        }
        let name_of_file = file_name::of_process(&self.output);
        let destination = Destination::prepare(&literal(&name_of_file), existing, false)?;
        let Destination::File(trace) = &destination else { bail!("{} is no file", name_of_file.display()) };
        let (path, first_session) = (trace.path().to_path_buf(), trace.first_session());

        let recorder = OwnRecorder::load(&library, &self.variables(&destination))?;
        let count = recorder.monitor()? as usize;
        if count == 0 || count < self.gpu.len() {
            recorder.finish()?;
            destination.abandon();
            return Err(self.too_few(count));
        }
        let ending = match name {
            None => {
                self.wait()?;
                Ending::Exited(0)
            }
            Some(name) => match launch::run(&self.command, &[], |_| Ok(())) {
                Ok(ended) => ended.ending,
                Err(Failure::NotRunnable(why)) => not_runnable(name, why),
                Err(Failure::Other(error)) => return Err(error),
            },
        };
        recorder.finish()?;
        say(&name_of_file, counts(&path, first_session));
        Ok(ending.repeat())
    }

    /// What the recorder is to know.
    fn variables(&self, destination: &Destination) -> Vec<(&'static str, OsString)> {
        let gpus: Vec<String> = self.gpu.iter().map(ToString::to_string).collect();
        let mut variables = vec![
            ("RPDT_FILENAME", destination.for_recorder()),
            ("RPDT_APPEND", "1".into()),
            ("RPDT_AUTOSTART", "1".into()),
            ("RPDT_DELAY", OsString::new()),
            ("RPDT_MAX_MB", OsString::new()),
            ("RPDT_ROTATE", OsString::new()),
            ("RPDT_REPORT", OsString::new()),
            ("RPDT_MONITOR", self.sensors.sensors.clone().into()),
            ("RPDT_MONITOR_PERIOD", self.sensors.period.clone().unwrap_or_default().into()),
            ("RPDT_MONITOR_GPUS", gpus.join(",").into()),
            // COMMAND and what it starts are its descendants.
            ("RPDT_MONITOR_PROCESS", OsString::new()),
        ];
        if let Some(duration) = self.duration {
            variables.push(("RPDT_DURATION", format!("{}ns", duration.as_nanos()).into()));
        }
        variables
    }

    /// Why nothing is sampled, where `count` of the GPUs are there.
    fn too_few(&self, count: usize) -> anyhow::Error {
        if count > 0 || !self.gpu.is_empty() {
            let gpus: Vec<String> = self.gpu.iter().map(ToString::to_string).collect();
            return anyhow!(
                "{count} of the GPUs {} are there: rpd doctor lists them, --all samples all that there are",
                gpus.join(", ")
            );
        }
        anyhow!(
            "no GPU to sample: there is none of the driver amdgpu in /sys, and none that NVIDIA's libnvidia-ml.so.1 knows; \
             rpd doctor says what this machine has"
        )
    }

    /// Until Ctrl-C, or until the time is over.
    fn wait(&self) -> Result<()> {
        let begin = Instant::now();
        let _noted = Interruption::note().context("cannot install signal handlers")?;
        while Interruption::signal().is_none() && self.duration.is_none_or(|most| begin.elapsed() < most) {
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// One line: what is in the file.
fn say(name: &Path, counts: Result<Counts>) {
    let name = name.to_string_lossy();
    match counts {
        Ok(Counts { gpus, sensors, rows, cpu }) => note(format_args!(
            "{}: {}, {}, {}, {cpu:.2} s recorder CPU",
            text::escape(&name),
            counted(gpus, "GPU", "GPUs"),
            counted(sensors, "sensor", "sensors"),
            counted(rows, "value", "values"),
        )),
        Err(error) => note(format_args!("cannot read back what was recorded: {error:#}")),
    }
}

/// What this process's session has.
#[derive(Default)]
struct Counts {
    gpus: u64,
    sensors: u64,
    rows: u64,
    /// The recorder's, seconds.
    cpu: f64,
}

fn counts(path: &Path, first_session: u32) -> Result<Counts> {
    let (trace, _) = rpd_schema::open_read(path)?;
    let sessions = rpd_schema::sessions(&trace)?;
    let mut newer = sessions.iter().filter(|session| session.session >= first_session);
    let own = newer.find(|session| session.pid() == Some(std::process::id()));
    let Some(session) = own else { return Ok(Counts::default()) };
    let first = i64::from(session.session) << 32;
    let sql = "SELECT count(DISTINCT deviceId), count(DISTINCT deviceId || monitorType), count(*) FROM rocpd_monitor \
               WHERE id >= ?1 AND id < ?2";
    Ok(trace.query_row(sql, [first, first + (1 << 32)], |row| {
        let count = |column| row.get(column).map(i64::unsigned_abs);
        let cpu = session.number(RECORDER_CPU_NS).unwrap_or(0) as f64 / 1e9;
        Ok(Counts { gpus: count(0)?, sensors: count(1)?, rows: count(2)?, cpu })
    })?)
}

/// The name in which nothing stands for anything.
fn literal(path: &Path) -> PathBuf {
    let bytes = path.as_os_str().as_bytes().iter();
    let doubled = bytes.flat_map(|byte| std::iter::repeat_n(*byte, if *byte == b'%' { 2 } else { 1 }));
    OsString::from_vec(doubled.collect()).into()
}
