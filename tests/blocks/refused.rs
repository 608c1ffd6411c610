//! What cannot be counted runs as it is, and the recorder says why, once.
//!
//! Kernels in assembly take the place of `aql_count`, which a program loads as a module and launches three times.

use std::fs;

use super::{WAVES, counted, counted_collatz, with};
use crate::harness::{Dir, Loading, Ran, Run, aql_code_object, program, recorder, tool};
use crate::hazards::hazard;

/// A module for gfx900 with a kernel of so many scalar registers, which adds 1 for each work-item and then does what `code` says; `data` is behind it.
/// It knows the lines of kernel.s.
pub(super) fn module(dir: &Dir, scalars: u32, code: &str, data: &str) -> String {
    let (source, object) = (dir.path("kernel.s"), dir.path("kernel.co"));
    let text = format!(
        "
        .text
        .globl aql_count
        .p2align 8
        .type aql_count,@function
aql_count:
        s_load_dwordx2 s[2:3], s[0:1], 0x0
        v_mov_b32_e32 v0, 1
        v_mov_b32_e32 v1, 0
        v_mov_b32_e32 v2, 0
        s_waitcnt lgkmcnt(0)
        global_atomic_add_x2 v2, v[0:1], s[2:3]
        {code}
        s_endpgm
        .size aql_count, .-aql_count
        .rodata
        .p2align 6
        .amdhsa_kernel aql_count
            .amdhsa_user_sgpr_kernarg_segment_ptr 1
            .amdhsa_next_free_vgpr 8
            .amdhsa_next_free_sgpr {scalars}
        .end_amdhsa_kernel
        {data}
        .amdgpu_metadata
---
amdhsa.version: [1, 1]
amdhsa.target: amdgcn-amd-amdhsa--gfx900
amdhsa.kernels:
  - .name: aql_count
    .symbol: aql_count.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: {scalars}
    .vgpr_count: 8
    .max_flat_workgroup_size: 256
    .args:
      - .name: count
        .size: 8
        .offset: 0
        .value_kind: global_buffer
        .address_space: global
        .end_amdgpu_metadata
"
    );
    fs::write(&source, text).unwrap();
    let options = ["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx900", "-mcode-object-version=4", "-nogpulib"];
    let files = ["-g", source.to_str().unwrap(), "-o", object.to_str().unwrap()];
    tool("clang-15", &[&options[..], &files].concat());
    format!("module={}", object.display())
}

/// The program's output is that of a run without the recorder; what the recorder said, and the reasons in the trace.
#[track_caller]
fn said(dir: &Dir, arguments: &[&str]) -> (Vec<String>, Vec<String>) {
    let without = Dir::new();
    let plain = with(Run::new(&without, program("blocks")), arguments).run();
    let ran = with(counted(dir, "count").gpus(1), arguments).run();
    assert_eq!(ran.expect(0).stdout, plain.expect(0).stdout, "{ran}");
    (lines(&ran), reasons(dir))
}

fn lines(ran: &Ran) -> Vec<String> {
    ran.stderr.lines().map(String::from).collect()
}

fn reasons(dir: &Dir) -> Vec<String> {
    dir.trace("trace.rpd")
        .texts("select reason from ext_candidate where path = '(the program)' and reason <> '' order by 1")
}

const NOTHING: &str = "no basic blocks were counted: no kernel that the program has loaded and the user has selected could be rewritten";

/// A kernel that has no registers left, one with more blocks than a trace can number, and a code object as a whole. The module is loaded three times,
/// and the reason is there once.
#[test]
fn each_reason_is_said_once() {
    let full =
        "aql_count is not counted on GPU 0: no free scalar registers: 101 of 102 are in use, 5 are needed";
    let many = "aql_count is not counted on GPU 0: it has too many blocks";
    let whole = "a code object is not counted on GPU 0: it is too large";
    let branches = format!(".rept {}\ns_branch 0\n.endr", (1 << 16) + 1);
    let huge = format!(".bss\n.globl huge\nhuge:\n.zero {}", 1u64 << 30);
    let cases =
        [(101, "s_movk_i32 s100, 1", "", full), (16, &branches, "", many), (16, "", huge.as_str(), whole)];
    for (scalars, code, data, reason) in cases {
        let dir = Dir::new();
        let module = module(&dir, scalars, code, data);
        let (lines, reasons) = said(&dir, &[&module]);
        assert_eq!(reasons, [reason]);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines.iter().any(|line| line.contains(reason)), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains(NOTHING)), "{lines:?}");
    }
    // A kernel that nobody has selected was not tried.
    let dir = Dir::new();
    let ran = with(counted(&dir, "count").gpus(1).env("LOGDUR_FILTER", "^nosuch$"), &["collatz"]).run();
    let lines = lines(ran.expect(0));
    assert!(
        lines.iter().any(|line| line.ends_with("loaded no kernel that the user has selected")),
        "{lines:?}"
    );
    assert!(lines.iter().any(|line| line.contains("LOGDUR_FILTER=^nosuch$: no kernel")), "{lines:?}");
    assert_eq!(lines.len(), 2, "{lines:?}");
    let tables = "select count(*) from sqlite_master where name in ('ext_candidate', 'ext_blockcount')";
    assert_eq!(dir.trace("trace.rpd").number(tables), 0);
    // Others are counted beside one that is not.
    let dir = Dir::new();
    let module = module(&dir, 101, "s_movk_i32 s100, 1", "");
    let (lines, reasons) = said(&dir, &["collatz", &module]);
    assert_eq!((lines.len(), reasons), (1, vec![full.to_string()]), "{lines:?}");
}

/// One allocation of device memory fails, each time another one, until it is one for the counting kernels: the program has its results, and the recorder
/// says why nothing is counted.
#[test]
fn without_memory_for_counting_kernels() {
    let without = Dir::new();
    let plain = Run::new(&without, program("blocks")).arg("straight").run();
    plain.expect(0);
    let is_said = (1..40).any(|number| {
        let dir = Dir::new();
        let refused = format!("[[fault]]\nkind = \"allocation\"\nnth = {number}\n");
        let ran = counted(&dir, "count").gpus(1).config(&refused).arg("straight").run();
        if !ran.status.success() {
            // The program's own memory.
            return false;
        }
        assert_eq!(ran.stdout, plain.stdout, "{number}: {ran}");
        let line = "nothing is counted on GPU 0: the runtime refuses it (";
        ran.stderr.matches(line).count() == 1 && ran.stderr.matches(NOTHING).count() == 1
    });
    assert!(is_said);
}

/// A run whose runtime refuses the recorder's thread one call of a function, or some.
fn refusing<'a>(dir: &'a Dir, refused: &str) -> Run<'a> {
    let tools = format!("{} {}", program("refusing").display(), recorder().display());
    counted(dir, "count").gpus(1).env("HSA_TOOLS_LIB", tools).env("REFUSED", refused)
}

/// Whatever the recorder needs of the runtime to count may be refused: the program has its results, and the recorder says what is missing.
#[test]
fn what_the_runtime_refuses_is_named() {
    let without = Dir::new();
    let plain = Run::new(&without, program("blocks")).gpus(1).arg("straight").run();
    plain.expect(0);
    let memory = "nothing is counted on GPU 0: the runtime has no memory for counters";
    let cases = [
        ("hsa_amd_memory_pool_allocate 1 1", memory),
        ("hsa_amd_memory_pool_allocate 2 2", memory),
        (
            "hsa_amd_memory_async_copy 1 1",
            "nothing is counted on GPU 0: the memory of its counters cannot be written",
        ),
        (
            "hsa_amd_memory_async_copy 2 2",
            "nothing is counted on GPU 0: the addresses of its counters cannot be written",
        ),
        (
            "hsa_executable_iterate_symbols 1 1",
            "straight is not counted on GPU 0: the runtime does not name its copy",
        ),
    ];
    for (refused, reason) in cases {
        let dir = Dir::new();
        let ran = refusing(&dir, refused).env("LOGDUR_FILTER", "^straight$").arg("straight").run();
        assert_eq!(ran.expect(0).stdout, plain.stdout, "{refused}: {ran}");
        assert_eq!(reasons(&dir), [reason], "{refused}: {ran}");
        let lines = lines(&ran);
        assert_eq!(lines.len(), 2, "{refused}: {ran}");
        assert!(
            [reason, NOTHING].iter().all(|text| lines.iter().any(|line| line.contains(text))),
            "{refused}: {ran}"
        );
        let trace = dir.trace("trace.rpd");
        assert_eq!(
            trace.number("select count(*) from sqlite_master where name = 'ext_blockcount'"),
            0,
            "{ran}"
        );
    }
}

/// Counters that cannot be read once are read later: no dispatch is missing, and none counts for others.
#[test]
fn counters_that_cannot_be_read_are_read_later() {
    let dir = Dir::new();
    let run = refusing(&dir, "reads 1 1").env("LOGDUR_FILTER", "^collatz$");
    // They are read every second.
    let ran = with(run, &["collatz=3", "pause=2", "collatz=4"]).run();
    let trace = dir.succeeded(&ran);
    assert_eq!(counted_collatz(&trace), (7, 7 * WAVES), "{ran}");
    assert_eq!(trace.number("select count(*) from ext_instrumentation where reason <> ''"), 0, "{ran}");
}

/// Counters that cannot be read at all, of a kernel that stays and of one that is unloaded: a dispatch of each says so.
#[test]
fn counters_that_are_lost_are_named() {
    let dir = Dir::new();
    let module = format!("module={}", aql_code_object("gfx900").display());
    let run = refusing(&dir, "all_reads 1 1000000").env("LOGDUR_FILTER", "^(collatz|aql_count)$");
    let trace = dir.succeeded(&with(run, &["collatz=3", &module]).run());
    let sql = "select S.string || ': ' || I.reason from ext_instrumentation I join rocpd_string S on S.id = I.kernelName_id
        order by I.op_id";
    let [lost, of_collatz] =
        ["aql_count", "collatz"].map(|of| format!("{of}: the counters could not be read"));
    let earlier = "collatz: ".to_string();
    let expected = [&earlier, &earlier, &of_collatz, &lost, &lost, &lost];
    assert_eq!(trace.texts(sql).iter().collect::<Vec<_>>(), expected);
    let counts = "select count(*) from sqlite_master where name = 'ext_blockcount'";
    assert!(
        trace.number(counts) == 0 || trace.number("select count(*) from ext_blockcount") == 0,
        "none counts for others"
    );
}

/// A workgroup whose waves have no room with more registers runs as it is.
#[test]
fn a_workgroup_that_would_not_fit_is_named() {
    let dir = Dir::new();
    let (lines, reasons) = said(&dir, &["crowded=3", "collatz"]);
    let reason = "crowded is not counted on GPU 0 in some launches: its workgroups have too many waves for the registers that it \
                  needs when it is counted";
    assert_eq!(reasons, [reason]);
    assert_eq!(lines.iter().filter(|line| line.contains(reason)).count(), 1, "{lines:?}");
    assert_eq!(lines.len(), 1, "{lines:?}");
    let kernels =
        "select distinct S.string from ext_instrumentation I join rocpd_string S on S.id = I.kernelName_id";
    assert_eq!(dir.trace("trace.rpd").texts(kernels), ["collatz"]);
}

/// A kernel has four sets of counters, one for each grid that is in flight.
#[test]
fn more_grids_at_once_than_there_are_counters_for() {
    let dir = Dir::new();
    let ran = counted(&dir, "count").gpus(1).env("LOGDUR_FILTER", "^collatz$").arg("grids=7").run();
    ran.expect(0);
    let line = "dispatches of collatz were not counted, since too many different grids were in flight or had just ended: 3";
    assert!(ran.stderr.contains(line) && ran.stderr.lines().count() == 1, "{ran}");
    // Grids of one, two, three and four workgroups of three waves.
    assert_eq!(counted_collatz(&dir.trace("trace.rpd")), (4, 3 * (1 + 2 + 3 + 4)), "{ran}");
}

/// A code object that was loaded by a function that the recorder does not observe.
#[test]
fn code_that_was_not_seen_is_named() {
    fn old_load(dir: &Dir) -> Run<'_> {
        Run::new(dir, hazard("old_load")).arg(aql_code_object("gfx900"))
    }
    let (dir, without) = (Dir::new(), Dir::new());
    let plain = old_load(&without).run();
    let ran = old_load(&dir).recorded(Loading::Preload).env("RPDT_COUNT_BLOCKS", "count").run();
    assert_eq!(ran.expect(0).stdout, plain.expect(0).stdout, "{ran}");
    let reason = "aql_count is not counted on GPU 0: its code object is not known";
    assert_eq!(reasons(&dir), [reason]);
    assert!(ran.stderr.contains(reason) && ran.stderr.lines().count() == 1, "{ran}");
}
