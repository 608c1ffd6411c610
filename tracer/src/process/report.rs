//! Lines about this process for `rpd record`, which says at the end what was recorded or why nothing was.
//!
//! `rpd record` names the file in RPDT_REPORT. Each line is one append, so processes do not mix.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rpd_preload::descriptors;
use rpd_transport::host;
use rpd_transport::recorder::Recorder;
use rpd_transport::writer;

use crate::sources;

/// The library is in the process.
pub(crate) fn loaded(recorder: &Recorder) {
    append(recorder, || {
        format!(
            "loaded pid={} exe={} file={}",
            recorder.pid,
            escaped(host::executable().as_os_str().as_bytes()),
            escaped(recorder.config.filename.expanded().as_os_str().as_bytes())
        )
    });
}

/// The process has something to record. A forked child has no line before, and a child that is killed none after.
pub(crate) fn records(recorder: &Recorder) {
    append(recorder, || format!("records pid={} start={}", recorder.pid, recorder.began.0));
}

/// The process ends.
pub(crate) fn ended(recorder: &Recorder) {
    append(recorder, || {
        let lost = recorder.counters.lost().records();
        let words = sources::ALL.iter().filter_map(|source| source.state());
        let words = words.map(|(key, word)| format!("{key}={word} "));
        format!(
            "ended pid={} start={} hsa={} tool={} kfd={} runtime={} {}ops={} lost={lost} cpu_ns={} log_lost={}",
            recorder.pid,
            recorder.began.0,
            sources::ALL.iter().find_map(|source| source.presence()).unwrap_or("no"),
            other_tool().unwrap_or("none"),
            kfd(),
            other_runtime(),
            words.collect::<String>(),
            recorder.requests.ops(),
            recorder.counters.cpu_ns.load(std::sync::atomic::Ordering::Relaxed),
            writer::log_lines_lost(),
        )
    });
}

fn append(recorder: &Recorder, line: impl FnOnce() -> String) {
    let Some(path) = &recorder.config.report else { return };
    // A report that cannot be written costs `rpd record` an explanation, nothing else.
    if let Ok(mut file) = descriptors::with_room(|| OpenOptions::new().append(true).open(path)) {
        let _ = file.write_all(format!("{}\n", line()).as_bytes());
    }
}

/// A library in this process that may have taken ROCr's table before us.
fn other_tool() -> Option<&'static str> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    ["librocprofiler-register", "librocprofiler-sdk", "librocprofiler64", "libroctracer64"]
        .into_iter()
        .find(|name| maps.contains(name))
}

/// How this process drives a GPU without the HSA runtime, if it does.
fn other_runtime() -> &'static str {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let descriptors = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let opened = descriptors.filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok());
    runtime_of(&maps, opened)
}

/// See [`other_runtime`]: from what is mapped and what is open.
fn runtime_of(maps: &str, mut opened: impl Iterator<Item = PathBuf>) -> &'static str {
    if maps.contains("/libcuda.so") {
        "cuda"
    } else if opened.any(|file| file == Path::new("/dev/kfd")) {
        "kfd"
    } else {
        "none"
    }
}

fn kfd() -> &'static str {
    // Asked, not opened: opening makes the driver keep books for a process that may be a shell.
    // SAFETY: a NUL-terminated path.
    if unsafe { libc::access(c"/dev/kfd".as_ptr(), libc::R_OK | libc::W_OK) } == 0 {
        return "ok";
    }
    match std::io::Error::last_os_error().kind() {
        std::io::ErrorKind::NotFound => "missing",
        _ => "denied",
    }
}

/// Spaces, percent signs and control characters as %xx.
fn escaped(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|b| match b {
            b'!'..=b'~' if *b != b'%' => char::from(*b).to_string(),
            _ => format!("%{b:02x}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_that_are_driven_without_hsa() {
        let opened = |file: &str| std::iter::once(PathBuf::from(file));
        assert_eq!(
            runtime_of("7f00-7f01 r-xp 0 0:1 1 /usr/lib/libcuda.so.535.1\n", opened("/dev/null")),
            "cuda"
        );
        assert_eq!(runtime_of("7f00-7f01 r-xp 0 0:1 1 /usr/lib/libc.so.6\n", opened("/dev/kfd")), "kfd");
        assert_eq!(runtime_of("", opened("/tmp/dev/kfd")), "none");
    }

    #[test]
    fn escaping() {
        assert_eq!(super::escaped(b"/a b/50%\n\xff"), "/a%20b/50%25%0a%ff");
    }
}
