//! `RPDT_*` environment variables, read once when the library is loaded (docs/environment.md is their table).
//!
//! Helper processes inherit the environment and do nothing with a GPU, so complaints are kept here and printed only when
//! the recorder is first used.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::hip::Way;
use crate::hip::filter::Filter;
use crate::timing::Timing;

const TIMINGS: [Timing; 2] = [Timing::Hsa, Timing::Hip];
const WAYS: [Way; 2] = [Way::Callbacks, Way::Symbols];

/// Bytes of texts remembered at most, however large the buffers are.
const MOST_TEXT: usize = 32 << 20;

/// What the user asked for, checked.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// Absolute path of the trace when the library was loaded.
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
    /// Bytes of texts remembered at most: a part of [`Config::buffer_bytes`], of which records get the rest.
    pub(crate) fn text_bytes(&self) -> usize {
        (self.buffer_bytes / 8).min(MOST_TEXT)
    }

    /// Reads the process environment.
    pub(crate) fn from_env() -> Config {
        Config::read(
            |name| std::env::var_os(name),
            &std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        )
    }

    fn read(get: impl Fn(&str) -> Option<OsString>, cwd: &Path) -> Config {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let mut complaints = Vec::new();
        let mut number = |name: &str, default: u64, range: std::ops::RangeInclusive<u64>| -> u64 {
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
        let buffer_mb = number("RPDT_BUFFER_MB", 256, 1..=1 << 20);
        let wait_ms = number("RPDT_WAIT_MS", 1000, 0..=600_000);
        let exit_ms = number("RPDT_EXIT_MS", 10_000, 0..=600_000);
        let log = number("RPDT_LOG", 0, 0..=1) as u8;
        let ticks = number("RPDT_TICKS", 0, 0..=1) != 0;
        let stack_frames = number("RPDT_STACKFRAMES", 0, 0..=1) != 0;
        let max_mb = number("RPDT_MAX_MB", 0, 0..=1 << 30);
        let mut seconds = |name: &str| -> Option<Duration> {
            let text = get(name)?;
            let value = text
                .to_str()
                .and_then(|t| t.trim().parse().ok())
                .and_then(|s| Duration::try_from_secs_f64(s).ok());
            if value.is_none() {
                complaints.push(format!(
                    "{name}={} is not a number of seconds; it is ignored",
                    text.to_string_lossy()
                ));
            }
            value
        };
        let delay = seconds("RPDT_DELAY").unwrap_or_default();
        let duration = seconds("RPDT_DURATION").filter(|duration| !duration.is_zero());
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
            max_bytes: (max_mb > 0).then_some(max_mb << 20),
            flush_interval: Duration::from_secs_f64(1.0 / hertz as f64),
            buffer_bytes: (buffer_mb as usize) << 20,
            wait: Duration::from_millis(wait_ms),
            exit_wait: Duration::from_millis(exit_ms),
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

/// The absolute path of a trace with `%p`, `%h`, `%r` still in it.
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
        expand(&self.0, |letter| match letter {
            b'p' => Some(std::process::id().to_string()),
            b'h' => Some(crate::host::name()),
            b'r' => Some(crate::host::rank().unwrap_or_else(|| "0".to_string())),
            _ => None,
        })
    }
}

fn expand(template: &Path, value: impl Fn(u8) -> Option<String>) -> PathBuf {
    let mut out = Vec::new();
    let mut bytes = template.as_os_str().as_bytes().iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let next = bytes.peek().copied();
        match (byte, next) {
            (b'%', Some(b'%')) => {
                out.push(b'%');
                bytes.next();
            }
            (b'%', Some(letter)) if value(letter).is_some() => {
                out.extend(value(letter).unwrap_or_default().bytes());
                bytes.next();
            }
            _ => out.push(byte),
        }
    }
    PathBuf::from(OsString::from_vec(out))
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
        assert_eq!(config.complaints.len(), 1, "{:?}", config.complaints);
    }

    #[test]
    fn empty_is_unset() {
        assert_eq!(read(&[("RPDT_FILENAME", ""), ("RPDT_LOG", "")]).filename.0, Path::new("/here/trace.rpd"));
    }

    #[test]
    fn names_are_expanded_per_process() {
        let value = |letter| (letter == b'p').then(|| "17".to_string());
        assert_eq!(expand(Path::new("/t/%p/a%%b%x.rpd"), value), Path::new("/t/17/a%b%x.rpd"));
        assert_eq!(expand(Path::new("/t/50%"), value), Path::new("/t/50%"));
    }
}
