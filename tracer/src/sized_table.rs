//! Dispatch tables that begin with their own size: HIP's and roctx's.

use std::ffi::c_void;

/// Larger than any table: a "size" that is not one.
const MOST: usize = 1 << 16;

/// One live table. Entries are functions of 8 bytes each behind the size.
#[derive(Clone, Copy)]
pub(crate) struct SizedTable {
    base: *mut usize,
    size: usize,
}

impl SizedTable {
    /// # Safety
    /// `base` is null or the address of such a table, which lives as long as the process.
    pub(crate) unsafe fn new(base: *mut c_void) -> SizedTable {
        let base = base.cast::<usize>();
        // SAFETY: the caller's promise.
        let size = unsafe { base.as_ref() }.map_or(0, |size| if *size <= MOST { *size } else { 0 });
        SizedTable { base, size }
    }

    /// Replaces the function at byte `offset`; `keep` is given the one that is there before any thread can call the new one. False, and
    /// nothing is changed, where the table is shorter, has no function there, or has this one already.
    ///
    /// # Safety
    /// `function` has the type of that entry; the library offers its table at this moment.
    pub(crate) unsafe fn replace(&self, offset: usize, function: usize, keep: impl FnOnce(usize)) -> bool {
        if offset < 8 || !offset.is_multiple_of(8) || offset.saturating_add(8) > self.size {
            return false;
        }
        // SAFETY: inside the table, behind its size.
        let slot = unsafe { self.base.add(offset / 8) };
        // SAFETY: as above.
        let original = unsafe { slot.read() };
        if original == 0 || original == function {
            return false;
        }
        keep(original);
        // SAFETY: as above; the library's own threads see either function.
        unsafe { slot.write_volatile(function) };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_there_is_replaced() {
        let mut memory: [usize; 5] = [32, 11, 0, 33, 44];
        // SAFETY: such a table, of 32 bytes; what lies behind is somebody else's.
        let table = unsafe { SizedTable::new(memory.as_mut_ptr().cast()) };
        let replaced = [0, 4, 8, 8, 16, 24, 32, usize::MAX & !7].map(|at| {
            let mut kept = None;
            // SAFETY: plain numbers.
            let done = unsafe { table.replace(at, 1, |original| kept = Some(original)) };
            assert_eq!(done, kept.is_some());
            kept
        });
        assert_eq!(replaced, [None, None, Some(11), None, None, Some(33), None, None]);
        assert_eq!(memory, [32, 1, 0, 1, 44]);
    }

    #[test]
    fn what_is_no_table_has_no_entries() {
        for mut memory in [[0usize, 11], [usize::MAX, 11]] {
            // SAFETY: a readable word, which is not the size of a table.
            assert!(!unsafe { SizedTable::new(memory.as_mut_ptr().cast()).replace(8, 1, |_| ()) });
        }
        // SAFETY: null is allowed.
        assert!(!unsafe { SizedTable::new(std::ptr::null_mut()).replace(8, 1, |_| ()) });
    }
}
