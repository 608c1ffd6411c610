//! Rows of all tables that wait for their statement.

use crate::batch::Batch;
use crate::id::Offset;
use crate::table::{
    ApiOp, ApiRow, BarrierRow, CodeObjectRow, CopyApiRow, DispatchRow, ExtCodeObjectRow, InputSignal,
    KernelApiRow, OpRow, OwnedMonitor, StackFrame, StringRow, TickRow,
};
use rusqlite::Connection;

/// One batch per table, and what is done to all of them: a table named here cannot be forgotten at a commit.
macro_rules! pending {
    ($($batch:ident: $row:ty),+ $(,)?) => {
        /// Rows that wait for their statement.
        #[derive(Debug)]
        pub(crate) struct Pending {
            $(pub(crate) $batch: Batch<$row>,)+
        }

        impl Pending {
            pub(crate) fn new() -> Pending {
                Pending { $($batch: Batch::new(),)+ }
            }

            /// A transaction begins.
            pub(crate) fn begin(&mut self) {
                $(self.$batch.begin();)+
            }

            /// Writes every row, texts first.
            pub(crate) fn flush(&mut self, connection: &Connection, offset: Offset) -> rusqlite::Result<()> {
                $(self.$batch.flush(connection, offset)?;)+
                Ok(())
            }

            /// Forgets every row.
            pub(crate) fn clear(&mut self) {
                $(self.$batch.clear();)+
            }
        }
    };
}

pending! {
    strings: StringRow,
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
    ticks: TickRow,
    monitors: OwnedMonitor,
    stack_frames: StackFrame,
}
