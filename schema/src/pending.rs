//! Rows of all tables that wait to be written, and how many of them may.

use crate::batch::Batch;
use crate::id::Offset;
use crate::table::{
    ApiOp, ApiRow, BarrierRow, CandidateRow, CodeObjectRow, CopyApiRow, DispatchRow, ExtCodeObjectRow,
    InputSignal, KernelApiRow, LaunchAttributeRow, LibraryCallRow, NumberedMonitor, NumberedValidation,
    OpRow, ReplacementRow, Row, SavedCodeRow, SavedKernel, StackFrame, StringRow, TickRow,
};
use rpd_sql::insert::Insert;

/// Bytes of rows that wait, unless told otherwise: enough that the making of an image does not count.
const MOST_BYTES: usize = 2 << 20;

/// A row whose table has a batch.
pub(crate) trait PendingRow: Row {
    /// The batch of its table.
    fn batch(rows: &mut Pending) -> &mut Batch;
}

/// One batch per table, and what is done to all of them: a table named here cannot be forgotten at a commit.
macro_rules! pending {
    ($($batch:ident: $row:ty),+ $(,)?) => {
        /// Rows that wait to be written.
        #[derive(Debug)]
        pub(crate) struct Pending {
            bytes: usize,
            most_bytes: usize,
            $($batch: Batch,)+
        }

        impl Pending {
            /// All tables.
            pub(crate) const TABLES: &[&'static Insert] = &[$(<$row>::INSERT,)+];

            pub(crate) fn new() -> Pending {
                Pending { bytes: 0, most_bytes: MOST_BYTES, $($batch: Batch::new(<$row>::INSERT),)+ }
            }

            /// Every batch, texts first.
            pub(crate) fn all(&mut self) -> impl Iterator<Item = &mut Batch> {
                [$(&mut self.$batch,)+].into_iter()
            }
        }

        $(impl PendingRow for $row {
            fn batch(rows: &mut Pending) -> &mut Batch {
                &mut rows.$batch
            }
        })+
    };
}

impl Pending {
    /// Adds a row. False: so many wait that they must be written now. Who commits when [`Pending::is_full`] has them written in the best way.
    pub(crate) fn push<R: PendingRow>(&mut self, row: &R, offset: Offset) -> bool {
        self.bytes += R::batch(self).push(row, offset);
        self.bytes < 2 * self.most_bytes
    }

    /// Whether as many wait as may.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= self.most_bytes
    }

    /// So many bytes may wait from now on.
    pub(crate) fn set_most(&mut self, bytes: usize) {
        self.most_bytes = bytes;
    }

    /// All have been written, as far as that could be done.
    pub(crate) fn written(&mut self) {
        self.bytes = 0;
    }

    /// None is to be written.
    pub(crate) fn clear(&mut self) {
        self.all().for_each(Batch::clear);
        self.written();
    }
}

pending! {
    strings: StringRow<'_>,
    apis: ApiRow,
    kernel_apis: KernelApiRow,
    copy_apis: CopyApiRow,
    ops: OpRow,
    api_ops: ApiOp,
    dispatches: DispatchRow,
    barriers: BarrierRow,
    input_signals: InputSignal,
    code_objects: CodeObjectRow,
    ext_code_objects: ExtCodeObjectRow,
    saved_codes: SavedCodeRow<'_>,
    saved_kernels: SavedKernel,
    candidates: CandidateRow<'_>,
    replacements: ReplacementRow,
    validations: NumberedValidation<'_>,
    library_calls: LibraryCallRow,
    launch_attributes: LaunchAttributeRow,
    ticks: TickRow,
    monitors: NumberedMonitor<'_>,
    stack_frames: StackFrame,
}
