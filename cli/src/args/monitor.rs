//! The value of `--monitor`: refused before the command runs where the recorder would leave a part of it out.

use rpd_settings::quantity::{self, MILLISECOND};
use rpd_settings::sensor::{self, AVAILABLE};
use rpd_settings::tip;

/// Longest time from one sample to the next, and shortest, in ns.
const PERIODS: std::ops::RangeInclusive<i64> = MILLISECOND..=60_000 * MILLISECOND;

/// What is sampled, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Monitored {
    /// As RPDT_MONITOR has it.
    pub(crate) sensors: String,
    /// As RPDT_MONITOR_PERIOD has it.
    pub(crate) period: Option<String>,
}

/// Names with commas between them, `all` or `available`; `:PERIOD` behind them.
pub(crate) fn parse(text: &str) -> Result<Monitored, String> {
    let (names, period) = text.split_once(':').map_or((text, None), |(names, period)| (names, Some(period)));
    let names: Vec<&str> = names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return Err(format!("names no sensor; there are {}", sensor::NAMES.join(", ")));
    }
    let known = || sensor::NAMES.into_iter().chain(["all", AVAILABLE]);
    if let Some(wrong) = names.iter().find(|name| known().all(|known| known != **name)) {
        return Err(format!(
            "there is no sensor {wrong:?}{}; there are {}",
            tip(wrong, known()),
            sensor::NAMES.join(", ")
        ));
    }
    let period = period.map(|period| {
        let ns = quantity::time_ns(period.trim(), MILLISECOND).filter(|ns| PERIODS.contains(ns));
        ns.map(|ns| format!("{ns}ns")).ok_or_else(|| {
            format!("{period:?} is not {} from 1ms to 60s, in ms without a unit", quantity::TIMES)
        })
    });
    Ok(Monitored { sensors: names.join(","), period: period.transpose()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_a_period() {
        let parsed = |text| parse(text).map(|monitored| (monitored.sensors, monitored.period));
        assert_eq!(parsed("power, vram"), Ok(("power,vram".into(), None)));
        assert_eq!(parsed("all:5"), Ok(("all".into(), Some("5000000ns".into()))));
        assert_eq!(parsed("energy:1.5ms"), Ok(("energy".into(), Some("1500000ns".into()))));
        for (text, why) in [
            ("", "names no sensor"),
            (":5ms", "names no sensor"),
            ("powr", "there is no sensor \"powr\"; did you mean power?"),
            ("power,\u{1b}[1m", "there is no sensor \"\\u{1b}[1m\""),
            ("power:10us", "\"10us\" is not a time"),
            ("power:2m", "\"2m\" is not a time"),
            ("power:fast", "\"fast\" is not a time"),
            ("power:", "\"\" is not a time"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.starts_with(why), "{text}: {said}");
        }
    }
}
