//! A recording in parts: when it goes on in a next file, and how the files are called.
//!
//! The first part has the name that the trace was given, `trace.rpd`; those behind it have their numbers in front of the extension:
//! `trace-2.rpd`, `trace-3.rpd`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::quantity::{self, SECOND};

/// Parts below this size, bytes, would be more facts about the recording than recording.
const LEAST_SIZE: u64 = 1_000_000;
/// A file can be set to be that large at most, bytes.
const LARGEST_SIZE: u64 = 1 << 50;
/// Parts that are shorter would be commits.
const LEAST_TIME: Duration = Duration::from_secs(1);

/// When a part is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// Its file has so many bytes.
    Size(u64),
    /// It was begun so long ago.
    Time(Duration),
}

impl Rotation {
    /// From a size or a time, with its unit: `1GB`, `10min`.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence about it.
    pub fn parse(text: &str) -> Result<Rotation, String> {
        let text = text.trim();
        let has_unit = text.ends_with(|last: char| last.is_alphabetic());
        let size = quantity::size_bytes(text, 1).filter(|_| has_unit);
        let time = quantity::time_ns(text, SECOND).filter(|_| has_unit);
        match (size, time.map(|ns| Duration::from_nanos(ns.unsigned_abs()))) {
            (Some(_), Some(_)) => {
                let number = text.trim_end_matches('m');
                Err(format!("may be minutes or MiB: write {number}min or {number}MiB"))
            }
            (Some(bytes), None) if (LEAST_SIZE..=LARGEST_SIZE).contains(&bytes) => Ok(Rotation::Size(bytes)),
            (Some(_), None) => Err("must be from 1MB to 1024TiB, if it is a size".to_string()),
            (None, Some(time)) if time >= LEAST_TIME => Ok(Rotation::Time(time)),
            (None, Some(_)) => Err("must be 1s or more, if it is a time".to_string()),
            (None, None) => {
                Err("is neither a size such as 512MiB, 1GB or 2G, nor a time such as 10min or 1h".to_string())
            }
        }
    }
}

/// As [`Rotation::parse`] reads it.
impl fmt::Display for Rotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rotation::Size(bytes) => write!(f, "{bytes}B"),
            Rotation::Time(time) => write!(f, "{}ns", time.as_nanos()),
        }
    }
}

/// The file of part `number`, from 1, of the recording into `trace`.
#[must_use]
pub fn part(trace: &Path, number: u32) -> PathBuf {
    if number <= 1 {
        return trace.to_path_buf();
    }
    let mut name = trace.file_stem().unwrap_or_default().to_os_string();
    name.push(format!("-{number}"));
    if let Some(extension) = trace.extension() {
        name.push(".");
        name.push(extension);
    }
    trace.with_file_name(name)
}

/// The number of the last part of the recording into `trace` that is there, by its name: all from `first` to this are. `first` where
/// none behind it is.
#[must_use]
pub fn last_part(trace: &Path, first: u32) -> u32 {
    let is_there = |number: &u32| fs::symlink_metadata(part(trace, *number)).is_ok();
    (first + 1..).take_while(is_there).last().unwrap_or(first)
}

/// All files beside `trace` that are named as its parts behind the first, in the order of their numbers.
#[must_use]
pub fn later_parts(trace: &Path) -> Vec<PathBuf> {
    let directory = match trace.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let names = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut numbers: Vec<u32> = names.filter_map(|name: OsString| number_of(trace, &name)).collect();
    numbers.sort_unstable();
    numbers.into_iter().map(|number| part(trace, number)).collect()
}

/// Which part of `trace`, behind the first, a file of that name is.
fn number_of(trace: &Path, name: &OsStr) -> Option<u32> {
    let stem = trace.file_stem()?.as_bytes();
    let rest = name.as_bytes().strip_prefix(stem)?.strip_prefix(b"-")?;
    let digits = rest.split(|byte| !byte.is_ascii_digit()).next()?;
    let number: u32 = std::str::from_utf8(digits).ok()?.parse().ok().filter(|number| *number > 1)?;
    (part(trace, number).file_name() == Some(name)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_over_by_size_or_by_time() {
        for (text, rotation) in [
            ("1GB", Rotation::Size(1_000_000_000)),
            ("1MB", Rotation::Size(1_000_000)),
            ("2G", Rotation::Size(2 << 30)),
            ("10M", Rotation::Size(10 << 20)),
            ("10min", Rotation::Time(Duration::from_secs(600))),
            ("1h", Rotation::Time(Duration::from_secs(3600))),
            ("1.5s", Rotation::Time(Duration::from_millis(1500))),
            ("1000ms", Rotation::Time(Duration::from_secs(1))),
        ] {
            assert_eq!(Rotation::parse(text), Ok(rotation), "{text}");
            assert_eq!(Rotation::parse(&rotation.to_string()), Ok(rotation), "{text}");
        }
        for (text, why) in [
            ("10m", "write 10min or 10MiB"),
            ("10", "neither a size"),
            ("", "neither a size"),
            ("often", "neither a size"),
            ("-1GB", "neither a size"),
            ("999kB", "from 1MB"),
            ("0GB", "from 1MB"),
            ("2000TiB", "to 1024TiB"),
            ("999ms", "1s or more"),
            ("0s", "1s or more"),
        ] {
            let wrong = Rotation::parse(text).unwrap_err();
            assert!(wrong.contains(why), "{text}: {wrong}");
        }
    }

    #[test]
    fn the_number_is_in_front_of_the_extension() {
        let name = |trace: &str, number| part(Path::new(trace), number).display().to_string();
        assert_eq!(name("/t/trace.rpd", 1), "/t/trace.rpd");
        assert_eq!(name("/t/trace.rpd", 2), "/t/trace-2.rpd");
        assert_eq!(name("/t/a.b.rpd", 10), "/t/a.b-10.rpd");
        assert_eq!(name("/t.d/trace", 3), "/t.d/trace-3");
        assert_eq!(name("trace.rpd", 2), "trace-2.rpd");
    }

    #[test]
    fn parts_are_found_by_their_names() {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("t.rpd");
        assert_eq!((last_part(&trace, 1), later_parts(&trace).len()), (1, 0));
        let others = ["t-x.rpd", "t-2.rpd-journal", "t-02.rpd", "t-1.rpd", "t-2-3.rpd", "u-2.rpd", "t-.rpd"];
        for name in ["t.rpd", "t-2.rpd", "t-3.rpd", "t-11.rpd"].into_iter().chain(others) {
            fs::write(directory.path().join(name), "").unwrap();
        }
        assert_eq!([1, 2, 3, 4, 10].map(|first| last_part(&trace, first)), [3, 3, 3, 4, 11]);
        assert_eq!(later_parts(&trace), [2, 3, 11].map(|number| part(&trace, number)));
    }
}
