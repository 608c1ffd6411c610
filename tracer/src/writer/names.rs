//! What the file calls each kernel: demangled name, string id, code object id. Worked out once per kernel.

use rpd_schema::{Appender, CodeObjectId, CodeObjectRow, Error, ExtCodeObjectRow, StringId};

use crate::hsa::kernel::{self, Kernel, KernelId, Role};

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
#[derive(Default)]
pub(super) struct Names {
    known: Vec<Option<Named>>,
    /// Those that came with the open transaction.
    open: Vec<usize>,
    /// Demangling is slow, and its result survives a rollback.
    demangled: Vec<Option<String>>,
}

impl Names {
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
                let text = self.demangled.get(place).and_then(Option::as_deref).unwrap_or_default();
                (named.name, named.doubts) = (appender.intern(text)?, appender.doubts());
            }
            return Ok(*named);
        }
        let kernel = kernel::get(id);
        let named = self.enter(place, kernel.as_deref(), appender)?;
        self.known.resize(self.known.len().max(place + 1), None);
        self.known[place] = Some(named);
        self.open.push(place);
        Ok(named)
    }

    fn enter(
        &mut self,
        place: usize,
        kernel: Option<&Kernel>,
        appender: &mut Appender,
    ) -> Result<Named, Error> {
        self.demangled.resize(self.demangled.len().max(place + 1), None);
        let text = self.demangled[place]
            .get_or_insert_with(|| kernel.map(|k| rpd_codeobject::demangle(&k.symbol)).unwrap_or_default());
        let name = appender.intern(text)?;
        let mut code_object = CodeObjectId::UNKNOWN;
        if let Some(facts) = kernel.and_then(|kernel| kernel.facts.as_ref()) {
            code_object = CodeObjectId(place as u64 + 1);
            let row =
                CodeObjectRow { id: code_object, vgpr: facts.vgpr_count, sgpr: facts.sgpr_count, fbar: 0 };
            appender.code_object(&row)?;
            appender.ext_code_object(&ExtCodeObjectRow {
                id: code_object,
                kernel_name: name,
                agpr: facts.agpr_count,
                vgpr_spill: facts.vgpr_spill_count,
                sgpr_spill: facts.sgpr_spill_count,
                group_segment_size: facts.group_segment_fixed_size,
                private_segment_size: facts.private_segment_fixed_size,
                kernarg_segment_size: facts.kernarg_segment_size,
                wavefront_size: facts.wavefront_size,
                max_workgroup_size: facts.max_flat_workgroup_size,
            })?;
        }
        let role = kernel.map_or(Role::Kernel, Kernel::role);
        Ok(Named { role, name, code_object, doubts: appender.doubts() })
    }
}
