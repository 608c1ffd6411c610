//! `RPD_REMOTE*` environment variables, read once when the library is loaded (docs/environment.md is their table).

use std::ffi::OsString;
use std::sync::OnceLock;

use rpd_settings::variable;

/// What the user asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Starts and stops are taken from the block.
    pub(crate) flag: bool,
    /// Starts and stops are taken as signals.
    pub(crate) signals: bool,
    /// Be there from the start of the process, whether or not it uses a GPU.
    pub(crate) early: bool,
    /// Lines about values that were not understood, and about unknown names.
    pub(crate) complaints: Vec<String>,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Reads the process environment, the first time.
pub(crate) fn get() -> &'static Settings {
    SETTINGS.get_or_init(|| {
        let mut settings = Settings::read(|name| std::env::var_os(name));
        let names = std::env::vars_os().map(|(name, _)| name);
        settings.complaints.extend(variable::unknown(names, "RPD_REMOTE", &variable::LOADER));
        settings
    })
}

impl Settings {
    fn read(get: impl Fn(&str) -> Option<OsString>) -> Settings {
        let mut complaints = Vec::new();
        let mut choice = |name: &str, values: &[&str]| {
            let Some(value) = get(name).filter(|value| !value.is_empty()) else { return 0 };
            values.iter().position(|known| value == *known).unwrap_or_else(|| {
                let value = value.to_string_lossy();
                let words = values.join(", ");
                complaints.push(format!("{name}={value} is none of {words}; {} is used", values[0]));
                0
            })
        };
        let channel = choice("RPD_REMOTE", &["flag", "signal", "both"]);
        let from = choice("RPD_REMOTE_FROM", &["gpu", "start"]);
        Settings { flag: channel != 1, signals: channel != 0, early: from == 1, complaints }
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
        let settings = read(&[("RPD_REMOTE", "signals"), ("RPD_REMOTE_FROM", "now")]);
        assert!(settings.flag && !settings.signals);
        assert_eq!(
            settings.complaints,
            [
                "RPD_REMOTE=signals is none of flag, signal, both; flag is used",
                "RPD_REMOTE_FROM=now is none of gpu, start; gpu is used"
            ]
        );
    }
}
