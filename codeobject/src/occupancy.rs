//! Occupancy: how many waves of a kernel a SIMD holds at once, and what keeps it from holding more.
//!
//! A SIMD executes one wave at a time and hides the waiting of one behind the work of others, so the number of waves that it holds
//! says how much waiting can be hidden. What a processor has is in `hardware`, each number with its source:
//!
//! - *BaseInfo*: `llvm/lib/Target/AMDGPU/Utils/AMDGPUBaseInfo.cpp` of LLVM, namespace `IsaInfo`; its units of LDS and its share of
//!   scalar registers for the trap handler as LLVM has them since 2026 (pull requests 201342, 205637 and 219495; until then it rounded
//!   neither, and reported a wave more than the hardware holds where these limit).
//! - *Features*: `AMDGPU.td` and `GCNProcessors.td` beside it: which processor has which features.
//! - *Usage*: `llvm/docs/AMDGPUUsage.rst`, the fields of kernel descriptors.
//! - *Mesa*: `ac_gpu_info.c` and `aco_ir.cpp`, where LDS is allotted in larger units than descriptors count in.

use crate::descriptor::KernelDescriptor;
use crate::{Kernel, Target};

/// Most work-items of a workgroup (BaseInfo, `getMaxFlatWorkGroupSize`).
const MAX_WORKGROUP: u32 = 1024;
/// SIMDs that a workgroup may be spread over: those of a CU up to gfx9, those of a WGP from gfx10 on (BaseInfo, `getEUsPerCU`).
const SIMDS: u32 = 4;
/// Workgroups of several waves that a CU holds: each needs a barrier (BaseInfo, `getMaxWorkGroupsPerCU`).
const BARRIERS: u32 = 16;

/// What a kernel takes of the hardware, before it is rounded up to units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Vector registers of a work-item. Where they share a file with accumulation registers, both together.
    pub vgprs: u32,
    /// Scalar registers of a wave.
    pub sgprs: u32,
    /// Bytes of LDS of a workgroup, static and dynamic.
    pub lds: u32,
    /// Work-items of a workgroup.
    pub workgroup: u32,
    /// Work-items of a wave: 32 or 64.
    pub wavefront_size: u32,
    /// From gfx10 on: a workgroup may use both CUs of a workgroup processor.
    pub workgroup_processor_mode: bool,
}

impl Need {
    /// What `kernel` takes in its largest workgroup: the one that it requires, or the most work-items that it allows.
    ///
    /// Registers are those of the descriptor, where it is known: the hardware allots what is written there, which is more than the
    /// metadata counts where the source asks for few waves (`amdgpu_waves_per_eu`).
    pub fn of(kernel: &Kernel, descriptor: Option<&KernelDescriptor>, target: &Target) -> Need {
        let allotted = descriptor.and_then(|descriptor| descriptor.registers(target));
        let (vgprs, sgprs) = match allotted {
            Some(registers) => (registers.vgprs, registers.sgprs),
            // Two files of one size, where they are not one.
            None => (kernel.vgpr_count.max(kernel.agpr_count), kernel.sgpr_count),
        };
        Need {
            vgprs,
            sgprs,
            lds: kernel.group_segment_fixed_size,
            workgroup: kernel.largest_workgroup().unwrap_or(MAX_WORKGROUP),
            wavefront_size: kernel.wavefront_size,
            workgroup_processor_mode: descriptor
                .map_or(kernel.workgroup_processor_mode, |descriptor| descriptor.workgroup_processor_mode),
        }
    }
}

/// What keeps a SIMD from holding more waves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OccupancyLimit {
    /// It holds as many as it can hold of any kernel.
    Hardware,
    /// Vector registers.
    Vgpr,
    /// Scalar registers.
    Sgpr,
    /// LDS.
    Lds,
    /// The size of the workgroups: as many whole ones as fit leave places empty.
    Workgroup,
}

impl OccupancyLimit {
    /// Its name in tables: `VGPR`, `workgroup`.
    pub fn name(self) -> &'static str {
        match self {
            OccupancyLimit::Hardware => "hardware",
            OccupancyLimit::Vgpr => "VGPR",
            OccupancyLimit::Sgpr => "SGPR",
            OccupancyLimit::Lds => "LDS",
            OccupancyLimit::Workgroup => "workgroup",
        }
    }
}

/// Waves of one kernel on one SIMD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupancy {
    /// Waves that a SIMD holds at once; on the fullest one, where workgroups do not fill all evenly.
    pub waves: u32,
    /// Waves that a SIMD holds of a kernel that needs next to nothing.
    pub hardware: u32,
    /// Waves that each of the others would allow alone, at most `hardware`.
    pub allowed: [(OccupancyLimit, u32); 4],
    /// Whole workgroups that a CU holds at once, or a WGP in workgroup processor mode. 0: a workgroup of that size cannot run.
    pub workgroups: u32,
}

impl Occupancy {
    /// Of a kernel that needs `need` on `processor` (`gfx90a`). `None` for a processor that this crate has no numbers of, and for a
    /// wave of a size that it does not have.
    pub fn of(processor: &str, need: &Need) -> Option<Occupancy> {
        let hardware = hardware(processor)?;
        let (vgprs, unit) = hardware.vector_registers(need.wavefront_size)?;
        let shared = if need.workgroup_processor_mode && hardware.has_workgroup_processors { 2 } else { 1 };
        let simds = if hardware.has_workgroup_processors { SIMDS / 2 * shared } else { SIMDS };
        let most = hardware.waves;

        let by_vgpr = (vgprs / whole_units(need.vgprs.max(1), unit)).min(most);
        let by_sgpr = match hardware.scalar_registers {
            Some(file) => {
                file.total / whole_units(need.sgprs.max(1), file.unit).saturating_add(file.trap_handler)
            }
            None => most,
        };
        let by_sgpr = by_sgpr.min(most);
        // How many whole workgroups there is room for, and what that makes for the fullest SIMD.
        let waves_of_workgroup = need.workgroup.max(1).div_ceil(need.wavefront_size);
        let places = most * simds;
        let by_places = match waves_of_workgroup {
            1 => places,
            waves => (places / waves).min(BARRIERS * shared),
        };
        let by_lds = match whole_units(need.lds, hardware.lds_unit) {
            0 => places,
            _ if need.lds > hardware.lds => 0,
            bytes => hardware.lds * shared / bytes,
        };
        let on_a_simd =
            |workgroups: u32| workgroups.saturating_mul(waves_of_workgroup).div_ceil(simds).min(most);
        let allowed = [
            (OccupancyLimit::Vgpr, by_vgpr),
            (OccupancyLimit::Sgpr, by_sgpr),
            (OccupancyLimit::Lds, on_a_simd(by_lds)),
            (OccupancyLimit::Workgroup, on_a_simd(by_places)),
        ];
        let waves = allowed.iter().map(|(_, waves)| *waves).min().unwrap_or(most);
        let by_registers = by_vgpr.min(by_sgpr) * simds / waves_of_workgroup;
        let workgroups = by_places.min(by_lds).min(by_registers);
        Some(Occupancy { waves, hardware: most, allowed, workgroups })
    }

    /// What allows the fewest waves: several where they are equal, [`OccupancyLimit::Hardware`] alone where a SIMD is full.
    pub fn limits(&self) -> Vec<OccupancyLimit> {
        if self.waves == self.hardware {
            return vec![OccupancyLimit::Hardware];
        }
        self.allowed.iter().filter(|(_, waves)| *waves == self.waves).map(|(limit, _)| *limit).collect()
    }
}

fn whole_units(number: u32, unit: u32) -> u32 {
    number.div_ceil(unit).saturating_mul(unit)
}

/// The scalar registers of a SIMD, where waves share them.
#[derive(Clone, Copy)]
struct ScalarFile {
    total: u32,
    unit: u32,
    /// What each wave has beside its own: the trap handler's, which the HSA runtime always has.
    trap_handler: u32,
}

/// What one SIMD of a processor has, and what its SIMDs share.
struct Hardware {
    /// Waves that a SIMD has places for.
    waves: u32,
    /// Vector registers of a SIMD for waves of 64, and the unit they are allotted in. Waves of 32 find twice as many, in twice the unit.
    vgprs: u32,
    vgpr_unit: u32,
    /// Whether waves may have 32 work-items.
    has_wave32: bool,
    scalar_registers: Option<ScalarFile>,
    /// Bytes of LDS of a CU, which one workgroup may have all of, and the unit it is allotted in.
    lds: u32,
    lds_unit: u32,
    /// Whether two CUs are a workgroup processor (WGP), with two SIMDs each.
    has_workgroup_processors: bool,
}

impl Hardware {
    /// Vector registers for waves of that size, and their unit.
    fn vector_registers(&self, wavefront_size: u32) -> Option<(u32, u32)> {
        match wavefront_size {
            64 => Some((self.vgprs, self.vgpr_unit)),
            32 if self.has_wave32 => Some((self.vgprs * 2, self.vgpr_unit * 2)),
            _ => None,
        }
    }
}

/// What a processor has; `None` where it is not known.
fn hardware(processor: &str) -> Option<Hardware> {
    // All of gfx9. BaseInfo: getMaxWavesPerEU, getTotalNumVGPRs, getVGPRAllocGranule; 800 scalar registers in units of 16
    // (getTotalNumSGPRs, getSGPRAllocGranule), of which the trap handler has TRAP_NUM_SGPRS = 16 of each wave. Features: 64 KB of LDS
    // (FeatureAddressableLocalMemorySize65536). Usage: GRANULATED_LDS_SIZE counts in 128 dwords.
    let gfx9 = Hardware {
        waves: 10,
        vgprs: 256,
        vgpr_unit: 4,
        has_wave32: false,
        scalar_registers: Some(ScalarFile { total: 800, unit: 16, trap_handler: 16 }),
        lds: 64 << 10,
        lds_unit: 512,
        has_workgroup_processors: false,
    };
    // BaseInfo: FeatureGFX90AInsts gives 8 waves, and 512 registers in units of 8, accumulation registers included.
    let gfx90a = Hardware { waves: 8, vgprs: 512, vgpr_unit: 8, ..gfx9 };
    // BaseInfo: 20 waves of gfx10; 512 registers in units of 4 for waves of 64. Scalar registers are no limit (getOccupancyWithNumSGPRs).
    let gfx10 = Hardware {
        waves: 20,
        vgprs: 512,
        vgpr_unit: 4,
        has_wave32: true,
        scalar_registers: None,
        lds: 64 << 10,
        lds_unit: 512,
        has_workgroup_processors: true,
    };
    // BaseInfo: FeatureGFX10_3Insts, which gfx11 and gfx12 have too, gives 16 waves and units of 8. Mesa: LDS in units of 1024 bytes.
    let gfx10_3 = Hardware { waves: 16, vgpr_unit: 8, lds_unit: 1024, ..gfx10 };
    // BaseInfo: Feature1_5xVGPRs gives 768 registers (1536 for waves of 32) in units of 12.
    let large_file = Hardware { vgprs: 768, vgpr_unit: 12, ..gfx10_3 };
    Some(match processor {
        "gfx900" | "gfx902" | "gfx904" | "gfx906" | "gfx909" | "gfx90c" | "gfx9-generic" => gfx9,
        // Its accumulation registers are a second file of the same size.
        "gfx908" => gfx9,
        "gfx90a" | "gfx940" | "gfx941" | "gfx942" => gfx90a,
        // A part for all of these and gfx950 (Features): the larger unit of the two.
        "gfx9-4-generic" => Hardware { lds_unit: 1280, ..gfx90a },
        // Features: FeatureAddressableLocalMemorySize163840. Usage: in units of 320 dwords.
        "gfx950" => Hardware { lds: 160 << 10, lds_unit: 1280, ..gfx90a },
        "gfx1010" | "gfx1011" | "gfx1012" | "gfx1013" | "gfx10-1-generic" => gfx10,
        "gfx1030" | "gfx1031" | "gfx1032" | "gfx1033" | "gfx1034" | "gfx1035" | "gfx1036"
        | "gfx10-3-generic" => gfx10_3,
        "gfx1102" | "gfx1103" | "gfx1150" | "gfx1152" | "gfx1153" | "gfx11-generic" => gfx10_3,
        // Features: FeatureISAVersion11_0_0, 11_0_1, 11_5_1 and 12.
        "gfx1100" | "gfx1101" | "gfx1151" | "gfx1200" | "gfx1201" | "gfx12-generic" => large_file,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
