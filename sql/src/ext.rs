//! The tables this project adds to the format, one file each.

/// Table `ext_dispatch` and view `dispatch`: one row per kernel that ran. Part of a fresh file.
pub const DISPATCH: &str = include_str!("../ext/dispatch.sql");

/// Table `ext_kernelcodeobject`: what the code object says beyond the format's registers. Added when first known.
pub const KERNELCODEOBJECT: &str = include_str!("../ext/kernelcodeobject.sql");

/// Table `ext_tick`: the device's raw tick counts of an op. Added on request.
pub const TICK: &str = include_str!("../ext/tick.sql");

/// Table `ext_callstack` and its views: who called whom. Made by `rpd callstack`.
pub const CALLSTACK: &str = include_str!("../ext/callstack.sql");

/// The same statements for a file of schema 3, where the arguments of calls are texts of a table of their own.
#[must_use]
pub fn for_schema_3(statements: &str) -> String {
    statements.replace("\"rocpd_string\" /* schema 3: rocpd_ustring */", "\"rocpd_ustring\"")
}
