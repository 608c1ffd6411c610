//! `HSA_TOOLS_LIB`: the list of libraries that the HSA runtime loads and starts. ROCr splits the list at spaces, takes double quotes as
//! grouping and a backslash as escape (ROCr 5.2 runtime.cpp).

use crate::library::file_name;

/// Name of the variable.
pub const VARIABLE: &str = "HSA_TOOLS_LIB";

/// Where a library is added.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Before all others: the runtime starts it first.
    Front,
    /// Behind all others.
    Back,
}

/// `list` with the library `own` added; nothing when a library of that file name is already in it.
pub fn with_tool(list: &[u8], own: &[u8], end: End) -> Option<Vec<u8>> {
    if has_tool(list, own) {
        return None;
    }
    let mut escaped = Vec::new();
    for byte in own {
        if matches!(byte, b' ' | b'"' | b'\\') {
            escaped.push(b'\\');
        }
        escaped.push(*byte);
    }
    Some(match end {
        _ if list.is_empty() => escaped,
        End::Front => [&escaped, &b" "[..], list].concat(),
        End::Back => [list, b" ", &escaped].concat(),
    })
}

/// Whether `list` has a library of the file name of `own`.
pub fn has_tool(list: &[u8], own: &[u8]) -> bool {
    tools(list).any(|tool| file_name(tool) == file_name(own))
}

/// Whether `list` has a library of another file name than `own`.
pub fn has_others(list: &[u8], own: &[u8]) -> bool {
    tools(list).any(|tool| file_name(tool) != file_name(own))
}

/// The libraries of a list, without the quotes around them.
fn tools(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|b| matches!(b, b' ' | b'"')).filter(|tool| !tool.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_added_once() {
        let with = |list: &str, own: &str, end| {
            with_tool(list.as_bytes(), own.as_bytes(), end).map(|list| String::from_utf8(list).unwrap())
        };
        for end in [End::Front, End::Back] {
            assert_eq!(with("", "/lib/librpd_tracer.so", end).unwrap(), "/lib/librpd_tracer.so");
            assert_eq!(with("", "/my lib/librpd_tracer.so", end).unwrap(), "/my\\ lib/librpd_tracer.so");
            assert_eq!(with("librpd_tracer.so x.so", "/lib/librpd_tracer.so", end), None);
            assert_eq!(with("a.so \"/my lib/librpd_tracer.so\"", "/lib/librpd_tracer.so", end), None);
            assert!(with("/lib/librpd_tracer.so.bak", "/lib/librpd_tracer.so", end).is_some());
        }
        assert_eq!(with("other.so", "/lib/own.so", End::Front).unwrap(), "/lib/own.so other.so");
        assert_eq!(with("other.so", "/my lib/own.so", End::Back).unwrap(), "other.so /my\\ lib/own.so");
    }

    #[test]
    fn other_tools() {
        let others = |list: &str| has_others(list.as_bytes(), b"/lib/librpd_tracer.so");
        assert!(!others("") && !others(" ") && !others("librpd_tracer.so"));
        assert!(!others("/lib/librpd_tracer.so "));
        assert!(others("/lib/librpd_tracer.so other.so") && others("\"/some/other.so\""));
    }
}
