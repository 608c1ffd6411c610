//! RPDT_MONITOR and the variables that begin so, RPDT_SYSFS and RPDT_PROCFS: which sensors of which GPUs are sampled, how often, and where
//! their files are. The variables that rocmProfileData has for it are understood where the first is not set.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;
use std::{fs, process};

use rpd_settings::quantity::MILLISECOND;
use rpd_settings::sensor::AVAILABLE;
use rpd_transport::env::Env;

use super::metric::Metric;

#[derive(Clone, Debug)]
pub(super) struct MonitorConfig {
    /// What is sampled; nothing: the source is off.
    pub(super) metrics: Vec<Metric>,
    /// A sensor that is not there is no fault.
    pub(super) is_lenient: bool,
    /// The numbers of the GPUs; nothing: all of them.
    pub(super) gpus: Option<Vec<u32>>,
    /// The process whose memory is meant, with that of its descendants.
    pub(super) process: u32,
    /// Time from one sample to the next.
    pub(super) period: Duration,
    /// What stands for /sys.
    pub(super) root: PathBuf,
    /// What stands for /proc.
    pub(super) procfs: PathBuf,
}

/// The driver gives the same values again to who asks twice within it.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(60);
const DEFAULT: Duration = Duration::from_millis(10);
/// A circle of processes, which there is none, would end here.
const MOST_PARENTS: usize = 1000;
const GPUS: &str = "RPDT_MONITOR_GPUS";
const PROCESS: &str = "RPDT_MONITOR_PROCESS";
/// rocmProfileData's.
const THEIR_LIST: &str = "RPDT_SMI_METRICS";
const THEIR_PERIOD: &str = "RPDT_SMI_PERIOD";

static CONFIG: OnceLock<MonitorConfig> = OnceLock::new();

/// What the user asked for.
pub(super) fn get() -> &'static MonitorConfig {
    CONFIG.get_or_init(|| MonitorConfig::read(&mut Env::new(&|_| None)))
}

pub(super) fn configure(env: &mut Env<'_>) {
    let config = MonitorConfig::read(env);
    CONFIG.get_or_init(|| config);
}

impl MonitorConfig {
    fn read(env: &mut Env<'_>) -> MonitorConfig {
        let own = env.text("RPDT_MONITOR").map(|list| ("RPDT_MONITOR", list));
        let list = own.or_else(|| env.text(THEIR_LIST).map(|list| (THEIR_LIST, list)));
        let (mut metrics, mut is_lenient) = (Vec::new(), false);
        if let Some((name, list)) = list {
            let list = list.to_string_lossy();
            let (known, wrong) = Metric::list(&list);
            metrics = known;
            is_lenient = list.split(',').any(|word| word.trim() == AVAILABLE);
            if !wrong.is_empty() {
                env.complain(format!(
                    "{name}: {} ignored; it is all, available, none, or names with commas between them: {}",
                    wrong.join(" and "),
                    Metric::names().join(", ")
                ));
            }
        }
        let period = match env.text("RPDT_MONITOR_PERIOD") {
            Some(_) => env.time("RPDT_MONITOR_PERIOD", MILLISECOND, Some(DEFAULT), LONGEST),
            None => their_period(env),
        };
        let period = period.unwrap_or(DEFAULT);
        if period < SHORTEST && !metrics.is_empty() {
            env.complain(format!("a sample each {period:?} is more than drivers have; 1ms is used"));
        }
        let root = env.text("RPDT_SYSFS").map_or_else(|| PathBuf::from("/sys"), PathBuf::from);
        let procfs = env.text("RPDT_PROCFS").map_or_else(|| PathBuf::from("/proc"), PathBuf::from);
        let process = env.text(PROCESS).and_then(|text| number(env, PROCESS, &text));
        MonitorConfig {
            metrics,
            is_lenient,
            gpus: gpus(env),
            process: process.filter(|process| is_ancestor(*process)).unwrap_or_else(process::id),
            period: period.max(SHORTEST),
            root,
            procfs,
        }
    }
}

/// Whether this process descends from that one. Launchers hand variables on to other hosts and other PID namespaces.
fn is_ancestor(wanted: u32) -> bool {
    let parent = |process: &u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name, in parentheses, may have anything in it.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    std::iter::successors(Some(process::id()), parent).take(MOST_PARENTS).any(|process| process == wanted)
}

/// RPDT_MONITOR_GPUS. Where a part of it is wrong, the rest counts.
fn gpus(env: &mut Env<'_>) -> Option<Vec<u32>> {
    let text = env.text(GPUS)?;
    let text = text.to_string_lossy();
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty() && *word != "all");
    let words: Vec<&str> = words.collect();
    let is_all = words.is_empty();
    let gpus = words.into_iter().filter_map(|word| number(env, GPUS, OsStr::new(word))).collect();
    (!is_all).then_some(gpus)
}

fn number(env: &mut Env<'_>, name: &str, text: &OsStr) -> Option<u32> {
    let text = text.to_string_lossy();
    let number = text.trim().parse().ok();
    if number.is_none() {
        env.complain(format!("{name}: {text:?} ignored; it is no number"));
    }
    number
}

/// Microseconds.
fn their_period(env: &mut Env<'_>) -> Option<Duration> {
    let text = env.text(THEIR_PERIOD)?;
    let period = text.to_str().and_then(|text| text.trim().parse().ok()).map(Duration::from_micros);
    let period = period.filter(|period| *period <= LONGEST);
    if period.is_none() {
        let text = text.to_string_lossy();
        env.complain(format!(
            "{THEIR_PERIOD}={text} is not a number of microseconds up to 60000000; 10000 is used"
        ));
    }
    period
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> (MonitorConfig, Vec<String>) {
        let get = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        let mut env = Env::new(&get);
        let config = MonitorConfig::read(&mut env);
        (config, env.complaints().to_vec())
    }

    #[test]
    fn off_unless_sensors_are_named() {
        let (config, complaints) = read(&[("RPDT_MONITOR_PERIOD", "1ms")]);
        assert!(config.metrics.is_empty() && complaints.is_empty());
        let (config, complaints) = read(&[("RPDT_MONITOR", "none")]);
        assert!(config.metrics.is_empty() && complaints.is_empty());
    }

    #[test]
    fn what_is_named_and_how_often() {
        let (config, complaints) = read(&[
            ("RPDT_MONITOR", "power, sclk"),
            ("RPDT_SMI_METRICS", "all"),
            ("RPDT_MONITOR_PERIOD", "20"),
            ("RPDT_SMI_PERIOD", "1000"),
            ("RPDT_SYSFS", "/other"),
        ]);
        assert_eq!(config.metrics, [Metric::Power, Metric::Sclk]);
        assert_eq!((config.period, config.root), (Duration::from_millis(20), "/other".into()));
        assert_eq!(complaints, Vec::<String>::new());
    }

    #[test]
    fn which_gpus_and_whose_memory() {
        let (config, complaints) = read(&[("RPDT_MONITOR", "available")]);
        assert!(config.is_lenient && config.metrics.len() == Metric::names().len() && complaints.is_empty());
        assert_eq!((config.gpus, config.process), (None, process::id()));
        let (config, complaints) = read(&[("RPDT_MONITOR_GPUS", "2, 0"), ("RPDT_MONITOR_PROCESS", "1")]);
        assert_eq!((config.gpus, config.process, complaints), (Some(vec![2, 0]), 1, vec![]));
        let (config, complaints) = read(&[("RPDT_MONITOR_PROCESS", "4000000000")]);
        assert_eq!((config.process, complaints), (process::id(), vec![]), "no ancestor");
        assert_eq!(read(&[("RPDT_MONITOR_GPUS", "all")]).0.gpus, None);
        let (config, complaints) = read(&[("RPDT_MONITOR_GPUS", "1,x"), ("RPDT_MONITOR_PROCESS", "-1")]);
        assert_eq!((config.gpus, config.process), (Some(vec![1]), process::id()));
        assert_eq!(complaints.len(), 2, "{complaints:?}");
    }

    #[test]
    fn their_variables_are_understood() {
        let (config, complaints) =
            read(&[("RPDT_SMI_METRICS", "vram_used,temp_edge"), ("RPDT_SMI_PERIOD", "2500")]);
        assert_eq!(config.metrics, [Metric::Vram, Metric::TempEdge]);
        assert_eq!(config.period, Duration::from_micros(2500));
        assert_eq!(complaints, Vec::<String>::new());
    }

    #[test]
    fn wrong_values_are_a_line_each() {
        let (config, complaints) =
            read(&[("RPDT_MONITOR", "power,powr,\u{1b}x"), ("RPDT_SMI_PERIOD", "fast")]);
        assert_eq!((config.metrics, config.period), (vec![Metric::Power], DEFAULT));
        assert!(
            complaints[0].starts_with("RPDT_MONITOR: \"powr\" and \"\\u{1b}x\" ignored; "),
            "{complaints:?}"
        );
        assert!(complaints[1].starts_with("RPDT_SMI_PERIOD=fast is not"), "{complaints:?}");
        let (config, complaints) = read(&[("RPDT_MONITOR", "power"), ("RPDT_MONITOR_PERIOD", "10us")]);
        assert_eq!(config.period, SHORTEST);
        assert_eq!(complaints, ["a sample each 10µs is more than drivers have; 1ms is used"]);
    }
}
