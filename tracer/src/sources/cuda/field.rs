//! A field of a record in memory: its type and its place.

use std::marker::PhantomData;

/// A field of that type, so many bytes into its record.
pub(super) struct Field<T>(usize, PhantomData<T>);

/// The field that lies there.
pub(super) const fn at<T>(offset: usize) -> Field<T> {
    Field(offset, PhantomData)
}

/// # Safety
/// `record` points to one that has the field.
pub(super) unsafe fn read<T: Copy>(record: *const u8, field: &Field<T>) -> T {
    // SAFETY: the caller's promise; packed records need not be aligned.
    unsafe { record.add(field.0).cast::<T>().read_unaligned() }
}
