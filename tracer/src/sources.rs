//! The sources, a folder each, and their list. No source knows another.

pub mod cuda;
pub mod hip;
pub mod hsa;
pub mod library;
pub mod monitor;
pub mod nvtx;
pub mod roctx;
pub mod rpd;

use rpd_transport::records::KernelId;
use rpd_transport::source::{
    CandidateText, CodeObjectText, GpuFacts, GpuTable, KernelText, Source, ValidationText,
};

use crate::gpu::{code_objects, kernels, selection, timing, version};
use crate::hsa_runtime::agent::Gpu;
use crate::hsa_runtime::known;
use crate::intercept::{self, validate};

/// All of them, in the order in which they are told of anything: markers, which wait for nothing; then the runtime before what is built
/// upon it.
pub(crate) static ALL: &[&dyn Source] = &[
    &roctx::Roctx,
    &nvtx::Nvtx,
    &rpd::Rpd,
    &hsa::HsaSource,
    &hip::Hip,
    &cuda::Cuda,
    &library::LibraryCalls,
    &monitor::Monitor,
];

/// What is known of GPUs and kernels, whichever source found it out.
pub(crate) struct KnownGpus;

impl GpuTable for KnownGpus {
    fn kernel(&self, id: KernelId) -> Option<KernelText> {
        kernels::text(id)
    }

    fn candidates(&self, from: usize) -> Vec<CandidateText> {
        intercept::outcomes(from)
    }

    fn validation(&self, gpu: u32, queue: u32, sequence: u64) -> Vec<ValidationText> {
        validate::result((gpu, queue, sequence))
    }

    fn report_header(&self) -> Option<&'static str> {
        intercept::report_header()
    }

    fn code_objects(&self, from: usize) -> Vec<CodeObjectText> {
        code_objects::rows(from)
    }

    fn code_object(&self, number: u32) -> Option<usize> {
        code_objects::row(number)
    }

    fn is_logged(&self, name: &str) -> bool {
        selection::has(name)
    }

    fn gpus(&self) -> Vec<GpuFacts> {
        let facts = |gpu: &Gpu| GpuFacts {
            index: gpu.index,
            name: gpu.name.clone(),
            target: gpu.target.clone(),
            bdf: gpu.bdf.clone(),
            uuid: gpu.uuid.clone(),
        };
        known::gpus().iter().map(facts).chain(ALL.iter().flat_map(|source| source.gpus())).collect()
    }

    fn versions(&self) -> Vec<(&'static str, String)> {
        version::all().into_iter().chain(ALL.iter().flat_map(|source| source.versions())).collect()
    }

    fn timing(&self) -> Vec<&'static str> {
        let chosen = timing::chosen().map(timing::Timing::name);
        chosen.into_iter().chain(ALL.iter().filter_map(|source| source.timing())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_sources_have_one_number_or_name() {
        for (place, source) in ALL.iter().enumerate() {
            let same =
                |other: &&&dyn Source| other.number() == source.number() || other.name() == source.name();
            assert_eq!(ALL.iter().position(|other| same(&other)), Some(place), "{}", source.name());
        }
    }
}
