//! A field of a record in memory: its type and its place.

use std::marker::PhantomData;

/// A field of that type, so many bytes into its record.
pub(super) struct Field<T>(usize, PhantomData<T>);

/// The field that lies there.
pub(super) const fn at<T>(offset: usize) -> Field<T> {
    Field(offset, PhantomData)
}

/// A field that records have from a version of CUPTI on, as cuptiGetVersion numbers it.
pub(super) struct NewerField<T>(u32, Field<T>);

/// The field that lies there in that version and later.
pub(super) const fn since<T>(version: u32, offset: usize) -> NewerField<T> {
    NewerField(version, at(offset))
}

/// Nothing where the record is of an older version.
///
/// # Safety
/// `record` points to one of its kind, of that `version`.
pub(super) unsafe fn read_newer<T: Copy>(
    record: *const u8,
    field: &NewerField<T>,
    version: u32,
) -> Option<T> {
    // SAFETY: the caller's promise.
    (version >= field.0).then(|| unsafe { read(record, &field.1) })
}

/// # Safety
/// `record` points to one that has the field.
pub(super) unsafe fn read<T: Copy>(record: *const u8, field: &Field<T>) -> T {
    // SAFETY: the caller's promise; packed records need not be aligned.
    unsafe { record.add(field.0).cast::<T>().read_unaligned() }
}
