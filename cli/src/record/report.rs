//! What the recorded processes said about themselves, in the file named by RPDT_REPORT.
//!
//! Every process that the recorder was loaded into appends one line when that happens, one when it has something to record, and one when it
//! ends. Forked children have the last two. This is how `rpd record` knows why a trace has nothing in it: a process that does nothing with a
//! GPU leaves no sign in the trace itself.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// How far the HSA runtime came in a process, from nothing to everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HsaStage {
    /// libhsa-runtime64 is not in the process.
    Absent,
    /// It is, and never called the recorder.
    Mapped,
    /// It called the recorder: hsa_init got that far.
    Loaded,
}

/// What a process found of the AMD GPU driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kfd {
    /// /dev/kfd could be opened.
    Usable,
    /// There is no /dev/kfd.
    Missing,
    /// It may not be opened by this user.
    Denied,
}

/// What drives a GPU without the HSA runtime, in which the recorder sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OtherRuntime {
    /// The program itself, by /dev/kfd.
    Itself,
    /// CUDA.
    Cuda(Cupti),
}

/// How far the recorder came with CUPTI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cupti {
    /// CUDA was not initialised while the recorder was there.
    Unasked,
    /// The driver was to load another tool.
    OtherTool,
    /// It could not be used.
    Refused,
    /// It was used.
    Attached,
}

/// A process the recorder was loaded into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoadedProcess {
    /// Process id.
    pub(crate) pid: u32,
    /// The program it ran.
    pub(crate) exe: PathBuf,
    /// The trace it records into, if it records.
    pub(crate) file: Option<PathBuf>,
}

/// A process that came to an orderly end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EndedProcess {
    /// Process id.
    pub(crate) pid: u32,
    /// When its recorder was made, ns of CLOCK_MONOTONIC, as its sessions say.
    pub(crate) start: u64,
    /// How far the HSA runtime came.
    pub(crate) hsa: HsaStage,
    /// Another tool that has the runtime's table, by the name of its library.
    pub(crate) tool: Option<String>,
    /// What was found of the driver.
    pub(crate) kfd: Kfd,
    /// What it drives a GPU with that is not the HSA runtime.
    pub(crate) runtime: Option<OtherRuntime>,
    /// Operations recorded.
    pub(crate) ops: u64,
    pub(crate) lost: u64,
    /// Lines that are missing in its duration log.
    pub(crate) log_lost: u64,
    /// CPU time of the recorder's own threads, in nanoseconds.
    pub(crate) cpu_ns: u64,
}

/// All lines of one run.
#[derive(Debug, Default)]
pub(crate) struct RunReport {
    /// One per process (and per program a process executed), in the order of loading.
    pub(crate) loaded: Vec<LoadedProcess>,
    /// Processes that had something to record: their ids and starts, as those of [`EndedProcess`].
    pub(crate) recording: Vec<(u32, u64)>,
    /// One per process that ended in order: a killed one has none.
    pub(crate) ended: Vec<EndedProcess>,
}

impl RunReport {
    /// Reads the lines. Unknown kinds of lines and unknown fields are passed over, and so is a line that
    /// a process was killed in the middle of writing: what is left is still worth telling.
    pub(crate) fn parse(text: &[u8]) -> RunReport {
        let mut report = RunReport::default();
        for line in String::from_utf8_lossy(text).lines() {
            let mut words = line.split_ascii_whitespace();
            let kind = words.next();
            let fields = Fields::new(words);
            match kind {
                Some("loaded") => report.loaded.extend(LoadedProcess::parse(&fields)),
                Some("records") => report.recording.extend(fields.number("pid").zip(fields.number("start"))),
                Some("ended") => report.ended.extend(EndedProcess::parse(&fields)),
                _ => {}
            }
        }
        report
    }

    /// The process loaded last of those that never told how they ended.
    pub(crate) fn silent(&self) -> Option<&LoadedProcess> {
        self.loaded.iter().rev().find(|loaded| self.ended.iter().all(|ended| ended.pid != loaded.pid))
    }

    /// The files that the processes were to record into, each once, in the order of loading.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = Vec::new();
        for file in self.loaded.iter().filter_map(|loaded| loaded.file.as_ref()) {
            if !files.contains(file) {
                files.push(file.clone());
            }
        }
        files
    }

    /// The program that `pid` ran last.
    pub(crate) fn program(&self, pid: u32) -> Option<&PathBuf> {
        self.loaded.iter().rev().find(|loaded| loaded.pid == pid).map(|loaded| &loaded.exe)
    }
}

impl LoadedProcess {
    fn parse(fields: &Fields<'_>) -> Option<LoadedProcess> {
        Some(LoadedProcess {
            pid: fields.number("pid")?,
            exe: path(fields.text("exe")?),
            file: fields.text("file").map(path),
        })
    }
}

impl EndedProcess {
    fn parse(fields: &Fields<'_>) -> Option<EndedProcess> {
        Some(EndedProcess {
            pid: fields.number("pid")?,
            start: fields.number("start")?,
            hsa: match fields.text("hsa")? {
                "loaded" => HsaStage::Loaded,
                "mapped" => HsaStage::Mapped,
                _ => HsaStage::Absent,
            },
            tool: fields
                .text("tool")
                .filter(|tool| *tool != "none")
                .map(|tool| String::from_utf8_lossy(&percent_decoded(tool)).into_owned()),
            kfd: match fields.text("kfd")? {
                "missing" => Kfd::Missing,
                "denied" => Kfd::Denied,
                _ => Kfd::Usable,
            },
            runtime: match fields.text("runtime") {
                Some("cuda") => Some(OtherRuntime::Cuda(match fields.text("cupti") {
                    Some("attached") => Cupti::Attached,
                    Some("refused") => Cupti::Refused,
                    Some("other") => Cupti::OtherTool,
                    _ => Cupti::Unasked,
                })),
                Some("kfd") => Some(OtherRuntime::Itself),
                _ => None,
            },
            ops: fields.number("ops")?,
            lost: fields.number("lost")?,
            log_lost: fields.number("log_lost").unwrap_or(0),
            cpu_ns: fields.number("cpu_ns")?,
        })
    }
}

/// The `key=value` words of a line.
struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    fn new(words: impl Iterator<Item = &'a str>) -> Fields<'a> {
        Fields(words.filter_map(|word| word.split_once('=')).collect())
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.text(key)?.parse().ok()
    }
}

fn path(text: &str) -> PathBuf {
    PathBuf::from(OsString::from_vec(percent_decoded(text)))
}

/// Undoes `%20` and the like; a percent sign without two hex digits stands for itself.
fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    while let Some((first, rest)) = bytes.split_first() {
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits
            .filter(|digits| *first == b'%' && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(escaped.unwrap_or(*first));
        bytes = if escaped.is_some() { &rest[2..] } else { rest };
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_lines_are_read() {
        let report = RunReport::parse(
            b"loaded pid=7 exe=/bin/my%20prog%25\n\
              records pid=7 start=1\n\
              ended pid=7 start=1 hsa=loaded tool=librocprofiler.so kfd=denied ops=3 lost=2 cpu_ns=1500 log_lost=4 later=1\n\
              loaded pid=8 exe=/bin/sh file=/t/8%251.rpd\n\
              ended pid=8 start=2 hsa=no tool=none kfd=ok ops=0 lost=1 cpu_ns=500\n",
        );
        assert_eq!(report.program(7).unwrap().to_str(), Some("/bin/my prog%"));
        assert_eq!(report.files(), [PathBuf::from("/t/8%1.rpd")]);
        assert_eq!(report.recording, [(7, 1)]);
        let first = &report.ended[0];
        assert_eq!((first.start, first.lost, first.cpu_ns, first.log_lost), (1, 2, 1500, 4));
        assert_eq!((first.hsa, first.kfd, first.ops), (HsaStage::Loaded, Kfd::Denied, 3));
        assert_eq!(first.tool.as_deref(), Some("librocprofiler.so"));
        assert_eq!(report.ended[1].tool, None);
    }

    #[test]
    fn torn_and_foreign_lines_are_passed_over() {
        let report = RunReport::parse(
            b"\xff\xfe\nnews pid=1\nended pid=2 start=3 hsa=loaded tool=none kf\nloaded pid=x exe=/\nrecords pid=4\n",
        );
        assert!(report.loaded.is_empty() && report.recording.is_empty() && report.ended.is_empty());
        assert_eq!(percent_decoded("100%"), b"100%");
        assert_eq!(percent_decoded("%zz%e2%82%ac"), "%zz€".as_bytes());
    }
}
