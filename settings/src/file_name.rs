//! The name of a trace as people write it: `/tmp/%h-%p.rpd`.
//!
//! Letters behind a percent sign: `%p` is the process, `%h` the host, `%r` the rank, `%j` the job.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::{job, rank};

/// What may be behind a percent sign, but another one.
pub const LETTERS: [u8; 4] = *b"phrj";
/// What stands for a rank and a job where there is none.
const NONE: &str = "0";

/// What a letter stands for in this process. Nothing where no launcher says it.
#[must_use]
pub fn value(letter: u8) -> Option<String> {
    match letter {
        b'p' => Some(std::process::id().to_string()),
        b'h' => Some(host()),
        b'r' => rank::rank(),
        b'j' => job::id(),
        _ => None,
    }
}

/// The name that `template` is in this process. A rank and a job that there is not is 0.
#[must_use]
pub fn of_process(template: &Path) -> PathBuf {
    expand(template, |letter| {
        let known = LETTERS.contains(&letter);
        value(letter).or_else(|| known.then(|| NONE.to_string()))
    })
}

/// One line where letters stay as they are because they stand for nothing. `50%.rpd` has none.
#[must_use]
pub fn unknown_letters(template: &Path) -> Option<String> {
    let unknown = (b'a'..=b'z').chain(b'A'..=b'Z').filter(|letter| !LETTERS.contains(letter));
    let unknown = unknown.filter(|letter| has(template, *letter));
    let unknown: Vec<String> = unknown.map(|letter| format!("%{}", char::from(letter))).collect();
    let (what, stay) = if unknown.len() == 1 { ("it stands", "stays") } else { ("they stand", "stay") };
    (!unknown.is_empty()).then(|| {
        format!(
            "{} in {} {stay}: {what} for nothing. %p is the process, %h the host, %r the rank, %j the job, %% a percent sign",
            unknown.join(" and "),
            template.display()
        )
    })
}

/// One line where this process has no rank or no job, which the name is to have.
#[must_use]
pub fn missing_values(template: &Path) -> Option<String> {
    let missing = [(b'r', "rank"), (b'j', "job")];
    let missing =
        missing.into_iter().filter(|(letter, _)| has(template, *letter) && value(*letter).is_none());
    let (letters, what): (Vec<_>, Vec<_>) =
        missing.map(|(letter, what)| (format!("%{}", char::from(letter)), what)).unzip();
    let is = if what.len() == 1 { "is" } else { "are" };
    (!what.is_empty()).then(|| {
        format!(
            "no launcher says a {} for this process: {} in {} {is} {NONE}",
            what.join(" and a "),
            letters.join(" and "),
            template.display()
        )
    })
}

/// `template` with `value` of each letter behind a percent sign; `%%` is a percent sign, and a letter without a value stays as it is.
/// No value leads to another directory or hides the file.
pub fn expand(template: &Path, value: impl Fn(u8) -> Option<String>) -> PathBuf {
    let mut out = Vec::new();
    let mut bytes = template.as_os_str().as_bytes().iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let next = bytes.peek().copied();
        match (byte, next) {
            (b'%', Some(b'%')) => {
                out.push(b'%');
                bytes.next();
            }
            (b'%', Some(letter)) => match value(letter) {
                Some(value) => {
                    out.extend(part_of_name(&value).bytes());
                    bytes.next();
                }
                None => out.push(byte),
            },
            _ => out.push(byte),
        }
    }
    PathBuf::from(OsString::from_vec(out))
}

fn part_of_name(value: &str) -> String {
    let value = value.replace('/', "_");
    value.strip_prefix('.').map(|rest| format!("_{rest}")).unwrap_or(value)
}

/// Whether `letter` is behind a percent sign that is not itself behind one.
#[must_use]
pub fn has(template: &Path, letter: u8) -> bool {
    let mut bytes = template.as_os_str().as_bytes();
    while let Some(at) = bytes.iter().position(|byte| *byte == b'%') {
        match bytes.get(at + 1) {
            Some(found) if *found == letter => return true,
            Some(_) => bytes = &bytes[at + 2..],
            None => return false,
        }
    }
    false
}

/// Host name as `uname -n` prints it: `%h`.
#[must_use]
pub fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map(|name| name.trim().to_string()).unwrap_or_else(|_| "unknown".into())
}

/// `text` as the name of a trace to be written.
///
/// # Errors
/// When it is `-`, which elsewhere is the standard output, or can only be a directory's name.
pub fn of_output(text: &OsStr) -> Result<PathBuf, String> {
    match text.as_bytes() {
        b"-" => {
            Err("a trace is a database and cannot be written to a pipe; name a file (./- is one named -)"
                .into())
        }
        b"" => Err("the name of a file is missing".into()),
        [.., b'/'] => Err("that is the name of a directory; name a file in it".into()),
        _ => Ok(PathBuf::from(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_replaced() {
        let value = |letter| (letter == b'p').then(|| "17".to_string());
        assert_eq!(expand(Path::new("/t/%p/a%%b%x.rpd"), value), Path::new("/t/17/a%b%x.rpd"));
        assert_eq!(expand(Path::new("/t/50%"), value), Path::new("/t/50%"));
    }

    #[test]
    fn values_stay_in_the_directory_that_the_name_says() {
        for (value, expected) in [
            ("3", "3"),
            ("node-1.example.org", "node-1.example.org"),
            ("../../../evil", "_._.._.._evil"),
            ("..", "_."),
            (".", "_"),
            ("/etc/passwd", "_etc_passwd"),
            (".hidden", "_hidden"),
            ("a/./b", "a_._b"),
        ] {
            let expanded = expand(Path::new("/t/%r"), |_| Some(value.to_string()));
            assert_eq!(expanded, Path::new("/t").join(expected));
        }
    }

    #[test]
    fn letters_are_found() {
        for (name, expected) in
            [("%p", true), ("a-%p.rpd", true), ("%%p", false), ("%%%p", true), ("%h%r", false), ("p%", false)]
        {
            assert_eq!(has(Path::new(name), b'p'), expected, "{name}");
        }
    }

    #[test]
    fn letters_that_stand_for_nothing_are_said() {
        for name in ["a.rpd", "%p%h%r%j.rpd", "50%.rpd", "%%q.rpd", "50%"] {
            assert_eq!(unknown_letters(Path::new(name)), None, "{name}");
        }
        let line = unknown_letters(Path::new("%q-%n.rpd")).unwrap();
        assert!(line.starts_with("%n and %q in %q-%n.rpd stay: they stand for nothing. %p is "), "{line}");
        let line = unknown_letters(Path::new("/t/%P.rpd")).unwrap();
        assert!(line.starts_with("%P in /t/%P.rpd stays: it stands for nothing."), "{line}");
    }

    #[test]
    fn the_standard_output_is_no_trace() {
        assert!(of_output(OsStr::new("-")).unwrap_err().contains("pipe"));
        assert!(of_output(OsStr::new("")).is_err());
        assert!(of_output(OsStr::new("traces/")).unwrap_err().contains("directory"));
        assert_eq!(of_output(OsStr::new("./-")), Ok(PathBuf::from("./-")));
    }
}
