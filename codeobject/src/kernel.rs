//! A kernel and its arguments, as a code object declares them.

use crate::demangle;

/// One kernel of a code object.
///
/// Where the object has no metadata note, counts come from the kernel descriptor; what a descriptor does not hold
/// (spills, workgroup limit, arguments) is then 0 or empty: see [`crate::FactsFrom`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kernel {
    /// ELF symbol of the kernel descriptor: `_Z4vaddPf.kd`. The runtime knows the kernel by it.
    pub symbol: String,
    /// Mangled name as in the source's object file, no suffix: `_Z4vaddPf`.
    pub name: String,
    /// Bytes of arguments, explicit and hidden ones. May be no multiple of 8.
    pub kernarg_segment_size: u32,
    /// Bytes. Alignment of the arguments' buffer.
    pub kernarg_segment_align: u32,
    /// Bytes of static LDS per workgroup. Dynamic LDS comes on top in the dispatch packet.
    pub group_segment_fixed_size: u32,
    /// Bytes of scratch per work-item. A kernel with a dynamic stack may use more.
    pub private_segment_fixed_size: u32,
    /// Vector registers. On gfx90a and gfx94x/gfx950, where both share one file, accumulation registers included.
    pub vgpr_count: u32,
    /// Accumulation registers; 0 where there are none.
    pub agpr_count: u32,
    /// Scalar registers.
    pub sgpr_count: u32,
    /// Vector registers the compiler had to keep in scratch.
    pub vgpr_spill_count: u32,
    /// Scalar registers the compiler had to keep elsewhere.
    pub sgpr_spill_count: u32,
    /// Work-items per wave: 32 or 64.
    pub wavefront_size: u32,
    /// Most work-items a workgroup may have.
    pub max_flat_workgroup_size: u32,
    /// Workgroup size the kernel insists on, if it does.
    pub reqd_workgroup_size: Option<[u32; 3]>,
    /// What it was written in, as compilers of HIP and OpenCL say it. Triton's and other generators of kernels say nothing.
    pub language: Option<String>,
    /// The kernel calls through pointers or recurses, so its scratch is not known beforehand.
    pub uses_dynamic_stack: bool,
    /// From gfx10 on: a workgroup may use both CUs of a workgroup processor.
    pub workgroup_processor_mode: bool,
    /// In the order of their offsets, hidden ones last.
    pub args: Vec<Argument>,
}

impl Kernel {
    /// A kernel of which nothing but its names is known.
    pub(crate) fn named(symbol: String, name: String) -> Kernel {
        Kernel {
            symbol,
            name,
            kernarg_segment_size: 0,
            kernarg_segment_align: 0,
            group_segment_fixed_size: 0,
            private_segment_fixed_size: 0,
            vgpr_count: 0,
            agpr_count: 0,
            sgpr_count: 0,
            vgpr_spill_count: 0,
            sgpr_spill_count: 0,
            wavefront_size: 0,
            max_flat_workgroup_size: 0,
            reqd_workgroup_size: None,
            language: None,
            uses_dynamic_stack: false,
            workgroup_processor_mode: false,
            args: Vec::new(),
        }
    }

    /// The name for people, with parameters: `vadd(float*)`.
    pub fn demangled(&self) -> String {
        demangle(&self.name)
    }

    /// Work-items of the largest workgroup that it runs in: of the one that it insists on, or the most it allows. `None` where neither
    /// is known.
    pub fn largest_workgroup(&self) -> Option<u32> {
        let required = self.reqd_workgroup_size.map(|[x, y, z]| x.saturating_mul(y).saturating_mul(z));
        required.or(Some(self.max_flat_workgroup_size)).filter(|size| *size > 0)
    }
}

/// One argument of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Argument {
    /// Name in the source; compilers of HIP leave it out.
    pub name: Option<String>,
    /// Type in the source; compilers of HIP leave it out.
    pub type_name: Option<String>,
    /// Bytes from the start of the arguments.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// What is passed: `by_value`, `global_buffer`, `hidden_block_count_x`, ... in the words of the ABI.
    pub value_kind: String,
    /// Where a pointer points: `global`, `local`, `generic`, ...
    pub address_space: Option<String>,
    /// What the source promises to do through it: `read_only`, `write_only`, `read_write`.
    pub access: Option<String>,
    /// The pointed-to data is const.
    pub is_const: bool,
}

impl Argument {
    /// Whether the compiler added it, for the runtime to fill in.
    pub fn is_hidden(&self) -> bool {
        self.value_kind.starts_with("hidden_")
    }
}
