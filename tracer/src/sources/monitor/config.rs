//! RPDT_MONITOR, RPDT_MONITOR_PERIOD and RPDT_SYSFS: which sensors are sampled, how often, and where their files are. The variables that
//! rocmProfileData has for it are understood where the first is not set.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use rpd_settings::quantity::MILLISECOND;
use rpd_transport::env::Env;

use super::metric::Metric;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct MonitorConfig {
    /// What is sampled; nothing: the source is off.
    pub(super) metrics: Vec<Metric>,
    /// Time from one sample to the next.
    pub(super) period: Duration,
    /// What stands for /sys.
    pub(super) root: PathBuf,
}

/// The driver gives the same values again to who asks twice within it.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(60);
const DEFAULT: Duration = Duration::from_millis(10);
/// rocmProfileData's.
const THEIR_LIST: &str = "RPDT_SMI_METRICS";
const THEIR_PERIOD: &str = "RPDT_SMI_PERIOD";

static CONFIG: OnceLock<MonitorConfig> = OnceLock::new();

/// What the user asked for.
pub(super) fn get() -> &'static MonitorConfig {
    CONFIG.get_or_init(|| MonitorConfig::read(&mut Env::new(&|_| None)))
}

/// Reads the variables.
pub(super) fn configure(env: &mut Env<'_>) {
    let config = MonitorConfig::read(env);
    CONFIG.get_or_init(|| config);
}

impl MonitorConfig {
    fn read(env: &mut Env<'_>) -> MonitorConfig {
        let own = env.text("RPDT_MONITOR").map(|list| ("RPDT_MONITOR", list));
        let list = own.or_else(|| env.text(THEIR_LIST).map(|list| (THEIR_LIST, list)));
        let mut metrics = Vec::new();
        if let Some((name, list)) = list {
            let (known, wrong) = Metric::list(&list.to_string_lossy());
            metrics = known;
            if !wrong.is_empty() {
                env.complain(format!(
                    "{name}: {} ignored; it is all, none, or names with commas between them: {}",
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
        MonitorConfig { metrics, period: period.max(SHORTEST), root }
    }
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
