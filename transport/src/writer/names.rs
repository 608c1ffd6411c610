//! What the file calls each kernel: name, string id, code object id. Worked out once per kernel.

use rpd_schema::{
    Appender, CandidateId, CandidateRow, CodeObjectId, CodeObjectRow, Error, ExtCodeObjectRow, StringId,
};

use super::code_objects::CodeObjects;
use crate::records::KernelId;
use crate::source::{GpuTable, KernelText, Role};

/// A kernel as rows refer to it.
#[derive(Clone, Copy)]
pub(super) struct Named {
    pub(super) role: Role,
    pub(super) name: StringId,
    pub(super) code_object: CodeObjectId,
    /// What runs in its place, where it does not run itself.
    pub(super) replacement: Option<Replacement>,
    /// When the name was good, see [`Appender::doubts`].
    doubts: u32,
}

/// A kernel of a candidate.
#[derive(Clone, Copy)]
pub(super) struct Replacement {
    pub(super) code_object: CodeObjectId,
    pub(super) candidate: CandidateId,
}

/// See the module.
pub(super) struct Names {
    table: &'static dyn GpuTable,
    known: Vec<Option<Named>>,
    /// Those that came with the open transaction.
    open: Vec<usize>,
    /// How many candidates have rows, and how many of them had when the open transaction began.
    candidates: usize,
    candidates_before: usize,
    code_objects: CodeObjects,
}

impl Names {
    /// Of the kernels of `table`.
    pub(super) fn new(table: &'static dyn GpuTable) -> Names {
        Names {
            table,
            known: Vec::new(),
            open: Vec::new(),
            candidates: 0,
            candidates_before: 0,
            code_objects: CodeObjects::new(table),
        }
    }

    /// A new session began, which has no ids yet.
    pub(super) fn forget(&mut self) {
        self.known.clear();
        self.open.clear();
        (self.candidates, self.candidates_before) = (0, 0);
        self.code_objects.forget();
    }

    /// The open transaction is in the file.
    pub(super) fn commit(&mut self) {
        self.open.clear();
        self.candidates_before = self.candidates;
        self.code_objects.commit();
    }

    /// The open transaction is not in the file, and neither are the ids that came with it.
    pub(super) fn roll_back(&mut self) {
        self.open.sort_unstable();
        self.code_objects.roll_back(&self.open);
        for place in self.open.drain(..) {
            self.known[place] = None;
        }
        self.candidates = self.candidates_before;
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
        let text = self.table.kernel(id).unwrap_or_default();
        let named = match text.replaces {
            None => enter(place, &text, appender)?,
            Some((original, candidate)) => {
                self.candidates(appender)?;
                let original = self.get(original, appender)?;
                let code_object = enter(place, &text, appender)?.code_object;
                let candidate = CandidateId(u64::from(candidate) + 1);
                Named { replacement: Some(Replacement { code_object, candidate }), ..original }
            }
        };
        self.known.resize(self.known.len().max(place + 1), None);
        self.known[place] = Some(named);
        self.open.push(place);
        if let (Some(_), Some(number)) = (text.code, text.code_object) {
            self.code_objects.add(place, CodeObjectId(place as u64 + 1), number);
        }
        Ok(named)
    }
}

impl Names {
    /// Whether there is more of candidates or code objects to be written.
    pub(super) fn has_more_files(&self) -> bool {
        !self.table.candidates(self.candidates).is_empty() || self.code_objects.has_more()
    }

    /// Writes what is known of candidates and of code objects, and not written yet.
    pub(super) fn files(&mut self, appender: &mut Appender) -> Result<(), Error> {
        self.candidates(appender)?;
        self.code_objects.write(appender)
    }

    fn candidates(&mut self, appender: &mut Appender) -> Result<(), Error> {
        for candidate in self.table.candidates(self.candidates) {
            self.candidates += 1;
            appender.candidate(&CandidateRow {
                id: CandidateId(self.candidates as u64),
                path: &candidate.path,
                sha256: &candidate.sha256,
                target: &candidate.target,
                loaded: candidate.loaded,
                outcome: candidate.outcome,
                reason: &candidate.reason,
            })?;
        }
        Ok(())
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
    Ok(Named { role: kernel.role, name, code_object, replacement: None, doubts: appender.doubts() })
}
