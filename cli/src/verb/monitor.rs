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
use crate::record::destination::{self, Destination, Existing, Trace};
use crate::record::executable;
use crate::record::launch::{self, Ending, LaunchFailure};
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
Exit status: the command's, 127 if it was not found, 126 if it cannot be executed; without a command 0. 1 if there is no GPU to sample, if
none has one of the sensors, or if another process samples them into FILE: the command was not run then. Without a command also 1 if no
sensor had a value. A sensor that no GPU has is named, unless those that there are were asked for.

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
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = gpu)]
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

/// One more Ctrl-C does not keep the last values out of the file.
const SIGNALS: u32 = 2;

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
        let existing = Existing::of(self.append, self.force);
        if let Some(missing) = file_name::missing_values(&self.output) {
            note(text::escape(&missing));
        }
        let name_of_file = file_name::of_process(&self.output);
        let file: PathBuf =
            OsString::from_vec(destination::escaped(name_of_file.as_os_str().as_bytes())).into();
        let recorder = OwnRecorder::load(&library, &self.variables(destination::absolute(&file)?))?;
        let count = recorder.gpus()? as usize;
        if count == 0 || count < self.gpu.len() {
            return Err(self.too_few(count));
        }
        if recorder.sensors()? == 0 {
            return Err(self.no_sensor());
        }
        // From here on there is a file to be brought to its end.
        let noted = Interruption::note_some(SIGNALS).context("cannot install signal handlers")?;
        let destination = Destination::prepare(&file, existing, false)?;
        let ran = self.sample(&recorder, &destination);
        recorder.finish()?;
        let ending = match ran {
            Ok(ending) => ending,
            Err(failure) => {
                destination.abandon();
                return match (failure, name) {
                    (LaunchFailure::NotRunnable(why), Some(name)) => Ok(not_runnable(name, why).repeat()),
                    (LaunchFailure::NotRunnable(_), None) => Ok(ExitCode::FAILURE),
                    (LaunchFailure::Other(error), _) => Err(error),
                };
            }
        };
        let counts = destination.trace().map(|trace| counts(trace.path(), trace.first_session()));
        let is_empty = counts.is_some_and(|counts| say(&name_of_file, counts));
        drop(noted);
        Ok(match ending {
            Ending::Exited(0) if is_empty && name.is_none() => ExitCode::FAILURE,
            ending => ending.repeat(),
        })
    }

    /// Samples until the command ends, or until it is time.
    fn sample(&self, recorder: &OwnRecorder, destination: &Destination) -> Result<Ending, LaunchFailure> {
        if recorder.monitor().map_err(LaunchFailure::Other)? == 0 {
            return Err(LaunchFailure::Other(not_sampled(destination)));
        }
        if self.command.is_empty() {
            self.wait();
            return Ok(Ending::Exited(0));
        }
        // The command is not begun for somebody who has changed their mind.
        if let Some(signal) = Interruption::signal() {
            return Ok(Ending::Killed(signal));
        }
        launch::run(&self.command, &[], None, |_| Ok(())).map(|ended| ended.ending)
    }

    /// What the recorder is to know.
    fn variables(&self, file: OsString) -> Vec<(&'static str, OsString)> {
        let gpus: Vec<String> = self.gpu.iter().map(ToString::to_string).collect();
        let duration = self.duration.map(|duration| format!("{}ns", duration.as_nanos()).into());
        vec![
            ("RPDT_FILENAME", file),
            ("RPDT_APPEND", "1".into()),
            ("RPDT_AUTOSTART", "1".into()),
            ("RPDT_DELAY", OsString::new()),
            ("RPDT_DURATION", duration.unwrap_or_default()),
            ("RPDT_MAX_MB", OsString::new()),
            ("RPDT_ROTATE", OsString::new()),
            ("RPDT_REPORT", OsString::new()),
            ("LOGDUR_LOG_LOCATION", OsString::new()),
            ("RPDT_MONITOR", self.sensors.sensors.clone().into()),
            ("RPDT_MONITOR_PERIOD", self.sensors.period.clone().unwrap_or_default().into()),
            ("RPDT_MONITOR_GPUS", gpus.join(",").into()),
            // COMMAND and what it starts are its descendants.
            ("RPDT_MONITOR_PROCESS", OsString::new()),
        ]
    }

    /// Why nothing is sampled, where `count` of the GPUs are there.
    fn too_few(&self, count: usize) -> anyhow::Error {
        if count > 0 || !self.gpu.is_empty() {
            let gpus: Vec<String> = self.gpu.iter().map(ToString::to_string).collect();
            let gpus = gpus.join(", ");
            let there = match count {
                0 => format!("there is no GPU {gpus}"),
                _ => format!("of the GPUs {gpus} only {count} can be sampled"),
            };
            return anyhow!("{there}: rpd doctor lists those that are there, --all samples all of them");
        }
        let sysfs = env::var("RPDT_SYSFS").ok().filter(|directory| !directory.is_empty());
        let sysfs = sysfs.unwrap_or_else(|| "/sys".into());
        anyhow!(
            "no GPU to sample: there is none of the driver amdgpu in {}, and none that NVIDIA's libnvidia-ml.so.1 knows; \
             rpd doctor says what this machine has",
            text::escape(&sysfs)
        )
    }

    /// Why nothing is sampled, where the GPUs have nothing of what is asked for.
    fn no_sensor(&self) -> anyhow::Error {
        let gpus: Vec<String> = self.gpu.iter().map(ToString::to_string).collect();
        let none = match gpus.as_slice() {
            [] => "no GPU".to_string(),
            gpus => format!("none of the GPUs {}", gpus.join(", ")),
        };
        let asked: Vec<&str> = self.sensors.sensors.split(',').collect();
        if asked.contains(&sensor::AVAILABLE) {
            return anyhow!("no sensor to sample: {none} has one that can be read; --sensors all says why");
        }
        if asked.contains(&"all") {
            return anyhow!("no sensor to sample: {none} has one that can be read");
        }
        anyhow!(
            "no sensor to sample: {none} has {}; --sensors {} samples those that there are",
            asked.join(" or "),
            sensor::AVAILABLE
        )
    }

    /// Until Ctrl-C, or until the time is over.
    fn wait(&self) {
        let begin = Instant::now();
        while Interruption::signal().is_none() && self.duration.is_none_or(|most| begin.elapsed() < most) {
            thread::sleep(LOOK);
        }
    }
}

/// The number of a GPU.
fn gpu(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| "a GPU is a number, as rpd info and rpd doctor have it".to_string())
}

/// Why the recorder samples nothing, though there are GPUs.
fn not_sampled(destination: &Destination) -> anyhow::Error {
    let trace = destination.trace().map(Trace::path).unwrap_or(Path::new(""));
    let others = || -> Result<bool> {
        let (trace, _) = rpd_schema::open_read(trace)?;
        let sessions = rpd_schema::sessions(&trace)?;
        Ok(sessions.iter().any(|session| session.pid() != Some(std::process::id())))
    };
    let file = trace.to_string_lossy();
    match others() {
        Ok(true) => anyhow!(
            "another process samples these GPUs into {}: -o FILE records into another file",
            text::escape(&file)
        ),
        _ => anyhow!("the recorder cannot record here: RPDT_LOG=1 makes it say why"),
    }
}

/// One line: what is in the file. Whether that is nothing.
fn say(name: &Path, counts: Result<Counts>) -> bool {
    let name = name.to_string_lossy();
    match counts {
        Ok(Counts { gpus, sensors, rows, lost, cpu }) => {
            note(format_args!(
                "{}: {}, {}, {}, {} lost, {cpu:.2} s recorder CPU",
                text::escape(&name),
                counted(gpus, "GPU", "GPUs"),
                counted(sensors, "sensor", "sensors"),
                counted(rows, "value", "values"),
                counted(lost, "record", "records"),
            ));
            if rows == 0 {
                note("no sensor had a value; rpd does not wake a GPU that sleeps");
            }
            rows == 0
        }
        Err(error) => {
            note(format_args!("cannot read back what was recorded: {error:#}"));
            true
        }
    }
}

/// What this process's session has.
#[derive(Default)]
struct Counts {
    gpus: u64,
    sensors: u64,
    rows: u64,
    /// Records.
    lost: u64,
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
        let lost = session.lost().values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        Ok(Counts { gpus: count(0)?, sensors: count(1)?, rows: count(2)?, lost, cpu })
    })?)
}
