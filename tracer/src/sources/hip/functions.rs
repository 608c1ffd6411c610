//! Numbers in records: that of this source, and those of the names that operations without a call get. Other numbers are places in the
//! description.

/// The source's number.
pub(super) const SOURCE: u8 = 2;
/// A kernel.
pub(super) const DISPATCH: u16 = u16::MAX;
/// Another command.
pub(super) const COMMAND: u16 = u16::MAX - 1;
