//! The check whether a kernel can run in the place of another one, and what its launch then needs.
//!
//! Both have the same explicit arguments. What may differ is made right: hidden arguments are copied by what they are or worked out
//! of the launch (code objects of version 4 and 5 lay them out differently), and LDS and scratch are those of the kernel that runs,
//! with the dynamic LDS that the application asked for. A build of Triton's gets the workgroups and the dynamic LDS that it was compiled
//! for. An instrumented kernel has one argument more, the last: the address of what it streams its messages into.

use std::fmt;

use crate::{Argument, Kernel, TritonBuild};

/// Bytes of arguments that a kernel may have: far more than compilers accept.
pub(crate) const MOST_ARGUMENTS: u32 = 1 << 16;

/// How one kernel runs in the place of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    original_group_segment: u32,
    group_segment: u32,
    private_segment: u32,
    required_workgroup: Option<[u32; 3]>,
    max_workgroup: u32,
    arguments: Arguments,
    triton: Option<TritonLaunch>,
    message_buffer: Option<u32>,
}

/// How a build of Triton's is launched in the place of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TritonLaunch {
    /// Work-items of a workgroup: of the application's kernel, and of the one that runs.
    workgroups: (u32, u32),
    /// Dynamic LDS, bytes.
    lds: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Arguments {
    /// Those that the application made.
    Same,
    /// So many bytes, filled by these steps. The application's have `source` bytes.
    Rebuilt { size: u32, source: u32, steps: Vec<Step> },
}

/// Where a part of the rebuilt arguments comes from. Offsets and lengths are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Copy { from: u32, to: u32, length: u32 },
    BlockCount { axis: usize, to: u32 },
    GroupSize { axis: usize, to: u32 },
    Remainder { axis: usize, to: u32 },
    GridDimensions { to: u32 },
    DynamicLds { to: u32 },
}

/// A launch as its dispatch packet has it (HSA 1.2 §2.9.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Work-items.
    pub grid: [u32; 3],
    /// Work-items of a workgroup.
    pub workgroup: [u16; 3],
    /// Dimensions, 1 to 3.
    pub dimensions: u16,
    /// Static and dynamic LDS of a workgroup, bytes.
    pub group_segment: u32,
    /// Scratch of a work-item, bytes.
    pub private_segment: u32,
}

/// Why a kernel cannot run in the place of another: the values of both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch(String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

impl Plan {
    /// To run `candidate` where `original` is launched. Both have been read from metadata, with their arguments; `build` is what Triton
    /// says of the candidate.
    ///
    /// # Errors
    /// What cannot be made right.
    pub fn new(original: &Kernel, candidate: &Kernel, build: Option<&TritonBuild>) -> Result<Plan, Mismatch> {
        if original.wavefront_size != candidate.wavefront_size {
            return Err(Mismatch(format!(
                "its wavefronts have {} lanes, those of the application's kernel {}",
                candidate.wavefront_size, original.wavefront_size
            )));
        }
        compare_explicit(original, candidate)?;
        let triton = match build {
            Some(build) => Some(of_triton(original, build)?),
            None => {
                is_as_large(original, candidate)?;
                None
            }
        };
        Ok(Plan {
            original_group_segment: original.group_segment_fixed_size,
            group_segment: candidate.group_segment_fixed_size,
            private_segment: candidate.private_segment_fixed_size,
            required_workgroup: candidate.reqd_workgroup_size,
            max_workgroup: candidate.max_flat_workgroup_size,
            arguments: arguments(original, candidate)?,
            triton,
            message_buffer: None,
        })
    }

    /// To run other code of `kernel` itself, with the same arguments and memory.
    pub fn same(kernel: &Kernel) -> Plan {
        Plan {
            original_group_segment: kernel.group_segment_fixed_size,
            group_segment: kernel.group_segment_fixed_size,
            private_segment: kernel.private_segment_fixed_size,
            required_workgroup: None,
            max_workgroup: 0,
            arguments: Arguments::Same,
            triton: None,
            message_buffer: None,
        }
    }

    /// To run `instrumented`, a kernel with one more pointer behind the arguments of `original`, where that is launched.
    ///
    /// # Errors
    /// What cannot be made right.
    pub fn instrumented(original: &Kernel, instrumented: &Kernel) -> Result<Plan, Mismatch> {
        let mut plain = instrumented.clone();
        let last = plain.args.iter().rposition(|argument| !argument.is_hidden());
        let pointer = last.map(|last| plain.args.remove(last));
        let Some(Argument { offset, size: 8, .. }) = pointer else {
            return Err(Mismatch("its last argument is no pointer to the memory for its messages".into()));
        };
        let size = instrumented.kernarg_segment_size;
        if offset.checked_add(8).is_none_or(|end| end > size) {
            return Err(Mismatch(format!("its last argument reaches beyond the {size} bytes that it has")));
        }
        let mut plan = Plan::new(original, &plain, None)?;
        plan.arguments = rebuilt(original, &plain)?;
        plan.message_buffer = Some(offset);
        Ok(plan)
    }

    /// Where the arguments of an instrumented kernel have the address of the memory for its messages, in bytes from their start.
    pub fn message_buffer(&self) -> Option<u32> {
        self.message_buffer
    }

    /// The launch as the kernel needs it, where a workgroup may have `most_lds` bytes of LDS.
    ///
    /// # Errors
    /// Why the kernel cannot run in this launch.
    #[inline]
    pub fn fit(&self, launch: &Launch, most_lds: u32) -> Result<Launch, Mismatch> {
        let mut fitted = *launch;
        let mut dynamic = launch.group_segment.saturating_sub(self.original_group_segment);
        if let Some(triton) = &self.triton {
            (fitted.grid[0], fitted.workgroup[0]) = triton.geometry(launch)?;
            dynamic = triton.lds;
        }
        if let Some(required) =
            self.required_workgroup.filter(|size| *size != fitted.workgroup.map(u32::from))
        {
            return Err(Mismatch(format!(
                "it requires workgroups of {}, the launch has {}",
                extent(required),
                extent(fitted.workgroup.map(u32::from))
            )));
        }
        let items: u64 = fitted.workgroup.iter().map(|size| u64::from(*size)).product();
        if self.max_workgroup != 0 && items > u64::from(self.max_workgroup) {
            return Err(Mismatch(format!(
                "its workgroups have {} work-items at most, those of the launch {items}",
                self.max_workgroup
            )));
        }
        fitted.group_segment = self.group_segment.saturating_add(dynamic);
        if fitted.group_segment > most_lds {
            return Err(Mismatch(format!(
                "it needs {} bytes of LDS with the {dynamic} that the launch adds, a workgroup has {most_lds}",
                fitted.group_segment
            )));
        }
        fitted.private_segment = launch.private_segment.max(self.private_segment);
        Ok(fitted)
    }

    /// Bytes of arguments that must be made for a launch; none where the application's serve.
    pub fn rebuilt_size(&self) -> Option<u32> {
        match self.arguments {
            Arguments::Same => None,
            Arguments::Rebuilt { size, .. } => Some(size),
        }
    }

    /// How many bytes of the application's arguments [`Plan::rebuild`] reads.
    pub fn source_size(&self) -> u32 {
        match self.arguments {
            Arguments::Same => 0,
            Arguments::Rebuilt { source, .. } => source,
        }
    }

    /// Makes the arguments of `launch`, as [`Plan::fit`] has it, in `arguments` ([`Plan::rebuilt_size`] bytes) of the application's `source`
    /// ([`Plan::source_size`] bytes). What does not fit is left out.
    pub fn rebuild(&self, launch: &Launch, source: &[u8], arguments: &mut [u8]) {
        let Arguments::Rebuilt { steps, .. } = &self.arguments else { return };
        arguments.fill(0);
        for step in steps {
            match *step {
                Step::Copy { from, to, length } => {
                    let range = |start: u32| start as usize..start as usize + length as usize;
                    if let (Some(to), Some(from)) = (arguments.get_mut(range(to)), source.get(range(from))) {
                        to.copy_from_slice(from);
                    }
                }
                Step::BlockCount { axis, to } => {
                    let size = u32::from(launch.workgroup[axis]).max(1);
                    put(arguments, to, &(launch.grid[axis] / size).to_le_bytes());
                }
                Step::GroupSize { axis, to } => put(arguments, to, &launch.workgroup[axis].to_le_bytes()),
                Step::Remainder { axis, to } => {
                    let size = u32::from(launch.workgroup[axis]).max(1);
                    put(arguments, to, &((launch.grid[axis] % size) as u16).to_le_bytes());
                }
                Step::GridDimensions { to } => put(arguments, to, &launch.dimensions.to_le_bytes()),
                Step::DynamicLds { to } => {
                    let dynamic = launch.group_segment.saturating_sub(self.group_segment);
                    put(arguments, to, &dynamic.to_le_bytes());
                }
            }
        }
    }
}

impl TritonLaunch {
    /// Work-items of the grid and of a workgroup in the first dimension, for as many programs as the application launches.
    fn geometry(&self, launch: &Launch) -> Result<(u32, u16), Mismatch> {
        let (theirs, ours) = self.workgroups;
        let [x, y, z] = launch.workgroup.map(u32::from);
        if (x, y, z) != (theirs, 1, 1) || !launch.grid[0].is_multiple_of(theirs) {
            return Err(Mismatch(format!(
                "Triton launches the application's kernel with whole workgroups of {theirs}x1x1, this launch has {} in a grid of {}",
                extent([x, y, z]),
                extent(launch.grid)
            )));
        }
        let programs = launch.grid[0] / theirs;
        let grid = programs.checked_mul(ours).zip(u16::try_from(ours).ok());
        grid.ok_or_else(|| {
            Mismatch(format!("{programs} programs with workgroups of {ours} are too many for a launch"))
        })
    }
}

/// How a build of Triton's is launched where the application launches another one of the same program.
fn of_triton(original: &Kernel, build: &TritonBuild) -> Result<TritonLaunch, Mismatch> {
    if let Some(obstacle) = &build.obstacle {
        return Err(Mismatch(obstacle.clone()));
    }
    // Triton's compiler declares as the largest workgroup the one that its launcher uses.
    match original.max_flat_workgroup_size {
        0 => Err(Mismatch("the application's kernel does not say with which workgroups it runs".into())),
        theirs => Ok(TritonLaunch { workgroups: (theirs, build.workgroup), lds: build.lds }),
    }
}

/// Generators of kernels, which do not say a language, compile a kernel for workgroups of one size, the largest it allows.
fn is_as_large(original: &Kernel, candidate: &Kernel) -> Result<(), Mismatch> {
    let (theirs, ours) = (original.max_flat_workgroup_size, candidate.max_flat_workgroup_size);
    let is_known = original.language.is_none() && candidate.language.is_none() && theirs != 0 && ours != 0;
    if !is_known || theirs == ours {
        return Ok(());
    }
    Err(Mismatch(format!(
        "it was compiled for workgroups of {ours}, the application's kernel for {theirs}; with Triton's {}.json beside it, launches would be made to fit",
        candidate.name
    )))
}

fn put(arguments: &mut [u8], to: u32, value: &[u8]) {
    if let Some(place) = arguments.get_mut(to as usize..to as usize + value.len()) {
        place.copy_from_slice(value);
    }
}

fn extent(size: [u32; 3]) -> String {
    format!("{}x{}x{}", size[0], size[1], size[2])
}

/// Explicit arguments must agree in place, size and kind, and in type where both say one.
fn compare_explicit(original: &Kernel, candidate: &Kernel) -> Result<(), Mismatch> {
    let explicit = |kernel: &Kernel| -> Vec<Argument> {
        kernel.args.iter().filter(|argument| !argument.is_hidden()).cloned().collect()
    };
    let (theirs, ours) = (explicit(original), explicit(candidate));
    if theirs.len() != ours.len() {
        return Err(Mismatch(format!(
            "it has {} arguments, the application's kernel {}",
            ours.len(),
            theirs.len()
        )));
    }
    for (number, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
        let differs = |what: &str, ours: &str, theirs: &str| {
            let number = number + 1;
            Err(Mismatch(format!(
                "its argument {number} has {what} {ours}, that of the application's kernel {theirs}"
            )))
        };
        if ours.offset != theirs.offset {
            return differs("offset", &ours.offset.to_string(), &theirs.offset.to_string());
        }
        if ours.size != theirs.size {
            return differs("size", &ours.size.to_string(), &theirs.size.to_string());
        }
        if ours.value_kind != theirs.value_kind {
            return differs("kind", &ours.value_kind, &theirs.value_kind);
        }
        let said = [
            ("type", &ours.type_name, &theirs.type_name),
            ("address space", &ours.address_space, &theirs.address_space),
        ];
        for (what, ours, theirs) in said {
            if let (Some(ours), Some(theirs)) = (ours, theirs)
                && ours != theirs
            {
                return differs(what, ours, theirs);
            }
        }
    }
    Ok(())
}

/// Whether an argument lies within so many bytes.
fn is_in(argument: &Argument, size: u32) -> bool {
    argument.offset.checked_add(argument.size).is_some_and(|end| end <= size)
}

/// How the arguments of `candidate` are made of those of `original`.
fn arguments(original: &Kernel, candidate: &Kernel) -> Result<Arguments, Mismatch> {
    let (source, size) = (original.kernarg_segment_size, candidate.kernarg_segment_size);
    if size > MOST_ARGUMENTS || source > MOST_ARGUMENTS {
        return Err(Mismatch(format!("it has {size} bytes of arguments, the application's kernel {source}")));
    }
    let hidden = |argument: &&Argument| argument.is_hidden() && argument.value_kind != "hidden_none";
    if let Some(outside) = candidate.args.iter().find(|argument| !is_in(argument, size)) {
        return Err(Mismatch(format!(
            "its argument at {} reaches beyond the {size} bytes that it has",
            outside.offset
        )));
    }
    let same = |argument: &Argument| {
        let is_same = |other: &Argument| {
            (other.offset, other.size, &other.value_kind)
                == (argument.offset, argument.size, &argument.value_kind)
        };
        original.args.iter().any(is_same)
    };
    match candidate.args.iter().filter(hidden).all(same) {
        true => Ok(Arguments::Same),
        false => rebuilt(original, candidate),
    }
}

/// The steps that make the arguments of `candidate` of those of `original`, whose places have been looked at.
fn rebuilt(original: &Kernel, candidate: &Kernel) -> Result<Arguments, Mismatch> {
    let (source, size) = (original.kernarg_segment_size, candidate.kernarg_segment_size);
    let mut steps = Vec::new();
    for argument in candidate.args.iter().filter(|argument| argument.value_kind != "hidden_none") {
        let theirs = original.args.iter().find(|other| match argument.is_hidden() {
            true => other.value_kind == argument.value_kind,
            false => other.offset == argument.offset && !other.is_hidden(),
        });
        let to = argument.offset;
        match theirs.filter(|theirs| theirs.size == argument.size && is_in(theirs, source)) {
            Some(theirs) => steps.push(Step::Copy { from: theirs.offset, to, length: argument.size }),
            None => steps.extend(worked_out(argument)?),
        }
    }
    Ok(Arguments::Rebuilt { size, source, steps })
}

/// A hidden argument that the application's kernel does not have.
fn worked_out(argument: &Argument) -> Result<Option<Step>, Mismatch> {
    let to = argument.offset;
    let kind = argument.value_kind.as_str();
    let axis = |prefix: &str| {
        let axis = kind.strip_prefix(prefix)?;
        ["x", "y", "z"].iter().position(|name| *name == axis)
    };
    if let Some(axis) = axis("hidden_block_count_") {
        return Ok(Some(Step::BlockCount { axis, to }));
    }
    if let Some(axis) = axis("hidden_group_size_") {
        return Ok(Some(Step::GroupSize { axis, to }));
    }
    if let Some(axis) = axis("hidden_remainder_") {
        return Ok(Some(Step::Remainder { axis, to }));
    }
    match kind {
        "hidden_grid_dims" => Ok(Some(Step::GridDimensions { to })),
        "hidden_dynamic_lds_size" => Ok(Some(Step::DynamicLds { to })),
        // HIP passes 0 for these in every launch that is not cooperative and is not made by a kernel.
        "hidden_multigrid_sync_arg" | "hidden_default_queue" | "hidden_completion_action" => Ok(None),
        _ if axis("hidden_global_offset_").is_some() => Ok(None),
        _ => Err(Mismatch(format!("it needs {kind}, which the application's kernel does not have"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(kind: &str, offset: u32, size: u32) -> Argument {
        Argument { value_kind: kind.into(), offset, size, ..Argument::default() }
    }

    /// A kernel with a pointer and an int, and these arguments behind them.
    fn kernel(bytes: u32, hidden: &[(&str, u32, u32)]) -> Kernel {
        let mut args = vec![argument("global_buffer", 0, 8), argument("by_value", 8, 4)];
        args.extend(
            hidden.iter().map(|(kind, offset, size)| argument(&format!("hidden_{kind}"), *offset, *size)),
        );
        Kernel { wavefront_size: 64, kernarg_segment_size: bytes, args, ..Kernel::default() }
    }

    const LAUNCH: Launch = Launch {
        grid: [1000, 6, 7],
        workgroup: [64, 2, 1],
        dimensions: 3,
        group_segment: 1000,
        private_segment: 16,
    };

    fn why(original: &Kernel, candidate: &Kernel) -> String {
        Plan::new(original, candidate, None).unwrap_err().to_string()
    }

    #[test]
    fn what_differs_is_named_with_both_values() {
        let original = kernel(12, &[]);
        let changed = |change: &dyn Fn(&mut Kernel)| {
            let mut candidate = original.clone();
            change(&mut candidate);
            why(&original, &candidate)
        };
        let lanes = changed(&|kernel| kernel.wavefront_size = 32);
        assert_eq!(lanes, "its wavefronts have 32 lanes, those of the application's kernel 64");
        assert!(changed(&|kernel| kernel.args.truncate(1)).starts_with("it has 1 arguments"));
        for (changed, what) in [
            (changed(&|kernel| kernel.args[1].offset = 12), "offset 12, that of the application's kernel 8"),
            (changed(&|kernel| kernel.args[1].size = 8), "size 8, that of the application's kernel 4"),
            (changed(&|kernel| kernel.args[0].value_kind = "image".into()), "kind image"),
        ] {
            assert!(changed.contains(what), "{changed}");
        }
        // A type counts where both say one.
        let typed = |name: &str| {
            let mut typed = original.clone();
            typed.args[0].type_name = Some(name.into());
            typed
        };
        assert!(Plan::new(&original, &typed("float*"), None).is_ok());
        assert!(why(&typed("int*"), &typed("float*")).contains("type float*"));
        let outside = changed(&|kernel| kernel.kernarg_segment_size = 10);
        assert_eq!(outside, "its argument at 8 reaches beyond the 10 bytes that it has");
    }

    #[test]
    fn arguments_that_serve_are_the_applications() {
        let four = kernel(72, &[("global_offset_x", 16, 8), ("none", 24, 8), ("hostcall_buffer", 40, 8)]);
        let fewer = kernel(48, &[("hostcall_buffer", 40, 8), ("none", 16, 8)]);
        assert_eq!(Plan::new(&four, &fewer, None).unwrap().rebuilt_size(), None);
        assert_eq!(Plan::new(&four, &kernel(12, &[]), None).unwrap().rebuilt_size(), None);
    }

    #[test]
    fn hidden_arguments_are_copied_by_what_they_are_or_worked_out() {
        let four = kernel(72, &[("global_offset_x", 16, 8), ("hostcall_buffer", 40, 8)]);
        let five = kernel(
            280,
            &[
                ("block_count_x", 16, 4),
                ("block_count_z", 24, 4),
                ("group_size_y", 30, 2),
                ("remainder_x", 34, 2),
                ("global_offset_x", 56, 8),
                ("grid_dims", 80, 2),
                ("hostcall_buffer", 96, 8),
                ("multigrid_sync_arg", 104, 8),
                ("dynamic_lds_size", 136, 4),
            ],
        );
        let mut original = four.clone();
        original.group_segment_fixed_size = 200;
        let plan = Plan::new(&original, &five, None).unwrap();
        assert_eq!((plan.rebuilt_size(), plan.source_size()), (Some(280), 72));
        let source: Vec<u8> = (1..=72).collect();
        let mut made = vec![0xff; 280];
        let fitted = plan.fit(&LAUNCH, 65536).unwrap();
        plan.rebuild(&fitted, &source, &mut made);
        let word = |at: usize| u32::from_le_bytes(made[at..at + 4].try_into().unwrap());
        let half = |at: usize| u16::from_le_bytes(made[at..at + 2].try_into().unwrap());
        assert_eq!(made[..12], source[..12]);
        assert_eq!((word(16), word(20), word(24)), (15, 0, 7), "whole workgroups; what is not listed is 0");
        assert_eq!((half(30), half(34), half(80), word(136)), (2, 1000 % 64, 3, 800));
        assert_eq!((&made[56..64], &made[96..104]), (&source[16..24], &source[40..48]));
        assert_eq!(made[104..112], [0; 8]);
        // Less than there should be is left out, never read beyond.
        plan.rebuild(&fitted, &source[..10], &mut made[..20]);
        assert_eq!(&made[..8], &source[..8]);

        assert_eq!(
            why(&kernel(12, &[]), &kernel(24, &[("heap_v1", 16, 8)])),
            "it needs hidden_heap_v1, which the application's kernel does not have"
        );
    }

    /// The kernel with one more pointer behind its explicit arguments, its hidden ones moved up.
    fn instrumented(bytes: u32, hidden: &[(&str, u32, u32)]) -> Kernel {
        let mut kernel = kernel(bytes, hidden);
        kernel.args.insert(2, argument("global_buffer", 16, 8));
        kernel
    }

    #[test]
    fn an_instrumented_kernel_gets_its_arguments_and_one_more() {
        let original = kernel(72, &[("global_offset_x", 16, 8), ("hostcall_buffer", 40, 8)]);
        let more = instrumented(80, &[("global_offset_x", 24, 8), ("hostcall_buffer", 48, 8)]);
        let plan = Plan::instrumented(&original, &more).unwrap();
        assert_eq!(
            (plan.rebuilt_size(), plan.source_size(), plan.message_buffer()),
            (Some(80), 72, Some(16))
        );
        let source: Vec<u8> = (1..=72).collect();
        let mut made = vec![0xff; 80];
        plan.rebuild(&plan.fit(&LAUNCH, 65536).unwrap(), &source, &mut made);
        assert_eq!((&made[..12], &made[12..24]), (&source[..12], &[0; 12][..]));
        assert_eq!((&made[24..32], &made[48..56]), (&source[16..24], &source[40..48]));

        // Of a compiler that lists no hidden arguments where the other's kernel reads some.
        let five = instrumented(280, &[("block_count_x", 24, 4), ("group_size_x", 36, 2)]);
        let plan = Plan::instrumented(&kernel(12, &[]), &five).unwrap();
        let mut made = vec![0xff; 280];
        plan.rebuild(&plan.fit(&LAUNCH, 65536).unwrap(), &source[..12], &mut made);
        assert_eq!((made[24], made[36], made[40]), (15, 64, 0));
        // None at all: the arguments are made all the same.
        let bare = Plan::instrumented(&kernel(12, &[]), &instrumented(24, &[])).unwrap();
        assert_eq!((bare.rebuilt_size(), bare.message_buffer()), (Some(24), Some(16)));

        let why = |candidate: &Kernel| Plan::instrumented(&original, candidate).unwrap_err().to_string();
        assert!(why(&original).contains("no pointer"), "its last argument has 4 bytes");
        assert!(why(&Kernel::default()).contains("no pointer"));
        assert!(why(&instrumented(20, &[])).contains("beyond the 20 bytes"));
        let mut other = more.clone();
        other.args[0].value_kind = "image".into();
        assert!(why(&other).contains("kind image"));
    }

    #[test]
    fn lds_and_scratch_are_those_of_the_kernel_that_runs() {
        let (mut original, mut candidate) = (kernel(12, &[]), kernel(12, &[]));
        (original.group_segment_fixed_size, candidate.group_segment_fixed_size) = (200, 5000);
        candidate.private_segment_fixed_size = 48;
        candidate.max_flat_workgroup_size = 256;
        let plan = |candidate: &Kernel| Plan::new(&original, candidate, None).unwrap();
        let fitted = Launch { group_segment: 5800, private_segment: 48, ..LAUNCH };
        assert_eq!(plan(&candidate).fit(&LAUNCH, 65536), Ok(fitted));
        let more = Launch { private_segment: 64, ..LAUNCH };
        assert_eq!(plan(&candidate).fit(&more, 65536), Ok(Launch { private_segment: 64, ..fitted }));
        let refused = |plan: Plan, launch: &Launch, lds| plan.fit(launch, lds).unwrap_err().to_string();
        assert!(refused(plan(&candidate), &LAUNCH, 5799).starts_with("it needs 5800 bytes of LDS"));
        let large = Launch { workgroup: [257, 1, 1], ..LAUNCH };
        assert!(
            refused(plan(&candidate), &large, 65536)
                .contains("256 work-items at most, those of the launch 257")
        );
        candidate.reqd_workgroup_size = Some([64, 1, 1]);
        let required = refused(plan(&candidate), &LAUNCH, 65536);
        assert_eq!(required, "it requires workgroups of 64x1x1, the launch has 64x2x1");
    }

    #[test]
    fn a_build_of_triton_gets_its_own_workgroups_and_lds() {
        let (mut original, mut candidate) = (kernel(12, &[]), kernel(12, &[]));
        (original.max_flat_workgroup_size, candidate.max_flat_workgroup_size) = (256, 512);
        let mut build = TritonBuild { name: "add".into(), workgroup: 512, lds: 4096, obstacle: None };
        let plan = |build: &TritonBuild| Plan::new(&original, &candidate, Some(build));
        let launch = Launch { grid: [256 * 96, 2, 1], workgroup: [256, 1, 1], ..LAUNCH };
        let fitted = plan(&build).unwrap().fit(&launch, 65536).unwrap();
        assert_eq!(
            (fitted.grid, fitted.workgroup, fitted.group_segment),
            ([512 * 96, 2, 1], [512, 1, 1], 4096)
        );
        let refused = |launch: Launch| plan(&build).unwrap().fit(&launch, 65536).unwrap_err().to_string();
        for other in [
            Launch { workgroup: [128, 1, 1], ..launch },
            Launch { workgroup: [256, 2, 1], ..launch },
            Launch { grid: [256 * 96 + 1, 1, 1], ..launch },
        ] {
            assert!(
                refused(other)
                    .starts_with("Triton launches the application's kernel with whole workgroups of 256x1x1")
            );
        }
        let most = Launch { grid: [u32::MAX / 256 * 256, 1, 1], ..launch };
        assert_eq!(refused(most), "16777215 programs with workgroups of 512 are too many for a launch");
        build.obstacle = Some("it needs more".into());
        assert_eq!(plan(&build).unwrap_err().to_string(), "it needs more");
    }

    #[test]
    fn a_generated_kernel_runs_in_workgroups_of_its_size_only() {
        let (mut original, mut candidate) = (kernel(12, &[]), kernel(12, &[]));
        candidate.name = "add".into();
        (original.max_flat_workgroup_size, candidate.max_flat_workgroup_size) = (256, 512);
        let expected = "it was compiled for workgroups of 512, the application's kernel for 256; with Triton's add.json beside it, \
                        launches would be made to fit";
        assert_eq!(why(&original, &candidate), expected);
        // Launch bounds of HIP say what is possible, not what a launch has.
        candidate.language = Some("OpenCL C".into());
        assert!(Plan::new(&original, &candidate, None).is_ok());
    }
}
