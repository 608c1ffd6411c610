//! Which libraries' kernels may be replaced: a JSON file with the arrays `include`, `include_with_deps` and `exclude` of patterns for
//! paths, as omniprobe has it.
//!
//! In a pattern `*` matches any characters but `/`, `**` any, `?` one but `/`; all others match themselves. These are not the
//! rules of a shell or of `.gitignore`, so patterns are made into regular expressions here: a crate for globs has `**` between slashes
//! alone, and braces and brackets that omniprobe takes for themselves.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use regex::bytes::RegexSet;
use serde_json::{Map, Value};

use crate::nearest::tip;

/// Bytes that the file may have.
const MOST: u64 = 1 << 20;
/// Its keys, in the order of the fields below.
const KEYS: [&str; 3] = ["include", "include_with_deps", "exclude"];

/// See the module.
#[derive(Debug)]
pub struct LibraryFilter {
    include: RegexSet,
    include_with_deps: RegexSet,
    exclude: RegexSet,
}

/// What a filter says of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryVerdict {
    /// It is selected.
    Passes,
    /// It is not.
    Fails,
    /// It is, if a library needs it for which [`LibraryFilter::brings_what_it_needs`].
    IfNeeded,
}

impl LibraryFilter {
    /// Reads the file; with it, a line about each thing in it that has no effect.
    ///
    /// # Errors
    /// Why it is no such file.
    pub fn read(path: &Path) -> Result<(LibraryFilter, Vec<String>), String> {
        let error = |error: std::io::Error| error.to_string();
        // Opening a pipe would wait for who writes it.
        if !path.metadata().map_err(error)?.is_file() {
            return Err("it is not a regular file".into());
        }
        let mut text = Vec::new();
        File::open(path).map_err(error)?.take(MOST + 1).read_to_end(&mut text).map_err(error)?;
        if text.len() as u64 > MOST {
            return Err(format!("it has more than {MOST} bytes"));
        }
        LibraryFilter::parse(&text)
    }

    /// The same from its text.
    ///
    /// # Errors
    /// As [`LibraryFilter::read`].
    pub fn parse(text: &[u8]) -> Result<(LibraryFilter, Vec<String>), String> {
        let value: Value =
            serde_json::from_slice(text).map_err(|error| format!("it is not JSON: {error}"))?;
        let Value::Object(mut object) = value else {
            return Err(format!("it is not an object with the arrays {}", KEYS.join(", ")));
        };
        let mut complaints = Vec::new();
        let [include, include_with_deps, exclude] =
            KEYS.map(|key| set(key, patterns(key, &mut object)?, &mut complaints));
        let filter =
            LibraryFilter { include: include?, include_with_deps: include_with_deps?, exclude: exclude? };
        for key in object.keys() {
            complaints.push(format!(
                "{key:?} is none of {}, and is ignored{}",
                KEYS.join(", "),
                tip(key, KEYS)
            ));
        }
        Ok((filter, complaints))
    }

    /// Of code from a file that goes by these names, none where it is from no file: what is not in a file cannot be included or excluded.
    pub fn verdict(&self, names: &[PathBuf]) -> LibraryVerdict {
        let any = |set: &RegexSet| names.iter().any(|name| set.is_match(name.as_os_str().as_bytes()));
        let includes_all = self.include.is_empty() && self.include_with_deps.is_empty();
        if any(&self.exclude) {
            LibraryVerdict::Fails
        } else if includes_all || any(&self.include) || any(&self.include_with_deps) {
            LibraryVerdict::Passes
        } else if self.include_with_deps.is_empty() || names.is_empty() {
            LibraryVerdict::Fails
        } else {
            LibraryVerdict::IfNeeded
        }
    }

    /// Whether a library of one of these names brings what it needs into the selection.
    pub fn brings_what_it_needs(&self, names: &[PathBuf]) -> bool {
        names.iter().any(|name| self.include_with_deps.is_match(name.as_os_str().as_bytes()))
    }
}

/// The patterns behind `key`, which is taken out.
fn patterns(key: &str, object: &mut Map<String, Value>) -> Result<Vec<String>, String> {
    let wrong = || format!("{key:?} is not an array of texts");
    match object.remove(key) {
        None => Ok(Vec::new()),
        Some(Value::Array(values)) => values
            .into_iter()
            .map(|value| match value {
                Value::String(pattern) => Ok(pattern),
                _ => Err(wrong()),
            })
            .collect(),
        Some(_) => Err(wrong()),
    }
}

fn set(key: &str, patterns: Vec<String>, complaints: &mut Vec<String>) -> Result<RegexSet, String> {
    let mut all = Vec::new();
    for pattern in patterns {
        if !pattern.starts_with('/') && !pattern.starts_with("**") {
            complaints.push(format!("{pattern:?} in {key:?} selects nothing: paths begin with /"));
        }
        all.push(expression(&pattern));
        all.extend(resolved(&pattern).map(|pattern| expression(&pattern)));
    }
    RegexSet::new(all).map_err(|error| format!("the patterns in {key:?} cannot be used ({error})"))
}

/// A regular expression for whole paths.
fn expression(pattern: &str) -> String {
    let mut out = String::from("^(?s-u:");
    let mut rest = pattern;
    while let Some(next) = rest.chars().next() {
        let (matched, expression) = match next {
            '*' if rest.starts_with("**") => (2, ".*"),
            '*' => (1, "[^/]*"),
            '?' => (1, "[^/]"),
            _ => (next.len_utf8(), ""),
        };
        match expression {
            "" => out.push_str(&regex::escape(&rest[..matched])),
            _ => out.push_str(expression),
        }
        rest = &rest[matched..];
    }
    out.push_str(")$");
    out
}

/// The pattern with the directories in front of its first wildcard as they are without symbolic links, if that is another one: the system
/// says where code was mapped from without them (`/opt/rocm/lib/**` is `/opt/rocm-6.4.3/lib/**`).
fn resolved(pattern: &str) -> Option<String> {
    let wild = pattern.find(['*', '?']).unwrap_or(pattern.len());
    let fixed = if wild == pattern.len() { wild } else { pattern[..wild].rfind('/')? };
    let real = std::fs::canonicalize(&pattern[..fixed]).ok()?;
    let resolved = format!("{}{}", real.to_str()?.trim_end_matches('/'), &pattern[fixed..]);
    (resolved != pattern).then_some(resolved)
}

#[cfg(test)]
mod tests {
    use regex::bytes::Regex;

    use super::*;

    fn parse(text: &str) -> LibraryFilter {
        let (filter, complaints) = LibraryFilter::parse(text.as_bytes()).unwrap();
        assert_eq!(complaints, Vec::<String>::new());
        filter
    }

    fn verdict(filter: &LibraryFilter, name: &str) -> LibraryVerdict {
        filter.verdict(&[PathBuf::from(name)])
    }

    #[test]
    fn stars_and_slashes() {
        for (pattern, path, matches) in [
            ("/a/*.so", "/a/b.so", true),
            ("/a/*.so", "/a/b/c.so", false),
            ("/a/*.so", "/a/.so", true),
            ("/a/*.so", "/a/b.so.1", false),
            ("/a/*.so", "/x/a/b.so", false),
            ("/a/**.so", "/a/b/c.so", true),
            ("/a/**/c.so", "/a/b/c.so", true),
            ("/a/**", "/a/b/c.so", true),
            ("/a/**", "/a", false),
            ("**/rocblas/**", "/opt/x/rocblas/lib/y.so", true),
            ("**/rocblas/**", "/opt/x/rocblas2/lib/y.so", false),
            ("**", "/anything", true),
            ("/lib?.so", "/lib1.so", true),
            ("/lib?.so", "/lib/.so", false),
            ("/lib?x.so", "/lib/x.so", false),
            ("/a.b+(c)[d]{e,f}^$|\\", "/a.b+(c)[d]{e,f}^$|\\", true),
            ("/a.b", "/axb", false),
            ("/é*", "/é\u{301}", true),
            ("/***/x", "/a/b/x", true),
            ("", "", true),
            ("/a", "/a\n", false),
            ("/**b", "/a\nb", true),
        ] {
            let found = Regex::new(&expression(pattern)).unwrap().is_match(path.as_bytes());
            assert_eq!(found, matches, "{pattern} {path}");
        }
        let bytes = std::ffi::OsStr::from_bytes(b"/a/\xff.so");
        let filter = parse(r#"{"include": ["/a/*.so"]}"#);
        assert_eq!(filter.verdict(&[bytes.into()]), LibraryVerdict::Passes, "names need not be text");
    }

    #[test]
    fn who_passes() {
        let filter = parse("{}");
        assert_eq!(
            (verdict(&filter, "/x"), filter.verdict(&[])),
            (LibraryVerdict::Passes, LibraryVerdict::Passes)
        );
        let filter = parse(r#"{"exclude": ["/x/**"]}"#);
        assert_eq!(
            (verdict(&filter, "/x/y"), verdict(&filter, "/y")),
            (LibraryVerdict::Fails, LibraryVerdict::Passes)
        );
        assert_eq!(filter.verdict(&[]), LibraryVerdict::Passes, "it is not excluded");
        let filter = parse(r#"{"include": ["/x/**"], "exclude": ["**/y"]}"#);
        assert_eq!(
            (verdict(&filter, "/x/y"), verdict(&filter, "/x/z")),
            (LibraryVerdict::Fails, LibraryVerdict::Passes)
        );
        assert_eq!(
            (verdict(&filter, "/z"), filter.verdict(&[])),
            (LibraryVerdict::Fails, LibraryVerdict::Fails)
        );
        let filter = parse(r#"{"include_with_deps": ["/x"], "exclude": ["/y"]}"#);
        let of = |name| verdict(&filter, name);
        assert_eq!(
            [of("/x"), of("/y"), of("/z")],
            [LibraryVerdict::Passes, LibraryVerdict::Fails, LibraryVerdict::IfNeeded]
        );
        assert_eq!(filter.verdict(&[]), LibraryVerdict::Fails);
        assert!(filter.brings_what_it_needs(&["/x".into()]) && !filter.brings_what_it_needs(&["/z".into()]));
        let two = ["/real/name".into(), "/x".into()];
        assert_eq!(filter.verdict(&two), LibraryVerdict::Passes, "one of its names is enough");
    }

    #[test]
    fn links_in_front_of_the_wildcard_are_followed() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap().join("real-1.0");
        std::fs::create_dir_all(real.join("lib")).unwrap();
        std::fs::write(real.join("lib/a.so.1"), "").unwrap();
        std::os::unix::fs::symlink("real-1.0", real.with_file_name("link")).unwrap();
        std::os::unix::fs::symlink("a.so.1", real.join("lib/a.so")).unwrap();
        let file = real.join("lib/a.so.1");
        for pattern in ["link/**", "link/lib/a.s*", "link/lib/a.so", "lin*/lib/a.so.1", "link/lib/a.so.1"] {
            let pattern = real.with_file_name(pattern);
            let (filter, _) =
                LibraryFilter::parse(format!("{{\"include\": [{pattern:?}]}}").as_bytes()).unwrap();
            let expected = if pattern.ends_with("lin*/lib/a.so.1") {
                LibraryVerdict::Fails
            } else {
                LibraryVerdict::Passes
            };
            assert_eq!(filter.verdict(std::slice::from_ref(&file)), expected, "{pattern:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_one_line() {
        for (text, why) in [
            ("", "it is not JSON: EOF while parsing a value at line 1 column 0"),
            ("{\"include\": [\"/x\",]}", "it is not JSON: trailing comma at line 1 column 19"),
            ("[]", "it is not an object with the arrays include, include_with_deps, exclude"),
            ("{\"include\": \"/x\"}", "\"include\" is not an array of texts"),
            ("{\"exclude\": [1]}", "\"exclude\" is not an array of texts"),
            ("\u{feff}{}", "it is not JSON: expected value at line 1 column 1"),
        ] {
            assert_eq!(LibraryFilter::parse(text.as_bytes()).unwrap_err(), why);
        }
        let long = format!("{{\"include\": [\"/{}\"]}}", "*x".repeat(200_000));
        let why = LibraryFilter::parse(long.as_bytes()).unwrap_err();
        assert!(why.starts_with("the patterns in \"include\" cannot be used ("), "{why}");
        let deep = "[".repeat(100_000);
        assert!(LibraryFilter::parse(deep.as_bytes()).unwrap_err().contains("recursion limit"));
        let (_, complaints) =
            LibraryFilter::parse(br#"{"exclud": [], "include": ["lib/*.so", "*x", "**x"]}"#).unwrap();
        assert_eq!(
            complaints,
            [
                "\"lib/*.so\" in \"include\" selects nothing: paths begin with /",
                "\"*x\" in \"include\" selects nothing: paths begin with /",
                "\"exclud\" is none of include, include_with_deps, exclude, and is ignored; did you mean exclude?"
            ]
        );
    }

    #[test]
    fn a_file_is_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let read = |name: &str| LibraryFilter::read(&directory.path().join(name)).unwrap_err();
        assert_eq!(read("missing"), "No such file or directory (os error 2)");
        assert_eq!(read(""), "it is not a regular file");
        std::fs::write(directory.path().join("large"), vec![b' '; 2 << 20]).unwrap();
        assert_eq!(read("large"), "it has more than 1048576 bytes");
        assert_eq!(LibraryFilter::read(Path::new("/dev/zero")).unwrap_err(), "it is not a regular file");
    }
}
