//! The changes the library makes to the process environment, all while it is being loaded.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use rpd_preload::environment::put;
use rpd_preload::library::own_path;
use rpd_preload::tools_list::{self, End};

/// `RPDT_LOADED=1`, by which scripts see that the recorder is there; this library in `HSA_TOOLS_LIB`, because ROCr
/// before 5.3 starts no tool that is merely preloaded; and in `NVTX_INJECTION64_PATH`, where NVTX looks at the first marker, unless the
/// user names another tool.
pub(crate) fn announce() {
    put(c"RPDT_LOADED", c"1");
    let Some(own) = own_path() else { return };
    if let Some(list) = tools_list::with_tool(&tools(), own.to_bytes(), End::Front)
        && let Ok(list) = CString::new(list)
    {
        put(c"HSA_TOOLS_LIB", &list);
    }
    if std::env::var_os("NVTX_INJECTION64_PATH").is_none_or(|tool| tool.is_empty()) {
        put(c"NVTX_INJECTION64_PATH", own);
    }
}

/// Whether `HSA_TOOLS_LIB` has a library of this one's file name.
pub(crate) fn names_this_tool() -> bool {
    own_path().is_some_and(|own| tools_list::has_tool(&tools(), own.to_bytes()))
}

/// Whether ROCr would start a tool other than this library: one in `HSA_TOOLS_LIB`, or one loaded like this one.
pub(crate) fn names_other_tools() -> bool {
    // SAFETY: a NUL-terminated name. What lies behind our own definition in the search order is another library's.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"HSA_AMD_TOOL_PRIORITY".as_ptr()) };
    !next.is_null() || own_path().is_some_and(|own| tools_list::has_others(&tools(), own.to_bytes()))
}

fn tools() -> Vec<u8> {
    std::env::var_os(tools_list::VARIABLE).unwrap_or_default().as_bytes().to_vec()
}
