//! Kernels whose workgroups wait for each other: they are counted only where all of them still run at once, or never did.
//!
//! The software GPU fills its compute units here. The program's kernels have room for two workgroups on each, and for one when they count. So the
//! first launch of one shows whether another kernel joins it, and is not counted.

use super::with;
use crate::harness::{Dir, Loading, Ran, Run, program};

/// As many workgroups at once as the compute units have room for.
const FULL: &str = "[execution]\nfill_compute_units = true\n";
/// Compute units of the software GPU's gfx900.
const COMPUTE_UNITS: usize = 64;
const REASON: &str = "meet is not counted on GPU 0 in some launches: its workgroups may wait for each other, and would no longer all run \
                      at once (rpd probe --any-grid counts it there too)";
const FIRST: &str = "meet is not counted on GPU 0 in some launches: its workgroups may wait for each other, and the first launch shows whether \
                     another such kernel runs beside it (rpd probe --any-grid counts it there too)";
const BESIDE: &str = "meet is not counted on GPU 0 in some launches: its workgroups may wait for each other, as those of another kernel \
                      beside it, and both might no longer fit together (rpd probe --any-grid counts it there too)";

fn run<'a>(dir: &'a Dir, arguments: &[String]) -> Run<'a> {
    let run = Run::new(dir, program("grid_barrier")).config(FULL);
    with(run, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

fn recorded<'a>(dir: &'a Dir, arguments: &[String]) -> Run<'a> {
    run(dir, arguments).recorded(Loading::Preload).env("RPDT_COUNT_BLOCKS", "count")
}

/// Whether all workgroups of a launch have seen each other, by launch.
fn met(ran: &Ran) -> Vec<bool> {
    let line = |line: &str| {
        let (launch, complete) = line.split_once(": ").unwrap();
        launch.split(':').next() == Some(complete)
    };
    ran.expect(0).stdout.lines().map(line).collect()
}

/// Whether the blocks of a launch were counted, by launch; and why those of others were not.
fn counted(dir: &Dir) -> (Vec<bool>, Vec<String>) {
    let trace = dir.trace("trace.rpd");
    let is_counted = match trace.has_table("ext_instrumentation") {
        true => "exists (select 1 from ext_instrumentation I where I.op_id = O.id)",
        false => "false",
    };
    let sql = format!(
        "select {is_counted} from rocpd_op O join rocpd_string S on S.id = O.description_id
         where S.string in ('meet', 'pass') order by O.start"
    );
    let reasons = trace
        .texts("select reason from ext_candidate where path = '(the program)' and reason <> '' order by 1");
    (trace.rows(&sql, |row| row.get(0)), reasons)
}

fn grids(grids: &[usize]) -> Vec<String> {
    grids.iter().map(ToString::to_string).collect()
}

#[test]
fn grids_that_would_hang_run_the_original() {
    let (plain, dir) = (Dir::new(), Dir::new());
    let arguments =
        grids(&[1, 1, COMPUTE_UNITS, COMPUTE_UNITS + 1, 2 * COMPUTE_UNITS, 2 * COMPUTE_UNITS + 1]);
    let all_but_the_last = [true, true, true, true, true, false];
    assert_eq!(met(&run(&plain, &arguments).run()), all_but_the_last, "without the recorder");
    let ran = recorded(&dir, &arguments).run();
    assert_eq!(met(&ran), all_but_the_last, "{ran}");
    let reasons = [FIRST, REASON].map(String::from).to_vec();
    assert_eq!(counted(&dir), (vec![false, true, true, false, false, true], reasons));
    assert!([REASON, FIRST].iter().all(|reason| ran.stderr.matches(reason).count() == 1), "{ran}");
    // What the rule is for.
    let dir = Dir::new();
    let ran = recorded(&dir, &arguments).env("RPDT_COUNT_BLOCKS", "count,any-grid").run();
    assert_eq!(met(&ran), [true, true, true, false, false, false], "{ran}");
    assert_eq!(counted(&dir), (vec![true; 6], vec![]));
    ran.expect_silent();
}

/// HIP puts cooperative launches on a queue that the runtime shares, where no packet can be changed: they run as they are, whatever fits.
#[test]
fn cooperative_launches_run_the_original() {
    let (plain, dir) = (Dir::new(), Dir::new());
    let arguments = ["1", "1", "cooperative", "64", "65", "128"].map(String::from);
    let has_cooperative_queues = format!("[device]\ncooperative_queues = true\n{FULL}");
    let without = run(&plain, &arguments).config(&has_cooperative_queues).run();
    assert_eq!(met(&without), [true; 5]);
    let ran = recorded(&dir, &arguments).config(&has_cooperative_queues).run();
    assert_eq!((met(&ran), &ran.stdout), (vec![true; 5], &without.stdout), "{ran}");
    let of_the_others = (vec![false, true], vec![FIRST.to_string()]);
    assert_eq!(counted(&dir), of_the_others, "the first two launches are no cooperative ones");
    let lines = [
        FIRST,
        "the program uses cooperative queues of the HSA runtime: their kernels are not recorded",
        "basic blocks are not counted on cooperative queues, which the runtime shares",
    ];
    assert!(lines.iter().all(|line| ran.stderr.matches(line).count() == 1), "{ran}");
    assert_eq!(ran.stderr.lines().count(), lines.len(), "{ran}");
}

/// Two kernels at once that wait for each other: neither gets larger, not the first one either, which is alone when it is launched. The software GPU does
/// not know that they share its compute units.
#[test]
fn two_kernels_that_wait_for_each_other_run_the_original() {
    let dir = Dir::new();
    let arguments = ["both=20", "both=20", "20"].map(String::from);
    let ran = recorded(&dir, &arguments).run();
    assert_eq!(met(&ran), [true, true, true], "{ran}");
    let reasons = [FIRST, BESIDE].map(String::from).to_vec();
    assert_eq!(counted(&dir), (vec![false; 5], reasons), "{ran}");
    assert!([BESIDE, FIRST].iter().all(|reason| ran.stderr.matches(reason).count() == 1), "{ran}");
    let dir = Dir::new();
    let ran = recorded(&dir, &arguments).env("RPDT_COUNT_BLOCKS", "count,any-grid").run();
    assert_eq!((met(&ran), counted(&dir)), (vec![true; 3], (vec![true; 5], vec![])), "{ran}");
}

/// The same where the user has left the other kernel out: the recorder looks at its code all the same.
#[test]
fn a_kernel_that_is_left_out_is_beside_others_too() {
    let dir = Dir::new();
    let arguments = ["both=20", "both=20", "20"].map(String::from);
    let ran = recorded(&dir, &arguments).env("LOGDUR_FILTER", "^meet$").run();
    assert_eq!(met(&ran), [true, true, true], "{ran}");
    // Until the recorder has looked at it, the other one counts as one that waits: the first launch may have had it beside itself already.
    let (is_counted, reasons) = counted(&dir);
    assert_eq!(is_counted, [false; 5], "{ran}");
    assert!(reasons == [BESIDE] || reasons == [FIRST, BESIDE], "{ran}");
}

/// LDS that makes one workgroup fit on a compute unit, whatever its registers; and workgroups that do not wait.
#[test]
fn grids_that_are_no_worse_off_are_counted() {
    let dir = Dir::new();
    let mut arguments = grids(&[COMPUTE_UNITS + 1]);
    arguments.iter_mut().for_each(|grid| grid.push_str(":40000"));
    arguments.push("alone".into());
    arguments.extend(grids(&[COMPUTE_UNITS + 1, 2 * COMPUTE_UNITS]));
    let ran = recorded(&dir, &arguments).run();
    ran.expect(0).expect_silent();
    assert_eq!(counted(&dir), (vec![true; 3], vec![]));
}

/// A stream may use half of the compute units. What the whole runtime may use is not known where the user limits it.
#[test]
fn of_masked_compute_units_those_that_are_left_count() {
    let dir = Dir::new();
    let mut arguments = ["1", "mask=1"].map(String::from).to_vec();
    arguments.extend(grids(&[32, 33, 64, 65]));
    arguments.push("mask=2".into());
    arguments.extend(grids(&[COMPUTE_UNITS, COMPUTE_UNITS + 1]));
    let ran = recorded(&dir, &arguments).run();
    ran.expect(0);
    let reasons = [FIRST, REASON].map(String::from).to_vec();
    assert_eq!(counted(&dir), (vec![false, true, false, false, true, true, false], reasons.clone()));
    let dir = Dir::new();
    let arguments = ["alone", "1", "wait", "1", "1"].map(String::from);
    let ran = recorded(&dir, &arguments).env("HSA_CU_MASK", "0:0-31").run();
    assert_eq!(met(&ran), [true, true, true]);
    assert_eq!(counted(&dir), (vec![true, false, false], reasons));
}
