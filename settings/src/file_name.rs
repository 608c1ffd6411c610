//! The name of a trace as people write it: `/tmp/%h-%p.rpd`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

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
/// When it is `-`, which elsewhere is the standard output.
pub fn of_output(text: &OsStr) -> Result<PathBuf, String> {
    match text.as_bytes() {
        b"-" => {
            Err("a trace is a database and cannot be written to a pipe; name a file (./- is one named -)"
                .into())
        }
        b"" => Err("the name of a file is missing".into()),
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
    fn the_standard_output_is_no_trace() {
        assert!(of_output(OsStr::new("-")).unwrap_err().contains("pipe"));
        assert!(of_output(OsStr::new("")).is_err());
        assert_eq!(of_output(OsStr::new("./-")), Ok(PathBuf::from("./-")));
    }
}
