//! Numbers in records: this source's number, and the function numbers of a kernel and a command without a call. Any other function number
//! is an index into the description.

/// The source's number.
pub(super) const SOURCE: u8 = 2;
/// A kernel.
pub(super) const DISPATCH: u16 = u16::MAX;
/// Another command.
pub(super) const COMMAND: u16 = u16::MAX - 1;
