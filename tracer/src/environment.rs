//! The changes the library makes to the process environment, all while it is being loaded.

use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;

use crate::sync::lock;

/// `RPDT_LOADED=1`, by which scripts see that the recorder is there; this library in `HSA_TOOLS_LIB`, because ROCr
/// before 5.3 starts no tool that is merely preloaded; and in `NVTX_INJECTION64_PATH`, where NVTX looks at the first marker, unless the
/// user names another tool.
pub(crate) fn announce() {
    put(c"RPDT_LOADED", c"1");
    let Some(own) = own_path() else { return };
    let tools = std::env::var_os("HSA_TOOLS_LIB").unwrap_or_default();
    if let Some(list) = with_tool(tools.as_bytes(), own.to_bytes())
        && let Ok(list) = CString::new(list)
    {
        put(c"HSA_TOOLS_LIB", &list);
    }
    if std::env::var_os("NVTX_INJECTION64_PATH").is_none_or(|tool| tool.is_empty()) {
        put(c"NVTX_INJECTION64_PATH", own);
    }
}

/// `list` with `own` in front; nothing when a library of that file name is already in it.
///
/// ROCr splits the list at spaces, takes double quotes as grouping and a backslash as escape (ROCr 5.2 runtime.cpp).
fn with_tool(list: &[u8], own: &[u8]) -> Option<Vec<u8>> {
    if tools(list).any(|tool| file(tool) == file(own)) {
        return None;
    }
    let mut out = Vec::new();
    for byte in own {
        if matches!(byte, b' ' | b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    if !list.is_empty() {
        out.push(b' ');
        out.extend_from_slice(list);
    }
    Some(out)
}

/// Whether `HSA_TOOLS_LIB` has a library of this one's file name.
pub(crate) fn names_this_tool() -> bool {
    let list = std::env::var_os("HSA_TOOLS_LIB").unwrap_or_default();
    own_path().is_some_and(|own| tools(list.as_bytes()).any(|tool| file(tool) == file(own.to_bytes())))
}

/// Whether ROCr would start a tool other than this library: one in `HSA_TOOLS_LIB`, or one loaded like this one.
pub(crate) fn names_other_tools() -> bool {
    let tools = std::env::var_os("HSA_TOOLS_LIB").unwrap_or_default();
    // SAFETY: a NUL-terminated name. What lies behind our own definition in the search order is another library's.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"HSA_AMD_TOOL_PRIORITY".as_ptr()) };
    !next.is_null() || own_path().is_some_and(|own| has_others(tools.as_bytes(), own.to_bytes()))
}

/// Whether `list` has a library of another file name than `own`.
fn has_others(list: &[u8], own: &[u8]) -> bool {
    tools(list).any(|tool| file(tool) != file(own))
}

/// The libraries of a list, without the quotes around them.
fn tools(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|b| matches!(b, b' ' | b'"')).filter(|tool| !tool.is_empty())
}

/// The last part of a path.
fn file(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or_default()
}

/// Absolute path of this library as the loader knows it.
fn own_path() -> Option<&'static CStr> {
    // SAFETY: all-zero is a valid Dl_info to be overwritten.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is one of ours, `info` is valid; dli_fname lives as long as the library, which is never unloaded.
    unsafe {
        if libc::dladdr(own_path as *const libc::c_void, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        Some(CStr::from_ptr(info.dli_fname))
    }
}

unsafe extern "C" {
    static mut environ: *mut *mut c_char;
}

/// The address of every array ever published. Who looks for leaks when a process ends finds the arrays by it, and by them their variables,
/// also where the program has changed its environment since.
static PUBLISHED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Sets a variable without freeing anything that another thread may be reading: setenv may move the array under a getenv
/// when the library is loaded late, in a process with threads. A new array is published instead; the old one stays.
fn put(name: &CStr, value: &CStr) {
    let mut entry = name.to_bytes().to_vec();
    entry.push(b'=');
    let prefix = entry.clone();
    entry.extend_from_slice(value.to_bytes_with_nul());
    let entry = Box::leak(entry.into_boxed_slice());
    // SAFETY: `environ` is null or a null-terminated array of C strings; only its pointer is replaced, by one that stays
    // valid for ever, and getenv reads it once per call.
    unsafe {
        let mut list = Vec::new();
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            if !CStr::from_ptr(*at).to_bytes().starts_with(&prefix) {
                list.push(*at);
            }
            at = at.add(1);
        }
        list.push(entry.as_mut_ptr().cast());
        list.push(std::ptr::null_mut());
        environ = Box::leak(list.into_boxed_slice()).as_mut_ptr();
        lock(&PUBLISHED).push(environ as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_lists() {
        let with = |list: &str, own: &str| {
            with_tool(list.as_bytes(), own.as_bytes()).map(|v| String::from_utf8(v).unwrap())
        };
        assert_eq!(with("", "/lib/librpd_tracer.so").unwrap(), "/lib/librpd_tracer.so");
        assert_eq!(with("other.so", "/lib/librpd_tracer.so").unwrap(), "/lib/librpd_tracer.so other.so");
        assert_eq!(with("", "/my lib/librpd_tracer.so").unwrap(), "/my\\ lib/librpd_tracer.so");
        assert_eq!(with("librpd_tracer.so", "/lib/librpd_tracer.so"), None);
        assert_eq!(with("a.so \"/my lib/librpd_tracer.so\"", "/lib/librpd_tracer.so"), None);
        assert!(with("/lib/librpd_tracer.so.bak", "/lib/librpd_tracer.so").is_some());
    }

    #[test]
    fn other_tools() {
        let others = |list: &str| has_others(list.as_bytes(), b"/lib/librpd_tracer.so");
        assert!(
            !others("") && !others(" ") && !others("librpd_tracer.so") && !others("/lib/librpd_tracer.so ")
        );
        assert!(others("/lib/librpd_tracer.so other.so") && others("\"/some/other.so\""));
    }

    #[test]
    fn a_variable_is_set_and_replaced() {
        put(c"RPD_TRACER_TEST", c"one");
        put(c"RPD_TRACER_TEST", c"two");
        // SAFETY: the name is NUL-terminated; the value is one we leaked.
        let value = unsafe { CStr::from_ptr(libc::getenv(c"RPD_TRACER_TEST".as_ptr())) };
        assert_eq!(value, c"two");
        assert!(std::env::var_os("PATH").is_some(), "the rest is still there");
    }
}
