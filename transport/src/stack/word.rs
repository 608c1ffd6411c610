//! A frame as records carry it, in 8 bytes: the module's number above, the address below.

/// Bits of an address in user space.
const ADDRESS: u32 = 48;

/// A frame in module `id` at `address`, an address of the module's file; with id 0, of the process.
///
/// Of a caller it is the last byte of its call instruction: the byte behind may belong to another line, or another function.
pub(super) fn new(id: u16, address: u64) -> u64 {
    u64::from(id) << ADDRESS | address & ((1 << ADDRESS) - 1)
}

/// (id, address).
pub(crate) fn parts(word: u64) -> (u16, u64) {
    ((word >> ADDRESS) as u16, word & ((1 << ADDRESS) - 1))
}
