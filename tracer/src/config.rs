//! `RPDT_*` environment variables, read once when the library is loaded (docs/environment.md is their table).
//!
//! Helper processes inherit the environment and do nothing with a GPU, so complaints are kept here and printed only when
//! the recorder is first used.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rpd_settings::quantity::{self, MEBIBYTE, MILLISECOND, SECOND};
use rpd_settings::{file_name, variable};

use crate::hip::Way;
use crate::hip::filter::Filter;
use crate::timing::Timing;

const TIMINGS: [Timing; 2] = [Timing::Hsa, Timing::Hip];
const WAYS: [Way; 2] = [Way::Callbacks, Way::Symbols];

/// How long a wait may be set to last.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// How large buffers may be set to be, bytes: below that not even one thread's records fit.
const BUFFERS: RangeInclusive<u64> = 1 << 20..=1 << 40;
/// How large a file may be set to become, bytes. No size at all is no limit.
const FILE: RangeInclusive<u64> = 0..=1 << 50;

/// What the user asked for, checked.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// The trace, by its absolute path when the library was loaded.
    pub(crate) filename: Template,
    /// Recording begins by itself.
    pub(crate) autostart: bool,
    /// Time from the loading of the library to the beginning of recording.
    pub(crate) delay: Duration,
    /// Time after which recording ends.
    pub(crate) duration: Option<Duration>,
    /// Size of the file, in bytes, at which recording ends.
    pub(crate) max_bytes: Option<u64>,
    /// Time between two commits.
    pub(crate) flush_interval: Duration,
    /// Bytes that records and texts in memory may take.
    pub(crate) buffer_bytes: usize,
    /// Nobody has said how many: there may be a reason for fewer.
    pub(crate) buffer_is_default: bool,
    /// How long an application's thread may wait for buffer space.
    pub(crate) wait: Duration,
    /// How long the end of the process may be delayed for rows that still drain.
    pub(crate) exit_wait: Duration,
    /// 0: problems only, 1: what the recorder does as well.
    pub(crate) log: u8,
    /// Keep the device's raw ticks beside each kernel (table `ext_tick`).
    pub(crate) ticks: bool,
    /// Keep the call stack of every HIP call.
    pub(crate) stack_frames: bool,
    /// What times kernels and copies; nothing for whatever can.
    pub(crate) timing: Option<Timing>,
    /// Functions of the HIP API whose calls are recorded.
    pub(crate) hip_apis: Filter,
    /// By which door calls of HIP are recorded; the recorder's choice if None.
    pub(crate) hip_door: Option<Way>,
    /// Where `rpd record` wants to hear from this process.
    pub(crate) report: Option<PathBuf>,
    /// Lines about values that were not understood.
    pub(crate) complaints: Vec<String>,
}

impl Config {
    /// Reads the process environment. Where the working directory was deleted, a relative name of the trace stays relative.
    pub(crate) fn from_env() -> Config {
        let mut config =
            Config::read(|name| std::env::var_os(name), &std::env::current_dir().unwrap_or_default());
        let names = std::env::vars_os().map(|(name, _)| name);
        config.complaints.extend(variable::unknown(names, "RPDT_", &variable::RECORDER));
        config
    }

    fn read(get: impl Fn(&str) -> Option<OsString>, cwd: &Path) -> Config {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let mut complaints = Vec::new();
        let mut number = |name: &str, default: u64, range: RangeInclusive<u64>| -> u64 {
            let Some(text) = get(name) else { return default };
            match text.to_str().and_then(|t| t.trim().parse().ok()) {
                Some(value) if range.contains(&value) => value,
                _ => {
                    complaints.push(format!(
                        "{name}={} is not a number from {} to {}; {default} is used",
                        text.to_string_lossy(),
                        range.start(),
                        range.end()
                    ));
                    default
                }
            }
        };
        let autostart = number("RPDT_AUTOSTART", 1, 0..=1) != 0;
        // 0 is what the original calls "only when the program ends"; a killed process would lose everything, so it
        // means the default here.
        let hertz = match number("RPDT_AUTOFLUSH", 2, 0..=100) {
            0 => 2,
            n => n,
        };
        let log = number("RPDT_LOG", 0, 0..=1) as u8;
        let ticks = number("RPDT_TICKS", 0, 0..=1) != 0;
        let stack_frames = number("RPDT_STACKFRAMES", 0, 0..=1) != 0;
        // A size, and what is used where there is none or a wrong one.
        let mut size = |name: &str, default: u64, range: RangeInclusive<u64>| -> u64 {
            let Some(text) = get(name) else { return default };
            let bytes = text.to_str().and_then(|text| quantity::size_bytes(text.trim(), MEBIBYTE));
            bytes.filter(|bytes| range.contains(bytes)).unwrap_or_else(|| {
                let (least, most) = (range.start() >> 20, range.end() >> 40);
                complaints.push(format!(
                    "{name}={} is not {}, from {least} MiB to {most} TiB, in MiB without a unit; {} is used",
                    text.to_string_lossy(),
                    quantity::SIZES,
                    default >> 20
                ));
                default
            })
        };
        let buffer_bytes = size("RPDT_BUFFER_MB", 256 << 20, BUFFERS);
        let max_bytes = size("RPDT_MAX_MB", 0, FILE);
        // A time of at most `most`, where the unit of a bare number is `bare` ns.
        let mut time =
            |name: &str, bare: i64, default: Option<Duration>, most: Duration| -> Option<Duration> {
                let Some(text) = get(name) else { return default };
                let ns = text.to_str().and_then(|text| quantity::time_ns(text.trim(), bare));
                let time = ns.map(|ns| Duration::from_nanos(ns.unsigned_abs())).filter(|time| *time <= most);
                if time.is_none() {
                    let unit = if bare == SECOND { "seconds" } else { "ms" };
                    let most = if most == Duration::MAX { String::new() } else { format!(" up to {most:?}") };
                    let instead =
                        default.map_or("it is ignored".to_string(), |time| format!("{time:?} is used"));
                    let wrong = text.to_string_lossy();
                    complaints.push(format!(
                        "{name}={wrong} is not {}{most}, in {unit} without a unit; {instead}",
                        quantity::TIMES
                    ));
                }
                time.or(default)
            };
        let delay = time("RPDT_DELAY", SECOND, None, Duration::MAX).unwrap_or_default();
        let duration = time("RPDT_DURATION", SECOND, None, Duration::MAX).filter(|time| !time.is_zero());
        let wait =
            time("RPDT_WAIT_MS", MILLISECOND, Some(Duration::from_secs(1)), LONGEST_WAIT).unwrap_or_default();
        let exit_wait = time("RPDT_EXIT_MS", MILLISECOND, Some(Duration::from_secs(10)), LONGEST_WAIT)
            .unwrap_or_default();
        // Which of two words; None for `auto`.
        let mut choice = |name: &str, words: [&str; 2]| -> Option<usize> {
            let text = get(name).filter(|text| text != "auto")?;
            let known = words.iter().position(|word| text == *word);
            if known.is_none() {
                complaints.push(format!(
                    "{name}={} is not auto, {} or {}; auto is used",
                    text.to_string_lossy(),
                    words[0],
                    words[1]
                ));
            }
            known
        };
        let timing = choice("RPDT_TIMING", TIMINGS.map(Timing::name)).map(|place| TIMINGS[place]);
        let hip_door = choice("RPDT_HIP_DOOR", WAYS.map(Way::name)).map(|place| WAYS[place]);
        let (hip_apis, unknown) = match get("RPDT_HIP_APIS") {
            Some(text) => Filter::read(&text.to_string_lossy()),
            None => (Filter::default(), Vec::new()),
        };
        if !unknown.is_empty() {
            complaints.push(format!(
                "RPDT_HIP_APIS: {} ignored; it is all, none, or a list of +hipFunction and -hipFunction, such as -hipMalloc,+hipEventQuery",
                unknown.join(" and ")
            ));
        }
        Config {
            filename: Template(cwd.join(get("RPDT_FILENAME").unwrap_or_else(|| "trace.rpd".into()))),
            autostart,
            delay,
            duration,
            max_bytes: (max_bytes > 0).then_some(max_bytes),
            flush_interval: Duration::from_secs_f64(1.0 / hertz as f64),
            buffer_bytes: buffer_bytes as usize,
            buffer_is_default: get("RPDT_BUFFER_MB").is_none(),
            wait,
            exit_wait,
            log,
            ticks,
            stack_frames,
            timing,
            hip_apis,
            hip_door,
            report: get("RPDT_REPORT").map(PathBuf::from),
            complaints,
        }
    }
}

/// The path of a trace with `%p`, `%h`, `%r` still in it; relative only where there was no working directory.
#[derive(Debug, Clone)]
pub(crate) struct Template(PathBuf);

impl Template {
    /// `path` from the working directory of now.
    pub(crate) fn new(path: &Path) -> Template {
        Template(std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()))
    }

    /// The file of the calling process: `%p` is its pid, `%h` the host name, `%r` its rank (0 when it has none),
    /// `%%` a percent sign.
    pub(crate) fn expanded(&self) -> PathBuf {
        file_name::expand(&self.0, |letter| match letter {
            b'p' => Some(std::process::id().to_string()),
            b'h' => Some(file_name::host()),
            b'r' => Some(file_name::rank().unwrap_or_else(|| "0".to_string())),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)]) -> Config {
        Config::read(|n| vars.iter().find(|(k, _)| *k == n).map(|(_, v)| v.into()), Path::new("/here"))
    }

    #[test]
    fn defaults() {
        let config = read(&[]);
        assert_eq!(config.filename.0, Path::new("/here/trace.rpd"));
        assert!(config.autostart && config.complaints.is_empty() && !config.ticks);
        assert_eq!(config.buffer_bytes, 256 << 20);
        assert!(
            config.flush_interval <= Duration::from_secs(1),
            "a killed process loses at most its last second"
        );
    }

    #[test]
    fn a_wrong_value_is_one_line_and_the_default() {
        let config = read(&[("RPDT_BUFFER_MB", "lots"), ("RPDT_AUTOSTART", "0"), ("RPDT_AUTOFLUSH", "1000")]);
        assert_eq!(config.buffer_bytes, 256 << 20);
        assert!(!config.autostart);
        assert_eq!(config.complaints.len(), 2);
        assert!(
            config.complaints.iter().any(|c| c.contains("RPDT_BUFFER_MB=lots")),
            "{:?}",
            config.complaints
        );
    }

    #[test]
    fn words() {
        let config = read(&[("RPDT_HIP_DOOR", "symbols"), ("RPDT_TIMING", "auto")]);
        assert_eq!((config.hip_door, config.timing), (Some(Way::Symbols), None));
        assert_eq!(config.complaints, Vec::<String>::new());
        let config = read(&[("RPDT_HIP_DOOR", "table"), ("RPDT_TIMING", "hip")]);
        assert_eq!((config.hip_door, config.timing), (None, Some(Timing::Hip)));
        assert_eq!(
            config.complaints,
            ["RPDT_HIP_DOOR=table is not auto, callbacks or symbols; auto is used"]
        );
    }

    #[test]
    fn limits_for_long_runs() {
        let config = read(&[("RPDT_DELAY", "1.5"), ("RPDT_DURATION", "-3"), ("RPDT_MAX_MB", "100")]);
        assert_eq!(config.delay, Duration::from_millis(1500));
        assert_eq!(config.duration, None);
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
            (config.delay, config.duration),
            (Duration::from_millis(250), Some(Duration::from_secs(120)))
        );
        assert_eq!((config.max_bytes, config.buffer_bytes), (Some(1_000_000_000), 3 << 29));
        assert_eq!((config.wait, config.exit_wait), (Duration::from_micros(20), Duration::from_micros(1500)));
        let wrong = read(&[("RPDT_BUFFER_MB", "1KiB"), ("RPDT_EXIT_MS", "1h"), ("RPDT_MAX_MB", "much")]);
        assert_eq!(
            (wrong.buffer_bytes, wrong.exit_wait, wrong.max_bytes),
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
    fn empty_is_unset() {
        assert_eq!(read(&[("RPDT_FILENAME", ""), ("RPDT_LOG", "")]).filename.0, Path::new("/here/trace.rpd"));
    }
}
