//! Numbers in records: this source's number, and the function numbers of operations without a call.

/// The source's number.
pub(super) const SOURCE: u8 = 1;

/// Names by number: the functions that copy, and a dispatch.
pub(super) const NAMES: [&str; 4] = [
    "hsa_amd_memory_async_copy",
    "hsa_amd_memory_async_copy_on_engine",
    "hsa_amd_memory_async_copy_rect",
    "hsaDispatch",
];
/// A dispatch.
pub(super) const DISPATCH: u16 = 3;
