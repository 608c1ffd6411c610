//! What the file calls each kernel: name, string id, code object id. Worked out once per kernel.

use rpd_schema::{Appender, CodeObjectId, CodeObjectRow, Error, ExtCodeObjectRow, StringId};

use crate::records::KernelId;
use crate::source::{GpuTable, KernelText, Role};

/// A kernel as rows refer to it.
#[derive(Clone, Copy)]
pub(super) struct Named {
    pub(super) role: Role,
    pub(super) name: StringId,
    pub(super) code_object: CodeObjectId,
    /// When the name was good, see [`Appender::doubts`].
    doubts: u32,
}

/// See the module.
pub(super) struct Names {
    table: &'static dyn GpuTable,
    known: Vec<Option<Named>>,
    /// Those that came with the open transaction.
    open: Vec<usize>,
}

impl Names {
    /// Of the kernels of `table`.
    pub(super) fn new(table: &'static dyn GpuTable) -> Names {
        Names { table, known: Vec::new(), open: Vec::new() }
    }

    /// A new session began, which has no ids yet.
    pub(super) fn forget(&mut self) {
        self.known.clear();
        self.open.clear();
    }

    /// The open transaction is in the file.
    pub(super) fn commit(&mut self) {
        self.open.clear();
    }

    /// The open transaction is not in the file, and neither are the ids that came with it.
    pub(super) fn roll_back(&mut self) {
        for place in self.open.drain(..) {
            self.known[place] = None;
        }
    }

    /// The kernel numbered `id`; writes its code object's rows the first time.
    pub(super) fn get(&mut self, id: KernelId, appender: &mut Appender) -> Result<Named, Error> {
        let place = id as usize;
        if let Some(Some(named)) = self.known.get_mut(place) {
            if named.doubts != appender.doubts() {
                let text = self.table.kernel(id).unwrap_or_default().name;
                (named.name, named.doubts) = (appender.intern(&text)?, appender.doubts());
            }
            return Ok(*named);
        }
        let named = enter(place, &self.table.kernel(id).unwrap_or_default(), appender)?;
        self.known.resize(self.known.len().max(place + 1), None);
        self.known[place] = Some(named);
        self.open.push(place);
        Ok(named)
    }
}

fn enter(place: usize, kernel: &KernelText, appender: &mut Appender) -> Result<Named, Error> {
    let name = appender.intern(&kernel.name)?;
    let mut code_object = CodeObjectId::UNKNOWN;
    if let Some(code) = &kernel.code {
        code_object = CodeObjectId(place as u64 + 1);
        appender.code_object(&CodeObjectRow {
            id: code_object,
            vgpr: code.vgpr,
            sgpr: code.sgpr,
            fbar: 0,
        })?;
        appender.ext_code_object(&ExtCodeObjectRow {
            id: code_object,
            kernel_name: name,
            agpr: code.agpr,
            vgpr_spill: code.vgpr_spill,
            sgpr_spill: code.sgpr_spill,
            group_segment_size: code.group_segment_size,
            private_segment_size: code.private_segment_size,
            kernarg_segment_size: code.kernarg_segment_size,
            wavefront_size: code.wavefront_size,
            max_workgroup_size: code.max_workgroup_size,
        })?;
    }
    Ok(Named { role: kernel.role, name, code_object, doubts: appender.doubts() })
}
