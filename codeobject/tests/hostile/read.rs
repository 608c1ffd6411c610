//! Everything that this crate reads of bytes that nobody vouches for, and what is true of every answer. Shared with the fuzz target
//! `code_object`.

use rpd_codeobject::container::code_objects;
use rpd_codeobject::occupancy::{Need, Occupancy};
use rpd_codeobject::{
    CodeObject, Kernel, Launch, Plan, SourceLines, TritonBuild, functions, loadable, variables,
};

/// Kernels of a code object of which each is put in the place of each.
const MOST_PAIRED: usize = 6;
/// LDS of a workgroup, bytes.
const LDS: u32 = 65536;

/// Reads everything there is to read.
pub(crate) fn read(bytes: &[u8]) {
    if let Ok(object) = CodeObject::parse(bytes) {
        for kernel in &object.kernels {
            kernel.demangled();
            object.kernel(&kernel.symbol);
            let need = Need::of(kernel, None, &object.target);
            Occupancy::of(&object.target.processor, &need);
        }
        for original in object.kernels.iter().take(MOST_PAIRED) {
            object.kernels.iter().take(MOST_PAIRED).for_each(|candidate| replace(original, candidate));
        }
        match loadable(bytes) {
            Ok(loadable) => {
                assert_eq!(loadable.kernels, object.kernels);
                assert!(variables(bytes).is_ok(), "what can be loaded has sound tables");
            }
            Err(_) => drop(variables(bytes)),
        }
    } else {
        assert!(loadable(bytes).is_err());
    }
    let lines = SourceLines::of(bytes).unwrap_or_default();
    for function in functions(bytes).unwrap_or_default() {
        lines.at(function.address);
    }
    for part in code_objects(bytes).unwrap_or_default() {
        // The parts of a bundle are ELF files; of anything else the part is the whole, which has been read above.
        if part.target.is_some() {
            read(&part.bytes);
        }
    }
    if let Ok(build) = TritonBuild::parse(bytes) {
        assert!(build.workgroup > 0);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert!(TritonBuild::program(text).len() <= text.len() + 1);
    }
}

/// A launch with dynamic LDS, of workgroups that nearly every kernel allows.
const LAUNCH: Launch = Launch {
    grid: [1000, 3, 1],
    workgroup: [64, 1, 1],
    dimensions: 2,
    group_segment: 100,
    private_segment: 8,
};

/// Has one kernel run in the place of another, if it may: its explicit arguments are then those of the launch.
fn replace(original: &Kernel, candidate: &Kernel) {
    let Ok(plan) = Plan::new(original, candidate, None) else { return };
    let Ok(fitted) = plan.fit(&LAUNCH, LDS) else { return };
    assert!(fitted.group_segment <= LDS && fitted.private_segment >= LAUNCH.private_segment);
    assert_eq!((fitted.grid, fitted.workgroup), (LAUNCH.grid, LAUNCH.workgroup));
    let Some(size) = plan.rebuilt_size() else { return };
    let source: Vec<u8> = (0..plan.source_size()).map(|at| at as u8 | 1).collect();
    let mut made = vec![0; size as usize];
    plan.rebuild(&fitted, &source, &mut made);
    let explicit: Vec<_> = candidate.args.iter().filter(|argument| !argument.is_hidden()).collect();
    let is_apart = candidate.args.iter().all(|one| {
        let (begin, end) = (u64::from(one.offset), u64::from(one.offset) + u64::from(one.size));
        explicit.iter().all(|other| {
            std::ptr::eq(*other, one)
                || end <= other.offset.into()
                || begin >= u64::from(other.offset) + u64::from(other.size)
        })
    });
    for argument in explicit.into_iter().filter(|_| is_apart) {
        let place = argument.offset as usize..argument.offset as usize + argument.size as usize;
        if let (Some(made), Some(theirs)) = (made.get(place.clone()), source.get(place)) {
            assert_eq!(made, theirs, "{}", candidate.name);
        }
    }
}
