//! Two lines about this process for `rpd record`, which says at the end what was recorded or why nothing was.
//!
//! `rpd record` names the file in RPDT_REPORT. Each line is one append, so processes do not mix.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use crate::recorder::Recorder;
use crate::{host, hsa};

/// The library is in the process.
pub(crate) fn loaded(recorder: &Recorder) {
    append(recorder, || {
        format!("loaded pid={} exe={}", recorder.pid, escaped(host::executable().as_os_str().as_bytes()))
    });
}

/// The process ends.
pub(crate) fn ended(recorder: &Recorder) {
    append(recorder, || {
        let lost = recorder.counters.lost().records();
        format!(
            "ended pid={} hsa={} tool={} kfd={} ops={} lost={lost} cpu_ns={}",
            recorder.pid,
            hsa::presence(),
            other_tool().unwrap_or("none"),
            kfd(),
            recorder.writer.ops(),
            recorder.counters.cpu_ns.load(std::sync::atomic::Ordering::Relaxed),
        )
    });
}

fn append(recorder: &Recorder, line: impl FnOnce() -> String) {
    let Some(path) = &recorder.config.report else { return };
    // A report that cannot be written costs `rpd record` an explanation, nothing else.
    if let Ok(mut file) = OpenOptions::new().append(true).open(path) {
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
    #[test]
    fn escaping() {
        assert_eq!(super::escaped(b"/a b/50%\n\xff"), "/a%20b/50%25%0a%ff");
    }
}
