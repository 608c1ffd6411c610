//! The facts of one kernel as they are shown.

use rpd_codeobject::descriptor::KernelDescriptor;
use rpd_codeobject::occupancy::{Need, Occupancy, OccupancyLimit};
use rpd_codeobject::{Kernel, Target};
use serde::Serialize;

/// What whoever asks knows of a launch, in place of what the code object allows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Assumed {
    /// Work-items of a workgroup.
    pub workgroup: Option<u32>,
    /// Bytes of LDS that the launch adds.
    pub dynamic_lds: Option<u32>,
}

/// Launches of a kernel in one size that ran one build of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BuildLaunches {
    /// The build: none for the program's own kernel.
    #[serde(flatten)]
    pub candidate: Option<Candidate>,
    /// Work-items of a workgroup in each direction.
    pub workgroup: [u32; 3],
    /// LDS of a workgroup, what the launch added included; none where the trace does not say it of this build.
    pub lds: Option<u32>,
    /// How many.
    pub calls: u64,
    /// Sum of their durations.
    pub total_ns: u64,
}

/// A file of the kernel cache whose kernel ran in the place of the program's own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Candidate {
    /// The file.
    #[serde(rename = "candidate")]
    pub path: String,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
}

/// Work-items of a workgroup of that size.
#[must_use]
pub fn work_items(workgroup: [u32; 3]) -> u32 {
    workgroup.into_iter().fold(1, u32::saturating_mul)
}

/// A kernel as a row. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelFacts {
    /// Its name with parameters.
    pub kernel: String,
    /// Its mangled name; empty where only a trace tells of it.
    pub symbol: String,
    /// The processor and the features that it is for.
    pub target: String,
    /// For a directory: the file that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// None where a trace does not say it.
    #[serde(flatten)]
    pub needs: Option<KernelNeeds>,
    /// How many waves fit; `None` for a processor that is not known, and for needs that are not.
    pub occupancy: Option<Fit>,
    /// For a trace: how it was launched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launches: Option<BuildLaunches>,
    /// Where they were asked for, and the code object is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Vec<KernelArgument>>,
}

/// What a kernel needs of the hardware, as its code object says it. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelNeeds {
    /// Vector registers of a work-item, accumulation registers not included.
    pub vgpr: u32,
    /// Accumulation registers of a work-item.
    pub agpr: u32,
    /// Scalar registers of a wave.
    pub sgpr: u32,
    /// LDS of a workgroup, what the launch adds not included.
    pub lds: u32,
    /// Scratch of a work-item.
    pub scratch: u32,
    /// Whether it may use more scratch than that, as its depth of calls is not known.
    pub has_dynamic_stack: bool,
    /// Vector registers that are kept in scratch for want of registers.
    pub vgpr_spills: u32,
    /// Scalar registers that are kept elsewhere for want of registers.
    pub sgpr_spills: u32,
    /// Arguments, hidden ones included.
    pub kernarg: u32,
    /// Work-items of a wave.
    pub wavefront: u32,
    /// Most work-items of a workgroup; 0 where the code object does not say.
    pub max_workgroup: u32,
    /// The only size of workgroup that it runs in, where there is one.
    pub required_workgroup: Option<[u32; 3]>,
}

/// How many waves of a kernel a SIMD holds, and why not more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// Waves that a SIMD holds.
    pub waves: u32,
    /// Waves that a SIMD holds of a kernel that needs next to nothing.
    pub hardware: u32,
    /// What allows no more: `VGPR`, `SGPR`, `LDS`, `workgroup`; `hardware` where a SIMD is full.
    pub limited_by: Vec<&'static str>,
    /// Waves that vector registers would allow alone.
    pub by_vgpr: u32,
    /// Waves that scalar registers would allow alone.
    pub by_sgpr: u32,
    /// Waves that LDS would allow alone, in whole workgroups.
    pub by_lds: u32,
    /// Waves that whole workgroups of that size would allow alone.
    pub by_workgroup: u32,
    /// Work-items of the workgroup that this is for.
    pub workgroup: u32,
    /// Bytes of LDS of it.
    pub lds: u32,
    /// Whole workgroups that a CU holds, or a WGP where a workgroup may use both CUs of it.
    pub workgroups: u32,
}

/// An argument of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelArgument {
    /// In the source; compilers of HIP leave it out.
    pub name: Option<String>,
    /// Bytes from the start of the arguments.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// What is passed, in the words of the ABI: `by_value`, `global_buffer`, `hidden_block_count_x`.
    pub kind: String,
    /// Its type in the source; compilers of HIP leave it out.
    pub r#type: Option<String>,
    /// Where a pointer points: `global`, `local`, `generic`.
    pub address_space: Option<String>,
    /// What the kernel does through a pointer: `read_only`, `write_only`, `read_write`.
    pub access: Option<String>,
}

impl KernelFacts {
    /// Of a kernel of a code object for `target`; `descriptor` is that of the kernel, where it was found.
    pub fn of(
        kernel: &Kernel,
        descriptor: Option<&KernelDescriptor>,
        target: &Target,
        assumed: Assumed,
    ) -> KernelFacts {
        let mut need = Need::of(kernel, descriptor, target);
        need.lds = need.lds.saturating_add(assumed.dynamic_lds.unwrap_or(0));
        need.workgroup = assumed.workgroup.unwrap_or(need.workgroup);
        KernelFacts {
            kernel: kernel.demangled(),
            symbol: kernel.name.clone(),
            target: target.to_string(),
            file: None,
            needs: Some(KernelNeeds::of(kernel, target)),
            occupancy: fit(kernel, &need, target),
            launches: None,
            arguments: None,
        }
    }

    /// The same in these launches, but for what whoever asks says of them.
    pub(super) fn launched(
        kernel: &Kernel,
        descriptor: Option<&KernelDescriptor>,
        target: &Target,
        asked: Assumed,
        launches: BuildLaunches,
    ) -> KernelFacts {
        let workgroup = asked.workgroup.or(Some(work_items(launches.workgroup)));
        let added = launches.lds.map(|lds| lds.saturating_sub(kernel.group_segment_fixed_size));
        let dynamic_lds = asked.dynamic_lds.or(added);
        let facts = KernelFacts::of(kernel, descriptor, target, Assumed { workgroup, dynamic_lds });
        let occupancy = facts.occupancy.filter(|_| dynamic_lds.is_some());
        KernelFacts { occupancy, launches: Some(launches), ..facts }
    }

    /// Of a kernel of which only its launches are known.
    pub(super) fn unknown(kernel: &str, target: &str, launches: BuildLaunches) -> KernelFacts {
        KernelFacts {
            kernel: kernel.to_string(),
            symbol: String::new(),
            target: target.to_string(),
            file: None,
            needs: None,
            occupancy: None,
            launches: Some(launches),
            arguments: None,
        }
    }

    /// The same with the kernel's arguments.
    #[must_use]
    pub fn with_arguments(self, kernel: &Kernel) -> KernelFacts {
        KernelFacts { arguments: Some(KernelArgument::all(kernel)), ..self }
    }
}

impl KernelNeeds {
    fn of(kernel: &Kernel, target: &Target) -> KernelNeeds {
        KernelNeeds {
            vgpr: if target.has_one_register_file() {
                kernel.vgpr_count.saturating_sub(kernel.agpr_count)
            } else {
                kernel.vgpr_count
            },
            agpr: kernel.agpr_count,
            sgpr: kernel.sgpr_count,
            lds: kernel.group_segment_fixed_size,
            scratch: kernel.private_segment_fixed_size,
            has_dynamic_stack: kernel.uses_dynamic_stack,
            vgpr_spills: kernel.vgpr_spill_count,
            sgpr_spills: kernel.sgpr_spill_count,
            kernarg: kernel.kernarg_segment_size,
            wavefront: kernel.wavefront_size,
            max_workgroup: kernel.max_flat_workgroup_size,
            required_workgroup: kernel.reqd_workgroup_size,
        }
    }
}

impl KernelArgument {
    /// Those of a kernel.
    pub(super) fn all(kernel: &Kernel) -> Vec<KernelArgument> {
        let argument = |argument: &rpd_codeobject::Argument| KernelArgument {
            name: argument.name.clone(),
            offset: argument.offset,
            size: argument.size,
            kind: argument.value_kind.clone(),
            r#type: argument.type_name.clone(),
            address_space: argument.address_space.clone(),
            access: argument.access.clone(),
        };
        kernel.args.iter().map(argument).collect()
    }
}

/// How many waves fit of a kernel that needs `need`: none of a workgroup that it does not allow.
fn fit(kernel: &Kernel, need: &Need, target: &Target) -> Option<Fit> {
    let fit = Fit::of(&Occupancy::of(&target.processor, need)?, need);
    let is_allowed = match (kernel.reqd_workgroup_size, kernel.largest_workgroup()) {
        (_, None) => true,
        (Some(_), Some(only)) => need.workgroup == only,
        (None, Some(most)) => need.workgroup <= most,
    };
    if is_allowed {
        return Some(fit);
    }
    let limited_by = vec![OccupancyLimit::Workgroup.name()];
    Some(Fit { waves: 0, by_workgroup: 0, workgroups: 0, limited_by, ..fit })
}

impl Fit {
    fn of(occupancy: &Occupancy, need: &Need) -> Fit {
        let by = |wanted: OccupancyLimit| {
            let found = occupancy.allowed.iter().find(|(limit, _)| *limit == wanted);
            found.map_or(occupancy.hardware, |(_, waves)| *waves)
        };
        Fit {
            waves: occupancy.waves,
            hardware: occupancy.hardware,
            limited_by: occupancy.limits().into_iter().map(OccupancyLimit::name).collect(),
            by_vgpr: by(OccupancyLimit::Vgpr),
            by_sgpr: by(OccupancyLimit::Sgpr),
            by_lds: by(OccupancyLimit::Lds),
            by_workgroup: by(OccupancyLimit::Workgroup),
            workgroup: need.workgroup,
            lds: need.lds,
            workgroups: occupancy.workgroups,
        }
    }
}
