//! Rows of all tables that wait to be written.

use crate::batch::Batch;
use crate::table::{
    ApiOp, ApiRow, BarrierRow, CandidateRow, CodeObjectRow, CopyApiRow, DispatchRow, ExtCodeObjectRow,
    InputSignal, KernelApiRow, LaunchAttributeRow, LibraryCallRow, NumberedMonitor, NumberedValidation,
    OpRow, ReplacementRow, Row, SavedCodeRow, SavedKernel, StackFrame, StringRow, TickRow,
};
use rpd_sql::insert::Insert;

/// One batch per table, and what is done to all of them: a table named here cannot be forgotten at a commit.
macro_rules! pending {
    ($($batch:ident: $row:ty),+ $(,)?) => {
        /// Rows that wait to be written.
        #[derive(Debug)]
        pub(crate) struct Pending {
            $(pub(crate) $batch: Batch,)+
        }

        impl Pending {
            /// All tables.
            pub(crate) const TABLES: &[&'static Insert] = &[$(<$row>::INSERT,)+];

            pub(crate) fn new() -> Pending {
                Pending { $($batch: Batch::new(<$row>::INSERT),)+ }
            }

            /// Every batch, texts first.
            pub(crate) fn all(&mut self) -> impl Iterator<Item = &mut Batch> {
                [$(&mut self.$batch,)+].into_iter()
            }
        }
    };
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
