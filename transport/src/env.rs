//! `RPDT_*` and `LOGDUR_*` environment variables, read once when the library is loaded (docs/environment.md is their table).
//!
//! Helper processes inherit the environment and do nothing with a GPU, so complaints are kept here and printed only when
//! the recorder is first used.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rpd_settings::quantity::{self, MEBIBYTE, SECOND};
use rpd_settings::{file_name, variable};

/// How long a wait may be set to last.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// The path of a file with `%p` and the like still in it; relative only where there was no working directory.
#[derive(Debug, Clone)]
pub struct Template(pub(crate) PathBuf);

impl Template {
    /// `path` from the working directory of now.
    pub fn new(path: &Path) -> Template {
        Template(std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()))
    }

    /// The file of the calling process, as [`file_name`] says.
    pub fn expanded(&self) -> PathBuf {
        file_name::of_process(&self.0)
    }
}

/// The environment, and what is wrong with it.
pub struct Env<'a> {
    get: &'a dyn Fn(&str) -> Option<OsString>,
    complaints: Vec<String>,
}

impl<'a> Env<'a> {
    /// Variables by what `get` has under their names. Empty is unset.
    pub fn new(get: &'a dyn Fn(&str) -> Option<OsString>) -> Env<'a> {
        Env { get, complaints: Vec::new() }
    }

    /// Something about a variable is wrong.
    pub fn complain(&mut self, line: String) {
        self.complaints.push(line);
    }

    /// All that is wrong, with the names among `names` that look like variables of the recorder and are none.
    pub fn into_complaints(mut self, names: impl Iterator<Item = OsString>) -> Vec<String> {
        let names: Vec<OsString> = names.collect();
        for (prefix, known) in [("RPDT_", &variable::RECORDER[..]), ("LOGDUR_", &variable::LOGDURATION)] {
            self.complaints.extend(variable::unknown(names.iter().cloned(), prefix, known));
        }
        self.complaints
    }

    /// The value of a variable.
    pub fn text(&self, name: &str) -> Option<OsString> {
        (self.get)(name).filter(|value| !value.is_empty())
    }

    /// The name of a file, with `%p` and the like still in it.
    pub fn file_name(&mut self, name: &str) -> Option<PathBuf> {
        let template = PathBuf::from(self.text(name)?);
        let wrong = [file_name::unknown_letters(&template), file_name::missing_values(&template)];
        self.complaints.extend(wrong.into_iter().flatten().map(|line| format!("{name}: {line}")));
        Some(template)
    }

    /// A number.
    pub fn number(&mut self, name: &str, default: u64, range: RangeInclusive<u64>) -> u64 {
        let Some(text) = self.text(name) else { return default };
        match text.to_str().and_then(|t| t.trim().parse().ok()) {
            Some(value) if range.contains(&value) => value,
            _ => {
                self.complain(format!(
                    "{name}={} is not a number from {} to {}; {default} is used",
                    text.to_string_lossy(),
                    range.start(),
                    range.end()
                ));
                default
            }
        }
    }

    /// A size in bytes, MiB without a unit, and what is used where there is none or a wrong one.
    pub fn size(&mut self, name: &str, default: u64, range: RangeInclusive<u64>) -> u64 {
        let Some(text) = self.text(name) else { return default };
        let bytes = text.to_str().and_then(|text| quantity::size_bytes(text.trim(), MEBIBYTE));
        bytes.filter(|bytes| range.contains(bytes)).unwrap_or_else(|| {
            let (least, most) = (range.start() >> 20, range.end() >> 40);
            self.complain(format!(
                "{name}={} is not {}, from {least} MiB to {most} TiB, in MiB without a unit; {} is used",
                text.to_string_lossy(),
                quantity::SIZES,
                default >> 20
            ));
            default
        })
    }

    /// A time of at most `most`, where the unit of a bare number is `bare` ns.
    pub fn time(
        &mut self,
        name: &str,
        bare: i64,
        default: Option<Duration>,
        most: Duration,
    ) -> Option<Duration> {
        let Some(text) = self.text(name) else { return default };
        let ns = text.to_str().and_then(|text| quantity::time_ns(text.trim(), bare));
        let time = ns.map(|ns| Duration::from_nanos(ns.unsigned_abs())).filter(|time| *time <= most);
        if time.is_none() {
            let unit = if bare == SECOND { "seconds" } else { "ms" };
            let most = if most == Duration::MAX { String::new() } else { format!(" up to {most:?}") };
            let instead = default.map_or("it is ignored".to_string(), |time| format!("{time:?} is used"));
            let wrong = text.to_string_lossy();
            self.complain(format!(
                "{name}={wrong} is not {}{most}, in {unit} without a unit; {instead}",
                quantity::TIMES
            ));
        }
        time.or(default)
    }

    /// Which of two words; nothing for `auto`.
    pub fn choice(&mut self, name: &str, words: [&str; 2]) -> Option<usize> {
        let text = self.text(name).filter(|text| text != "auto")?;
        let known = words.iter().position(|word| text == *word);
        if known.is_none() {
            self.complain(format!(
                "{name}={} is not auto, {} or {}; auto is used",
                text.to_string_lossy(),
                words[0],
                words[1]
            ));
        }
        known
    }

    /// What is wrong so far.
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_one_of_those_that_may_stand_there() {
        let get = |name: &str| (name == "RPDT_WORD").then(|| "one".into());
        let mut env = Env::new(&get);
        assert_eq!(env.choice("RPDT_WORD", ["zero", "one"]), Some(1));
        assert_eq!(env.choice("RPDT_OTHER", ["zero", "one"]), None);
        assert_eq!(env.complaints(), Vec::<String>::new());
        assert_eq!(env.choice("RPDT_WORD", ["two", "three"]), None);
        assert_eq!(env.complaints(), ["RPDT_WORD=one is not auto, two or three; auto is used"]);
    }
}
