//! The names of kernels in the file: name, string id, code object id. Worked out once per kernel.

use rpd_schema::{
    Appender, CandidateId, CandidateRow, CodeObjectId, CodeObjectRow, Error, ExtCodeObjectRow, OpId,
    StringId, ValidationRow,
};

use super::code_objects::CodeObjects;
use super::instrumented::Instrumented;
use crate::records::{Dispatch, KernelId};
use crate::source::{GpuTable, KernelText, Role};

/// A kernel as rows refer to it.
#[derive(Clone, Copy)]
pub(super) struct NamedKernel {
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
    /// It is an instrumented one.
    pub(super) is_instrumented: bool,
}

pub(super) struct Names {
    table: &'static dyn GpuTable,
    known: Vec<Option<NamedKernel>>,
    /// Those that came with the open transaction.
    open: Vec<usize>,
    /// How many candidates have rows, and how many of them had when the open transaction began.
    candidates: usize,
    candidates_before: usize,
    code_objects: CodeObjects,
    pub(super) instrumented: Instrumented,
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
            instrumented: Instrumented::default(),
        }
    }

    /// A new session began, which has no ids yet.
    pub(super) fn forget(&mut self) {
        self.known.clear();
        self.open.clear();
        (self.candidates, self.candidates_before) = (0, 0);
        self.code_objects.forget();
        self.instrumented.forget();
    }

    /// The open transaction is in the file.
    pub(super) fn commit(&mut self) {
        self.open.clear();
        self.candidates_before = self.candidates;
        self.code_objects.commit();
        self.instrumented.commit();
    }

    /// The open transaction is not in the file, and neither are the ids that came with it.
    pub(super) fn roll_back(&mut self) {
        self.open.sort_unstable();
        self.code_objects.roll_back(&self.open);
        for place in self.open.drain(..) {
            self.known[place] = None;
        }
        self.candidates = self.candidates_before;
        self.instrumented.roll_back();
    }

    /// The kernel numbered `id`; writes its code object's rows the first time.
    pub(super) fn get(&mut self, id: KernelId, appender: &mut Appender) -> Result<NamedKernel, Error> {
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
                let is_instrumented = text.is_instrumented;
                NamedKernel {
                    replacement: Some(Replacement { code_object, candidate, is_instrumented }),
                    ..original
                }
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

    /// Writes what is known of candidates, code objects and instrumented dispatches, and not written yet. `ends`: no other operation will
    /// have a row.
    pub(super) fn files(&mut self, appender: &mut Appender, ends: bool) -> Result<(), Error> {
        self.candidates(appender)?;
        self.code_objects.write(appender)?;
        for place in self.instrumented.ready(ends) {
            let name = self.get(self.instrumented.kernel(place), appender)?.name;
            self.instrumented.write(place, name, appender)?;
        }
        Ok(())
    }

    /// Writes what was compared before that dispatch, which was replaced.
    pub(super) fn validation(
        &self,
        appender: &mut Appender,
        op: OpId,
        dispatch: &Dispatch,
    ) -> Result<(), Error> {
        for found in self.table.validation(dispatch.gpu, dispatch.queue, dispatch.sequence) {
            appender.validation(&ValidationRow {
                op,
                argument: found.argument,
                offset: found.offset,
                compared: found.compared,
                elements: found.elements,
                written: found.written,
                different: found.different,
                first: found.first,
                original: &found.values[0],
                candidate: &found.values[1],
                largest: &found.largest,
                reason: &found.reason,
            })?;
        }
        Ok(())
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

fn enter(place: usize, kernel: &KernelText, appender: &mut Appender) -> Result<NamedKernel, Error> {
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
    Ok(NamedKernel { role: kernel.role, name, code_object, replacement: None, doubts: appender.doubts() })
}
