//! `RPD_REMOTE*` environment variables, read once when the library is loaded (docs/environment.md is their table).

use std::ffi::OsString;
use std::sync::OnceLock;

/// What the user asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Starts and stops are taken from the block.
    pub(crate) flag: bool,
    /// Starts and stops are taken as signals.
    pub(crate) signals: bool,
    /// Be there from the start of the process, whether or not it uses a GPU.
    pub(crate) early: bool,
    /// One line about a value that was not understood.
    pub(crate) complaint: Option<String>,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Reads the process environment, the first time.
pub(crate) fn get() -> &'static Settings {
    SETTINGS.get_or_init(|| Settings::read(|name| std::env::var_os(name)))
}

impl Settings {
    fn read(get: impl Fn(&str) -> Option<OsString>) -> Settings {
        let mut complaint = None;
        let mut choice = |name: &str, values: &[&str]| {
            let Some(value) = get(name).filter(|value| !value.is_empty()) else { return 0 };
            values.iter().position(|known| value == *known).unwrap_or_else(|| {
                let value = value.to_string_lossy();
                complaint =
                    Some(format!("{name}={value} is none of {}; {} is used", values.join(", "), values[0]));
                0
            })
        };
        let channel = choice("RPD_REMOTE", &["flag", "signal", "both"]);
        let from = choice("RPD_REMOTE_FROM", &["gpu", "start"]);
        Settings { flag: channel != 1, signals: channel != 0, early: from == 1, complaint }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)]) -> Settings {
        Settings::read(|name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn channels() {
        let of = |value| {
            let settings = read(&[("RPD_REMOTE", value)]);
            (settings.flag, settings.signals)
        };
        assert_eq!(
            [of(""), of("flag"), of("signal"), of("both")],
            [(true, false), (true, false), (false, true), (true, true)]
        );
        assert!(read(&[("RPD_REMOTE_FROM", "start")]).early && !read(&[]).early);
    }

    #[test]
    fn a_wrong_value_is_one_line_and_the_default() {
        let settings = read(&[("RPD_REMOTE", "signals")]);
        assert!(settings.flag && !settings.signals);
        assert_eq!(
            settings.complaint.unwrap(),
            "RPD_REMOTE=signals is none of flag, signal, both; flag is used"
        );
    }
}
