//! `HSA_TOOLS_LIB`, by which the runtime finds its tools: ROCr before 5.3 starts no tool that is merely preloaded.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use rpd_preload::environment::put;
use rpd_preload::library::own_path;
use rpd_preload::tools_list::{self, End};

/// Puts this library in front of the others, for this process and its children.
pub(super) fn announce() {
    if let Some(own) = own_path()
        && let Some(list) = tools_list::with_tool(&tools(), own.to_bytes(), End::Front)
        && let Ok(list) = CString::new(list)
    {
        put(c"HSA_TOOLS_LIB", &list);
    }
}

/// Whether ROCr would start a tool other than this library: one in the list, or one loaded like this one.
pub(super) fn names_others() -> bool {
    // SAFETY: a NUL-terminated name. What lies behind our own definition in the search order is another library's.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"HSA_AMD_TOOL_PRIORITY".as_ptr()) };
    !next.is_null() || own_path().is_some_and(|own| tools_list::has_others(&tools(), own.to_bytes()))
}

fn tools() -> Vec<u8> {
    std::env::var_os(tools_list::VARIABLE).unwrap_or_default().as_bytes().to_vec()
}
