//! Results of candidates against those of the program's kernels: what the trace says of them, and that the program notices nothing.

use std::fs;

use crate::harness::{Dir, Loading, Ran, Run, Trace, compared_candidate, program, rpd, validate_candidate};

/// The program with a cache of candidates for gfx900, its results compared.
fn validated<'a>(dir: &'a Dir, program_name: &str, options: &[&str]) -> Run<'a> {
    let cache = dir.path("cache");
    fs::create_dir(&cache).unwrap();
    fs::copy(validate_candidate("gfx900", options), cache.join("other.hsaco")).unwrap();
    let run = Run::new(dir, program(program_name)).recorded(Loading::Preload);
    run.env("LOGDUR_KERNEL_CACHE", &cache).env("RPDT_VALIDATE", ".")
}

/// A row of ext_validation: kernel, argument, what was compared, changed and different, the first difference, the reason.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    kernel: String,
    argument: i64,
    compared: String,
    written: i64,
    different: i64,
    first: (i64, String, String),
    largest: String,
    reason: String,
}

fn rows(trace: &Trace) -> Vec<Row> {
    let query = "select K.description, V.argument, V.compared, V.written, V.different, V.first, V.original, V.candidate, V.largest, V.reason
        from ext_validation V join op K on K.id = V.op_id order by V.id";
    trace.rows(query, |row| {
        let kernel: String = row.get(0)?;
        Ok(Row {
            kernel: kernel.split('(').next().unwrap().to_string(),
            argument: row.get(1)?,
            compared: row.get(2)?,
            written: row.get(3)?,
            different: row.get(4)?,
            first: (row.get(5)?, row.get(6)?, row.get(7)?),
            largest: row.get(8)?,
            reason: row.get(9)?,
        })
    })
}

fn of<'a>(rows: &'a [Row], kernel: &str) -> Vec<&'a Row> {
    rows.iter().filter(|row| row.kernel == kernel).collect()
}

fn whole(dir: &Dir, ran: &Ran) -> Trace {
    ran.expect(0);
    dir.whole_trace()
}

/// Each launch of `gather` and `follow` adds to what is there, so the program would notice a kernel that ran on its own buffers twice.
#[test]
fn equal_builds_are_equal_and_the_program_notices_nothing() {
    let dir = Dir::new();
    let ran = validated(&dir, "validate", &[]).gpus(2).arg("12").arg("two").run();
    let trace = whole(&dir, &ran);
    let rows = rows(&trace);
    let equal = Row {
        kernel: "scale".into(),
        argument: 0,
        compared: "bytes".into(),
        written: 0,
        different: 0,
        first: (0, String::new(), String::new()),
        largest: String::new(),
        reason: String::new(),
    };
    // Ten dispatches of each kernel on each GPU, with a row for each buffer.
    let scale = of(&rows, "scale");
    assert_eq!(scale.len(), 2 * 10 * 2);
    // The first launch changes what was 0 and becomes a number that is not 0: of 3.0 * i two or three bytes.
    let changed = |i: i64| (3.0 * i as f32).to_le_bytes().iter().filter(|byte| **byte != 0).count() as i64;
    let first = Row { argument: 1, written: (0..1000).map(changed).sum(), ..equal.clone() };
    assert_eq!((scale[0], scale[1]), (&equal, &first));
    assert!(scale[2..20].iter().all(|row| row.written + row.different == 0), "the same values again");
    let gather = of(&rows, "gather");
    assert_eq!(gather.len(), 2 * 10 * 2, "the two addresses in the structure");
    assert!(gather.iter().all(|row| row.argument == 0 && row.different == 0), "{gather:#?}");
    assert!(gather.chunks(2).all(|two| two.iter().filter(|row| row.written > 0).count() == 1), "{gather:#?}");
    for (kernel, reason) in [
        ("follow", "its buffers hold addresses, which kernels on copies would follow to what is no copy"),
        ("say", "it has hidden_hostcall_buffer, through which it would act twice"),
    ] {
        let found = of(&rows, kernel);
        assert_eq!(found.len(), 2 * 10, "{kernel}");
        assert!(found.iter().all(|row| row.argument == -1 && row.reason == reason), "{found:#?}");
        let lines = ran.stderr.lines().filter(|line| line.contains(reason)).count();
        assert_eq!(lines, 2, "{kernel}: one line for each GPU: {ran}");
    }
    assert_eq!(trace.number("select count(*) from op where opType = 'KernelExecution'"), 2 * 12 * 4);
    assert_eq!(trace.number("select count(*) from ext_replacement"), 2 * 12 * 4);
}

#[test]
fn other_results_are_named_with_their_first_place() {
    let dir = Dir::new();
    let run = validated(&dir, "validate", &["-DWRONG"])
        .env("RPDT_VALIDATE_AS", "f32:0.01")
        .env("RPDT_VALIDATE_CALLS", "2");
    let ran = run.run();
    let trace = whole(&dir, &ran);
    let rows = rows(&trace);
    let scale = of(&rows, "scale");
    assert_eq!(scale.len(), 2 * 2);
    for two in scale.chunks(2) {
        assert_eq!((two[0].argument, two[0].different), (0, 0));
        // 300 and 301 are equal by the tolerance, 21 and 21.5 are not.
        let first = (7, "21".to_string(), "21.5".to_string());
        assert_eq!((two[1].different, &two[1].first, two[1].largest.as_str()), (1, &first, "0.5"));
    }
    let differs = "scale(float const*, float*, float, int) of the candidate";
    let said = "leaves other results than the program's: argument 1: 1 of";
    assert_eq!(
        ran.stderr.lines().filter(|line| line.contains(differs) && line.contains(said)).count(),
        1,
        "{ran}"
    );
    let gather = of(&rows, "gather");
    let wrong: Vec<_> = gather.iter().filter(|row| row.different > 0).collect();
    assert_eq!(
        wrong.len(),
        1,
        "the second launch finds what the first one's candidate has left: {gather:#?}"
    );
    assert_eq!(wrong[0].first.0, -2, "in front of the address that the argument has");

    let shown = Run::new(&dir, rpd()).arg("replacements").arg("trace.rpd").run();
    let said =
        "results, compared with those of the program's kernels on copies of the buffers: 2 buffers differ";
    assert!(shown.stdout.contains(said), "{shown}");
    assert!(shown.stdout.contains("2 dispatches: first at 7, 21.5 instead of 21"), "{shown}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let variable = "the program's code object has a variable variable, which both would change";
    for (name, variables, reason) in [
        ("validate_variable", &[][..], variable),
        (
            "validate",
            &[("RPDT_VALIDATE_MB", "1")],
            "the copies of its buffers have 2 MiB, RPDT_VALIDATE_MB allows 1",
        ),
    ] {
        let dir = Dir::new();
        let run =
            variables.iter().fold(validated(&dir, name, &[]), |run, (name, value)| run.env(name, *value));
        let ran = run.env("RPDT_VALIDATE", "scale").run();
        let rows = rows(&whole(&dir, &ran));
        assert!(
            !rows.is_empty() && rows.iter().all(|row| row.kernel == "scale" && row.reason == reason),
            "{rows:#?}"
        );
    }
}

/// A process that ends while its kernels wait at their gates does not wait for them.
#[test]
fn an_end_meanwhile_is_an_end() {
    let dir = Dir::new();
    let ran = validated(&dir, "validate", &[]).arg("5").arg("early").run();
    ran.expect(0);
    dir.trace("trace.rpd").check_integrity();
}

#[test]
fn wrong_words_are_complained_of() {
    let dir = Dir::new();
    let run = validated(&dir, "validate", &[]).env("RPDT_VALIDATE", "scale[").env("RPDT_VALIDATE_AS", "f33");
    let ran = run.run();
    whole(&dir, &ran);
    for said in [
        "RPDT_VALIDATE=scale[ is not a regular expression; nothing is validated",
        "RPDT_VALIDATE_AS=f33: must be bytes, f16, bf16, f32 or f64",
    ] {
        assert!(ran.stderr.contains(said), "{ran}");
    }
}

/// What was found in a situation of `compared.hip`, whose two builds are of the same source.
fn situation(name: &str, variables: &[(&str, &str)]) -> Vec<Row> {
    let dir = Dir::new();
    let (cache, other) = (dir.path("cache"), compared_candidate("gfx900"));
    fs::create_dir(&cache).unwrap();
    fs::copy(&other, cache.join("other.hsaco")).unwrap();
    let run = Run::new(&dir, program("compared")).recorded(Loading::Symbols).arg(name).arg(&other);
    let run = run.env("LOGDUR_KERNEL_CACHE", &cache).env("RPDT_VALIDATE", ".");
    let ran = variables.iter().fold(run, |run, (name, value)| run.env(name, *value)).run();
    let rows = rows(&whole(&dir, &ran));
    assert!(rows.iter().all(|row| row.different == 0), "the builds are equal: {rows:#?}");
    rows
}

/// The address behind the last element may be that where another buffer begins, or nobody's.
#[test]
fn a_kernel_that_is_given_an_end_stays_within_its_copies() {
    let rows = situation("ends", &[]);
    for kernel in ["between", "until"] {
        let found = of(&rows, kernel);
        assert_eq!(found.len(), 2 * 4, "the begin and the end of four buffers");
        // Of each of 1024 numbers the lowest byte, in the buffer that begins there.
        assert!(found.chunks(2).all(|two| two[0].written == 1024 && two[1].written == 0), "{found:#?}");
    }
}

/// Threads of the program may write elsewhere in the same allocation meanwhile.
#[test]
fn what_others_write_meanwhile_is_no_difference() {
    assert_eq!(situation("neighbour", &[]).len(), 5);
}

#[test]
fn memory_of_the_host_is_compared() {
    let rows = situation("host", &[]);
    assert_eq!(rows.len(), 3 * 3, "pinned, managed and registered");
    assert!(rows.iter().all(|row| row.written == 1024 && row.reason.is_empty()), "{rows:#?}");
}

#[test]
fn one_buffer_may_be_two_arguments() {
    let rows = situation("same", &[]);
    assert!(rows.len() == 3 && rows.iter().all(|row| (row.argument, row.written) == (0, 128)), "{rows:#?}");
}

#[test]
fn queues_that_wait_for_each_other_and_for_the_host_go_on() {
    assert_eq!(situation("waits", &[("RPDT_VALIDATE_CALLS", "100")]).len(), 2 * 10);
}

/// 60 launches at a time, of which 32 can wait: those that cannot are compared later.
#[test]
fn as_many_are_compared_as_were_asked_for() {
    assert_eq!(situation("burst", &[("RPDT_VALIDATE_CALLS", "50")]).len(), 50);
}

/// Of 60 launches at a time many find 32 waiting. They are counted.
#[test]
fn what_could_not_wait_is_counted_and_said() {
    let dir = Dir::new();
    let cache = dir.path("cache");
    fs::create_dir(&cache).unwrap();
    let file = compared_candidate("gfx900");
    fs::copy(&file, cache.join("other.hsaco")).unwrap();
    let run = Run::new(&dir, program("compared")).recorded(Loading::Symbols).arg("burst").arg(&file);
    let run = run.env("LOGDUR_KERNEL_CACHE", &cache).env("RPDT_VALIDATE", ".");
    let ran = run.env("RPDT_VALIDATE_CALLS", "1000").run();
    let trace = whole(&dir, &ran);
    let compared = rows(&trace).len();
    let missed = 180 - compared;
    assert!(compared >= 32 && missed > 0, "{compared}{ran}");
    assert_eq!(
        trace.metadata("session::0::validation_missed").into_values().collect::<Vec<_>>(),
        [missed.to_string()]
    );
    let said =
        format!("is validated in {compared} of 1000 dispatches: {missed} came when 32 waited to be already");
    assert_eq!(ran.stderr.matches(&said).count(), 1, "{said}{ran}");
}

#[test]
fn launches_of_a_pause_are_not_compared() {
    assert_eq!(situation("paused", &[]).len(), 10, "of the 20 after it");
}

#[test]
fn kernels_of_the_same_name_that_are_loaded_later_begin_nothing_anew() {
    assert_eq!(situation("loads", &[("RPDT_VALIDATE_CALLS", "2")]).len(), 2);
}

/// The copies do not change when the program changes its buffers.
#[test]
fn a_kernel_that_does_not_end_on_copies_keeps_the_program_waiting_once() {
    let rows = situation("lets", &[]);
    let reasons: Vec<_> = rows.iter().map(|row| row.reason.as_str()).collect();
    let once = "a dispatch on copies did not end in 10 s";
    let then = "another dispatch of it did not end on copies";
    assert_eq!(reasons, [once, then, then]);
}
