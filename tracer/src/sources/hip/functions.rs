//! What records name by number: this source, and what an operation is called that is of no call. Other numbers are places in the
//! description.

/// The source's number.
pub(super) const SOURCE: u8 = 2;
/// A kernel.
pub(super) const DISPATCH: u16 = u16::MAX;
/// Another command.
pub(super) const COMMAND: u16 = u16::MAX - 1;
