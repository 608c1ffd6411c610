//! The code objects that the process has loaded, and which of them each kernel in the file came in. A code object has its row once its
//! bytes have been dealt with, which may be after rows of its kernels are in the file.

use rpd_schema::{Appender, CodeObjectId, Error, SavedCodeId, SavedCodeRow};

use crate::source::{CodeObjectText, GpuTable};

/// A kernel whose code object is still to be named.
#[derive(Clone, Copy)]
struct UnlinkedKernel {
    /// The kernel's number.
    kernel: usize,
    row: CodeObjectId,
    /// The code object's number.
    code_object: u32,
}

pub(super) struct CodeObjects {
    table: &'static dyn GpuTable,
    /// How many have rows, and how many of them had when the open transaction began.
    rows: usize,
    rows_before: usize,
    waiting: Vec<UnlinkedKernel>,
    /// Those that the open transaction has named.
    named: Vec<UnlinkedKernel>,
}

impl CodeObjects {
    /// Of the kernels of `table`.
    pub(super) fn new(table: &'static dyn GpuTable) -> CodeObjects {
        CodeObjects { table, rows: 0, rows_before: 0, waiting: Vec::new(), named: Vec::new() }
    }

    /// The kernel has got a row, and came in that code object.
    pub(super) fn add(&mut self, kernel: usize, row: CodeObjectId, code_object: u32) {
        self.waiting.push(UnlinkedKernel { kernel, row, code_object });
    }

    /// Whether there is more to be written.
    pub(super) fn has_more(&self) -> bool {
        !self.table.code_objects(self.rows).is_empty()
    }

    /// Writes what is known and not written yet.
    pub(super) fn write(&mut self, appender: &mut Appender) -> Result<(), Error> {
        for CodeObjectText { sha256, uri, target, size } in self.table.code_objects(self.rows) {
            self.rows += 1;
            let id = SavedCodeId(self.rows as u64);
            appender.saved_code(&SavedCodeRow { id, sha256: &sha256, uri: &uri, target: &target, size })?;
        }
        let mut place = 0;
        while let Some(waiting) = self.waiting.get(place).copied() {
            match self.table.code_object(waiting.code_object).filter(|row| *row < self.rows) {
                Some(row) => {
                    self.named.push(self.waiting.swap_remove(place));
                    appender.saved_kernel(waiting.row, SavedCodeId(row as u64 + 1))?;
                }
                None => place += 1,
            }
        }
        Ok(())
    }

    /// A new session began, which has no rows yet.
    pub(super) fn forget(&mut self) {
        *self = CodeObjects::new(self.table);
    }

    /// The open transaction is in the file.
    pub(super) fn commit(&mut self) {
        self.rows_before = self.rows;
        self.named.clear();
    }

    /// The open transaction is not in the file, and neither are rows of the kernels that came `with_it`, in ascending order.
    pub(super) fn roll_back(&mut self, with_it: &[usize]) {
        self.rows = self.rows_before;
        self.waiting.append(&mut self.named);
        self.waiting.retain(|waiting| with_it.binary_search(&waiting.kernel).is_err());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::records::KernelId;
    use crate::source::{GpuFacts, KernelText};

    /// Code objects of which as many are known as the number says.
    struct TestTable(Mutex<usize>);

    impl GpuTable for TestTable {
        fn kernel(&self, _: KernelId) -> Option<KernelText> {
            None
        }

        fn gpus(&self) -> Vec<GpuFacts> {
            Vec::new()
        }

        fn timing(&self) -> Vec<&'static str> {
            Vec::new()
        }

        fn code_objects(&self, from: usize) -> Vec<CodeObjectText> {
            let text = |place: usize| CodeObjectText { sha256: place.to_string(), ..Default::default() };
            (from..*self.0.lock().unwrap()).map(text).collect()
        }

        fn code_object(&self, number: u32) -> Option<usize> {
            Some(number as usize).filter(|row| *row < *self.0.lock().unwrap())
        }
    }

    #[test]
    fn what_is_rolled_back_is_written_again_and_what_comes_late_too() {
        static TABLE: TestTable = TestTable(Mutex::new(0));
        let directory = tempfile::tempdir().unwrap();
        let mut appender = Appender::open(&directory.path().join("t.rpd")).unwrap();
        let mut objects = CodeObjects::new(&TABLE);
        let known = |number| *TABLE.0.lock().unwrap() = number;
        let kernel = |number: usize| CodeObjectId(number as u64);
        appender.begin().unwrap();
        objects.add(1, kernel(1), 0);
        objects.write(&mut appender).unwrap();
        assert_eq!((objects.rows, objects.waiting.len(), objects.has_more()), (0, 1, false));
        objects.commit();
        known(1);
        assert!(objects.has_more());
        // Named, with another kernel, in a transaction that fails.
        objects.add(2, kernel(2), 0);
        objects.add(3, kernel(3), 1);
        objects.write(&mut appender).unwrap();
        assert_eq!((objects.rows, objects.named.len(), objects.waiting.len()), (1, 2, 1));
        objects.roll_back(&[2, 3]);
        assert_eq!((objects.rows, objects.named.len()), (0, 0));
        let waiting: Vec<usize> = objects.waiting.iter().map(|waiting| waiting.kernel).collect();
        assert_eq!(waiting, [1], "the others come again with their rows");
        known(2);
        objects.write(&mut appender).unwrap();
        objects.commit();
        assert_eq!((objects.rows, objects.waiting.len(), objects.has_more()), (2, 0, false));
        objects.forget();
        assert!(objects.has_more(), "another session");
    }
}
