//! The settings that are not a source's own: read once when the library is loaded.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rpd_duration_log::LogFormat;
use rpd_settings::quantity::MILLISECOND;
use rpd_settings::rotation::Rotation;

use crate::buffers::BufferConfig;
pub use crate::env::Template;
use crate::env::{Env, LONGEST_WAIT};
use crate::host::{self, FileId};
use crate::log::LogConfig;
use crate::switch::Schedule;

/// How large a file may be set to become, bytes. No size at all is no limit.
const FILE: RangeInclusive<u64> = 0..=1 << 50;

/// What the user asked for, checked: one field for each variable, or for those that one module reads together.
#[derive(Debug, Clone)]
pub struct Config {
    /// The trace, by its absolute path when the library was loaded.
    pub filename: Template,
    /// The trace may hold what neither this run of `rpd record` nor this job has recorded.
    pub appends: bool,
    /// When recording runs.
    pub schedule: Schedule,
    /// Size of the file, in bytes, at which recording ends.
    pub max_bytes: Option<u64>,
    /// When recording goes on in a next file, if it does.
    pub rotation: Option<Rotation>,
    /// Time between two commits.
    pub flush_interval: Duration,
    /// Memory for records and texts.
    pub buffers: BufferConfig,
    /// How long the end of the process may be delayed for rows that still drain.
    pub exit_wait: Duration,
    /// What is said.
    pub log: LogConfig,
    /// Keep the device's raw ticks beside each kernel (table `ext_tick`).
    pub ticks: bool,
    /// Keep the call stack of every HIP call.
    pub stack_frames: bool,
    /// Where kernels are logged while the program runs, if they are.
    pub duration_log: Option<DurationLogConfig>,
    /// Where `rpd record` wants to hear from this process.
    pub report: Option<PathBuf>,
    /// Lines about values that were not understood.
    pub complaints: Vec<String>,
}

impl Config {
    /// From the environment of a process whose working directory is `cwd`. Where that was deleted, a relative name of the trace stays
    /// relative. What is wrong is left with `env`.
    pub fn read(env: &mut Env<'_>, cwd: &Path) -> Config {
        let schedule = Schedule::read(env);
        // 0 is what the original calls "only when the program ends"; a killed process would lose everything, so it
        // means the default here.
        let hertz = match env.number("RPDT_AUTOFLUSH", 2, 0..=100) {
            0 => 2,
            n => n,
        };
        let level = env.number("RPDT_LOG", 0, 0..=1) as u8;
        let ticks = env.number("RPDT_TICKS", 0, 0..=1) != 0;
        let stack_frames = env.number("RPDT_STACKFRAMES", 0, 0..=1) != 0;
        let buffers = BufferConfig::read(env);
        let max_bytes = env.size("RPDT_MAX_MB", 0, FILE);
        let exit_wait = env
            .time("RPDT_EXIT_MS", MILLISECOND, Some(Duration::from_secs(10)), LONGEST_WAIT)
            .unwrap_or_default();
        let filename = env.file_name("RPDT_FILENAME").unwrap_or_else(|| "trace.rpd".into());
        let mut log_file = env.file_name("RPDT_LOG_FILE");
        if let Some(file) = log_file.take_if(|file| *file == filename) {
            env.complain(format!(
                "RPDT_LOG_FILE={} is the trace, and is ignored; name another file",
                file.display()
            ));
        }
        Config {
            filename: Template(cwd.join(filename)),
            appends: env.number("RPDT_APPEND", 1, 0..=1) != 0,
            schedule,
            max_bytes: (max_bytes > 0).then_some(max_bytes),
            rotation: rotation(env),
            flush_interval: Duration::from_secs_f64(1.0 / hertz as f64),
            buffers,
            exit_wait,
            log: LogConfig { level, file: log_file.map(|file| Template(cwd.join(file))) },
            ticks,
            stack_frames,
            duration_log: DurationLogConfig::read(env, cwd),
            report: env.text("RPDT_REPORT").map(PathBuf::from),
            complaints: Vec::new(),
        }
    }
}

/// RPDT_ROTATE.
fn rotation(env: &mut Env<'_>) -> Option<Rotation> {
    let text = env.text("RPDT_ROTATE")?;
    let text = text.to_string_lossy();
    Rotation::parse(&text)
        .map_err(|why| env.complain(format!("RPDT_ROTATE={text} {why}; all goes into one file")))
        .ok()
}

/// The duration log.
#[derive(Debug, Clone)]
pub struct DurationLogConfig {
    /// Where it is written to.
    pub location: LogLocation,
    /// How.
    pub format: LogFormat,
}

impl DurationLogConfig {
    /// LOGDUR_LOG_LOCATION and LOGDUR_LOG_FORMAT.
    fn read(env: &mut Env<'_>, cwd: &Path) -> Option<DurationLogConfig> {
        let name = env.text("LOGDUR_LOG_FORMAT");
        let format = name.as_ref().map(|name| name.to_str().and_then(LogFormat::named));
        if let (Some(name), Some(None)) = (&name, format) {
            env.complain(format!(
                "LOGDUR_LOG_FORMAT={} is not csv or json; csv is used",
                name.to_string_lossy()
            ));
        }
        let location = match env.text("LOGDUR_LOG_LOCATION")? {
            console if console == "console" => LogLocation::Console(host::standard_output_id()),
            _ => LogLocation::File(Template(cwd.join(env.file_name("LOGDUR_LOG_LOCATION")?))),
        };
        Some(DurationLogConfig { location, format: format.flatten().unwrap_or_default() })
    }
}

/// Where the duration log is written to.
#[derive(Debug, Clone)]
pub enum LogLocation {
    /// Standard output; which file that was when the library was loaded.
    Console(Option<FileId>),
    /// A file or a device, by its absolute path when the library was loaded.
    File(Template),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)]) -> Config {
        let get = |n: &str| vars.iter().find(|(k, _)| *k == n).map(|(_, v)| v.into());
        let mut env = Env::new(&get);
        let config = Config::read(&mut env, Path::new("/here"));
        Config { complaints: env.into_complaints(std::iter::empty()), ..config }
    }

    #[test]
    fn defaults() {
        let config = read(&[]);
        assert_eq!(config.filename.0, Path::new("/here/trace.rpd"));
        assert!(config.schedule.autostart && config.complaints.is_empty() && !config.ticks);
        assert_eq!(config.buffers.bytes, 256 << 20);
        assert!(
            config.flush_interval <= Duration::from_secs(1),
            "a killed process loses at most its last second"
        );
    }

    #[test]
    fn a_wrong_value_is_one_line_and_the_default() {
        let config = read(&[("RPDT_BUFFER_MB", "lots"), ("RPDT_AUTOSTART", "0"), ("RPDT_AUTOFLUSH", "1000")]);
        assert_eq!(config.buffers.bytes, 256 << 20);
        assert!(!config.schedule.autostart);
        assert_eq!(config.complaints.len(), 2);
        assert!(
            config.complaints.iter().any(|c| c.contains("RPDT_BUFFER_MB=lots")),
            "{:?}",
            config.complaints
        );
    }

    #[test]
    fn limits_for_long_runs() {
        let config = read(&[("RPDT_DELAY", "1.5"), ("RPDT_DURATION", "-3"), ("RPDT_MAX_MB", "100")]);
        assert_eq!(config.schedule.delay, Duration::from_millis(1500));
        assert_eq!(config.schedule.duration, None);
        assert_eq!(config.max_bytes, Some(100 << 20));
        assert_eq!(
            config.complaints,
            [
                "RPDT_DURATION=-3 is not a time such as 10s, 1.5ms, 250us, 2m or 1h, in seconds without a unit; it is ignored"
            ]
        );
    }

    #[test]
    fn times_and_sizes_may_have_units() {
        let config = read(&[
            ("RPDT_DELAY", "250ms"),
            ("RPDT_DURATION", "2m"),
            ("RPDT_MAX_MB", "1GB"),
            ("RPDT_BUFFER_MB", "1.5GiB"),
            ("RPDT_WAIT_MS", "20us"),
            ("RPDT_EXIT_MS", "1.5"),
        ]);
        assert_eq!(config.complaints, Vec::<String>::new());
        assert_eq!(
            (config.schedule.delay, config.schedule.duration),
            (Duration::from_millis(250), Some(Duration::from_secs(120)))
        );
        assert_eq!((config.max_bytes, config.buffers.bytes), (Some(1_000_000_000), 3 << 29));
        assert_eq!(
            (config.buffers.wait, config.exit_wait),
            (Duration::from_micros(20), Duration::from_micros(1500))
        );
        let wrong = read(&[("RPDT_BUFFER_MB", "1KiB"), ("RPDT_EXIT_MS", "1h"), ("RPDT_MAX_MB", "much")]);
        assert_eq!(
            (wrong.buffers.bytes, wrong.exit_wait, wrong.max_bytes),
            (256 << 20, Duration::from_secs(10), None)
        );
        assert_eq!(wrong.complaints.len(), 3, "{:?}", wrong.complaints);
        assert!(
            wrong.complaints[2].contains("up to 600s, in ms without a unit; 10s is used"),
            "{:?}",
            wrong.complaints
        );
    }

    #[test]
    fn a_recording_is_in_parts_where_that_is_asked_for() {
        assert_eq!(read(&[]).rotation, None);
        assert_eq!(read(&[("RPDT_ROTATE", "1GB")]).rotation, Some(Rotation::Size(1_000_000_000)));
        assert_eq!(
            read(&[("RPDT_ROTATE", "10min")]).rotation,
            Some(Rotation::Time(Duration::from_secs(600)))
        );
        let wrong = read(&[("RPDT_ROTATE", "10ms")]);
        assert_eq!(wrong.rotation, None);
        let line = "RPDT_ROTATE=10ms must be 1s or more, if it is a time; all goes into one file";
        assert_eq!(wrong.complaints, [line]);
    }

    #[test]
    fn a_log_has_a_place_and_a_format() {
        let place = |location: &str| match read(&[("LOGDUR_LOG_LOCATION", location)])
            .duration_log
            .map(|log| log.location)
        {
            None => "none".to_string(),
            Some(LogLocation::Console(_)) => "console".to_string(),
            Some(LogLocation::File(template)) => template.0.display().to_string(),
        };
        let places = ["", "console", "./console", "/dev/null", "log-%p.csv"].map(place);
        assert_eq!(places, ["none", "console", "/here/./console", "/dev/null", "/here/log-%p.csv"]);
        let of = |format| read(&[("LOGDUR_LOG_LOCATION", "console"), ("LOGDUR_LOG_FORMAT", format)]);
        let format = |config: &Config| config.duration_log.as_ref().map(|log| log.format);
        let (json, wrong) = (of("json"), of("xml"));
        assert_eq!((format(&json), json.complaints.len()), (Some(LogFormat::Json), 0));
        assert_eq!(format(&wrong), Some(LogFormat::Csv));
        assert_eq!(wrong.complaints, ["LOGDUR_LOG_FORMAT=xml is not csv or json; csv is used"]);
    }

    #[test]
    fn names_of_files_have_letters_that_stand_for_something() {
        let config = read(&[("RPDT_FILENAME", "%q.rpd"), ("LOGDUR_LOG_LOCATION", "console")]);
        assert_eq!(config.complaints.len(), 1, "{:?}", config.complaints);
        assert!(
            config.complaints[0].starts_with("RPDT_FILENAME: %q in %q.rpd stays"),
            "{:?}",
            config.complaints
        );
        let config = read(&[("RPDT_FILENAME", "t.rpd"), ("RPDT_LOG_FILE", "t.rpd")]);
        assert!(config.log.file.is_none() && config.complaints[0].contains("is the trace"), "{config:?}");
        let config = read(&[("RPDT_LOG_FILE", "%p.log")]);
        assert_eq!(config.log.file.unwrap().0, Path::new("/here/%p.log"));
    }

    #[test]
    fn empty_is_unset() {
        assert_eq!(read(&[("RPDT_FILENAME", ""), ("RPDT_LOG", "")]).filename.0, Path::new("/here/trace.rpd"));
    }
}
