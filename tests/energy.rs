//! Energy of kernels against the software GPU: its sensors read what its model of power says of the execution log, and `rpd energy` has to
//! find that again in what was recorded.
//!
//! How late a value of a counter is seen depends on the machine's pace. The model says how much the GPU had taken by then, so that what the
//! report may be off by follows from the recording itself. One in which that is too much to say anything is made again.

use rpd_simgpu::execlog::{Kind, Packet};
use serde_json::Value;

use crate::harness::{Dir, Loading, Run, Running, Trace, boot_minus_monotonic, monotonic, program, rpd};
use crate::monitor::rows_of;

const IDLE: f64 = 20.0;
const COPY: f64 = 40.0;
const HOT: f64 = 250.0;
const MILD: f64 = 120.0;
/// No two operations of a GPU run at once.
const MOST: f64 = IDLE + HOT;

/// Kernels of one name follow each other without a gap, so that they are one time.
const CONFIG: &str = "[device]\ngpus = 2\n[timing]\ngap_ns = 0\n\
    [power]\nidle_watts = 20.0\nkernel_watts = 50.0\ncopy_watts = 40.0\n\
    [[kernel]]\nmatch = \"hot_kernel\"\nwatts = 250.0\nns = 150000000\n\
    [[kernel]]\nmatch = \"mild_kernel\"\nwatts = 120.0\nns = 250000000\n";

/// A recorded value may be off by its unit and by what is not known of the relation of the two clocks, J.
const EXACT: f64 = 1e-3;
/// What the report may be off by, in parts of a kernel's energy.
const SHARP: f64 = 0.05;
/// So many rows of a sensor are in the file before and behind the kernels: the GPU is idle meanwhile. An idle GPU's power stays the same.
const ROWS: [(&str, i64); 2] = [("energy", 50), ("power", 3)];

fn watts(packet: &Packet) -> f64 {
    match packet.kind {
        Kind::Dispatch if packet.name.starts_with("rocr:") => COPY,
        Kind::Dispatch if packet.name.contains("hot_kernel") => HOT,
        Kind::Dispatch if packet.name.contains("mild_kernel") => MILD,
        Kind::Dispatch => 50.0,
        Kind::SdmaCopy | Kind::SdmaRect | Kind::SdmaFill => COPY,
        _ => 0.0,
    }
}

/// What a GPU took, by the execution logs of all processes; times in ns of CLOCK_MONOTONIC.
struct Model {
    /// Start, end, watts above the idle floor, mangled name.
    ran: Vec<(i64, i64, f64, String)>,
    /// CLOCK_BOOTTIME, from whose start on the GPU took what it takes while it is idle.
    boot: i64,
}

impl Model {
    fn of(dir: &Dir, gpu: u32) -> Model {
        let boot = boot_minus_monotonic();
        let logs = dir.logs();
        let packets = logs.iter().flat_map(|(_, log)| log).filter(|packet| packet.device == gpu);
        let time = |ns: u64| ns as i64 - boot;
        let ran = |of: &Packet| (time(of.start_ns), time(of.end_ns), watts(of), of.name.to_string());
        Model { ran: packets.map(ran).filter(|ran| ran.2 > 0.0).collect(), boot }
    }

    /// J at that time.
    fn joules(&self, at: i64) -> f64 {
        let above =
            self.ran.iter().map(|(start, end, watts, _)| (at.min(*end) - start).max(0) as f64 * watts);
        ((at + self.boot) as f64 * IDLE + above.sum::<f64>()) / 1e9
    }

    fn end(&self) -> i64 {
        self.ran.iter().map(|ran| ran.1).max().unwrap()
    }

    /// From when to when kernels of that name ran, one behind the other, and what they took above the idle floor.
    fn kernels(&self, name: &str) -> (i64, i64, f64) {
        let ran: Vec<_> = self.ran.iter().filter(|ran| ran.3.contains(name)).collect();
        let (start, end) = (ran.iter().map(|ran| ran.0).min(), ran.iter().map(|ran| ran.1).max());
        let (start, end) = (start.unwrap(), end.unwrap());
        let busy: i64 = ran.iter().map(|ran| ran.1 - ran.0).sum();
        assert_eq!(busy, end - start, "{name}: {ran:?}");
        (start, end, ran.iter().map(|ran| (ran.1 - ran.0) as f64 * ran.2).sum::<f64>() / 1e9)
    }
}

/// A change of the counter: when it was seen, and the value.
type Change = (i64, f64);

/// Those of a GPU.
fn changes(trace: &Trace, gpu: u32) -> Vec<Change> {
    let mut rows: Vec<Change> =
        rows_of(trace, gpu, "energy").iter().map(|row| (row.1, row.3.parse().unwrap())).collect();
    rows.dedup_by_key(|row| row.1);
    // Nobody saw where the first value began.
    rows.split_off(1)
}

/// The counter had at no time more than the GPU had taken by then, and had all that it took at the end. As an idle GPU takes little, an
/// error of the sum would show.
#[track_caller]
fn assert_is_counter(changes: &[Change], model: &Model) {
    for (seen, joules) in changes {
        let taken = model.joules(*seen);
        assert!(*joules <= taken + EXACT, "{joules} J at {seen}, when it had taken {taken}");
    }
    let (last, taken) = (changes.last().unwrap().1, model.joules(model.end()));
    assert!(last >= taken - EXACT, "{last} J of {taken}");
}

/// `rpd energy --json` of the trace.
fn report(dir: &Dir) -> Value {
    let ran = Run::new(dir, rpd()).env("LD_PRELOAD", "").arg("energy").arg("--json").arg("trace.rpd").run();
    serde_json::from_str(&ran.expect(0).stdout).unwrap()
}

#[track_caller]
fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} of {value}"))
}

/// Joules of the kernel of that name.
#[track_caller]
fn joules_of(report: &Value, name: &str) -> f64 {
    let is_it = |row: &&Value| row["name"].as_str().is_some_and(|of| of.starts_with(&format!("{name}(")));
    number(report["rows"].as_array().unwrap().iter().find(is_it).unwrap(), "joules")
}

/// The steps of a GPU between changes of its counter.
struct Steps<'a> {
    changes: &'a [Change],
    model: &'a Model,
}

impl Steps<'_> {
    /// By how much the counter was behind where a change of it was seen, J.
    fn behind(&self, change: usize) -> f64 {
        let (seen, joules) = self.changes[change];
        self.model.joules(seen) - joules
    }

    /// What may be taken for another's where kernels begin or end, J: all of the step in which they do, which is shared by time, and what is
    /// seen in the steps of the kernels though it came before them, or behind them though it is theirs.
    fn border(&self, time: i64, begins: bool) -> f64 {
        let step = self.changes.windows(2).position(|step| step[0].0 <= time && time < step[1].0).unwrap();
        let [(from, before), (to, behind)] = [self.changes[step], self.changes[step + 1]];
        let taken = self.model.joules(to) - self.model.joules(from);
        taken.max(behind - before) + self.behind(if begins { step + 1 } else { step })
    }

    /// What kernels got too much, J, of steps of which less is known than the idle floor: no step has less than nothing above that.
    fn raised(&self, (start, end): (i64, i64), floor: f64) -> f64 {
        let of_kernels = self.changes.windows(2).filter(|step| step[0].0 < end && start < step[1].0);
        let missing =
            of_kernels.map(|step| floor * (step[1].0 - step[0].0) as f64 / 1e9 - (step[1].1 - step[0].1));
        missing.map(|missing| missing.max(0.0)).sum()
    }

    /// What the idle floor may be off by, W: where a time begins or ends in which nothing ran, something of its neighbours is seen in it.
    fn floor(&self, ops: &[(i64, i64)]) -> f64 {
        let is_idle = |step: usize| {
            let (from, to) = (self.changes[step].0, self.changes[step + 1].0);
            !ops.iter().any(|(start, end)| *start < to && from < *end)
        };
        let (mut ns, mut joules) = (0, 0.0);
        for step in (0..self.changes.len() - 1).filter(|step| is_idle(*step)) {
            ns += self.changes[step + 1].0 - self.changes[step].0;
            if step == 0 || !is_idle(step - 1) {
                joules += self.behind(step);
            }
            if step + 2 == self.changes.len() || !is_idle(step + 1) {
                joules += self.behind(step + 1);
            }
        }
        (joules + EXACT) / (ns as f64 / 1e9)
    }
}

/// Compares what the trace and the report say of a GPU, on which these kernels ran, with the model. Whether the recording was sharp enough for
/// the comparison to say something.
#[track_caller]
fn is_right(dir: &Dir, trace: &Trace, gpu: u32, kernels: &[&str]) -> bool {
    let (model, changes, report) = (Model::of(dir, gpu), changes(trace, gpu), report(dir));
    assert_is_counter(&changes, &model);
    let of_gpu = report["gpus"].as_array().unwrap().iter().find(|of| of["gpu"] == gpu).unwrap();
    assert_eq!(of_gpu["sensor"], "energy");
    // The total is what the counter went on by, and the idle floor is apart.
    let total = changes.last().unwrap().1 - changes[0].1;
    let [joules, idle, operations] =
        ["joules", "idle_joules", "operations_joules"].map(|key| number(of_gpu, key));
    assert!((joules - total).abs() < EXACT && (idle + operations - joules).abs() < EXACT, "{total} {of_gpu}");
    let ops = format!("select start, \"end\" from rocpd_op where gpuId = {gpu}");
    let ops = trace.rows(&ops, |row| Ok((row.get(0)?, row.get(1)?)));
    let steps = Steps { changes: &changes, model: &model };
    let floor = number(of_gpu, "idle_watts");
    assert!((floor - IDLE).abs() <= steps.floor(&ops), "{floor} W, by {} W at most", steps.floor(&ops));
    let mut is_sharp = true;
    for name in kernels {
        let (start, end, expected) = model.kernels(name);
        let found = joules_of(&report, name);
        let of_floor = (floor - IDLE).abs() * (end - start) as f64 / 1e9;
        let of_borders = steps.border(start, true) + steps.border(end, false);
        let most = of_borders + of_floor + steps.raised((start, end), floor);
        assert!((found - expected).abs() <= most, "{name}: {found} J, not {expected} by {most}: {report}");
        is_sharp &= most < SHARP * expected;
    }
    is_sharp
}

/// The program that does what its arguments say, on software GPUs whose sensors are below sys.
fn energy<'a>(dir: &'a Dir, run: Run<'a>, acts: &[&str]) -> Run<'a> {
    let run = run.env("SIMGPU_SYSFS", dir.path("sys")).env("RPDT_AUTOFLUSH", "20").gpus(2).config(CONFIG);
    acts.iter().fold(run, |run, act| run.arg(*act))
}

/// Waits until enough rows of a sensor that begin behind a time are in the trace.
fn wait_for_rows(dir: &Dir, sensor: &str, gpus: &[u32], behind: i64) {
    let least = ROWS.iter().find(|(name, _)| *name == sensor).unwrap().1;
    for gpu in gpus {
        let sql = format!(
            "select count(*) from rocpd_monitor where monitorType = '{sensor}' and deviceId = {gpu} and start > {behind}"
        );
        dir.wait_for_rows("trace.rpd", &sql, least);
    }
}

/// Lets a program do what it does between `ready` and `done`, with an idle time around it that is in the trace.
fn conduct(dir: &Dir, mut running: Running, sensor: &str, gpus: &[u32]) {
    running.wait_for_output("ready");
    wait_for_rows(dir, sensor, gpus, monotonic());
    dir.touch("first");
    running.wait_for_output("done");
    wait_for_rows(dir, sensor, gpus, monotonic());
    dir.touch("last");
    running.finish().expect(0);
}

/// Records sensors of GPUs while the program does what `acts` say, until that was sharp enough; each time with more of the kernels that
/// `acts` only name.
fn recorded(acts: &[&str], sensors: &str, gpus: &[u32], is_sharp: impl Fn(&Dir, &Trace) -> bool) {
    let attempt = |attempt| {
        let counted = |act: &&str| match *act {
            kernel @ ("hot" | "mild") => format!("{kernel}={}", 4 << attempt),
            other => other.to_string(),
        };
        let acts: Vec<String> = acts.iter().map(counted).collect();
        let acts: Vec<&str> = acts.iter().map(String::as_str).collect();
        let dir = Dir::new();
        let run = Run::new(&dir, program("energy")).recorded(Loading::RpdRecord);
        let run = run.record_option(&format!("--monitor={sensors}:2ms"));
        let first = sensors.split(',').next().unwrap();
        conduct(&dir, energy(&dir, run, &acts).start(), first, gpus);
        is_sharp(&dir, &dir.whole_trace())
    };
    assert!((0..5).any(attempt), "each recording was too late to say anything");
}

#[test]
fn kernels_have_the_joules_that_the_gpu_took_for_them() {
    let acts =
        ["gpu=0", "say=ready", "wait=first", "copy=16", "hot", "mild", "sync", "say=done", "wait=last"];
    recorded(&acts, "energy", &[0], |dir, trace| is_right(dir, trace, 0, &["hot_kernel", "mild_kernel"]));
}

#[test]
fn each_of_two_gpus_has_its_own_joules() {
    let acts = [
        "gpu=1",
        "gpu=0",
        "say=ready",
        "wait=first",
        "hot",
        "gpu=1",
        "mild",
        "sync",
        "say=done",
        "wait=last",
    ];
    recorded(&acts, "energy,power", &[0, 1], |dir, trace| {
        is_right(dir, trace, 0, &["hot_kernel"]) && is_right(dir, trace, 1, &["mild_kernel"])
    });
}

/// Where there is no counter. An average of the last millisecond is seen as late as a counter is.
#[test]
fn a_power_sensor_gives_kernels_their_joules() {
    let acts = ["gpu=0", "say=ready", "wait=first", "hot", "mild", "sync", "say=done", "wait=last"];
    recorded(&acts, "power", &[0], |dir, trace| {
        let (model, report) = (Model::of(dir, 0), report(dir));
        assert_eq!(report["gpus"][0]["sensor"], "power");
        let floor = number(&report["gpus"][0], "idle_watts");
        let rows = rows_of(trace, 0, "power");
        [("hot_kernel", IDLE + HOT), ("mild_kernel", IDLE + MILD)].into_iter().all(|(name, watts)| {
            let (start, end, expected) = model.kernels(name);
            let mut of_kernel = rows.iter().filter(|row| row.3.parse() == Ok(watts));
            let Some(first) = of_kernel.clone().next() else { return false };
            let last = of_kernel.next_back().unwrap();
            let between = rows.iter().filter(|row| (first.1..last.2).contains(&row.1));
            assert!(between.clone().all(|row| row.3 == first.3), "{name}: {:?}", between.collect::<Vec<_>>());
            assert!(start <= first.1, "{name} ran from {start}, and {first:?}");
            let late = (first.1 - start + (last.2 - end).abs()) as f64 / 1e9;
            let most = MOST * late + (floor - IDLE).abs() * (end - start) as f64 / 1e9;
            let found = joules_of(&report, name);
            assert!(
                (found - expected).abs() <= most,
                "{name}: {found} J, not {expected} by {most}: {report}"
            );
            most < SHARP * expected
        })
    });
}

#[test]
fn rpd_monitor_has_the_joules_of_a_command_that_is_not_recorded() {
    let dir = Dir::new();
    // The sensors are there before the command begins, as a driver's are.
    energy(&dir, Run::new(&dir, program("energy")), &["gpu=0", "copy=1"]).run().expect(0);
    let run = Run::new(&dir, rpd()).env("RPDT_SYSFS", dir.path("sys"));
    let run = ["monitor", "-o", "trace.rpd", "--sensors=energy:2ms", "--gpu=0", "--"]
        .into_iter()
        .fold(run, |run, argument| run.arg(argument));
    let acts =
        ["gpu=0", "say=ready", "wait=first", "copy=16", "hot=1", "mild=1", "sync", "say=done", "wait=last"];
    conduct(&dir, energy(&dir, run.arg(program("energy")), &acts).start(), "energy", &[0]);
    let (trace, model) = (dir.whole_trace(), Model::of(&dir, 0));
    assert_eq!(dir.logs().iter().filter(|(_, log)| !log.is_empty()).count(), 2);
    let changes = changes(&trace, 0);
    assert_is_counter(&changes, &model);
    let report = report(&dir);
    let total = changes.last().unwrap().1 - changes[0].1;
    let took = model.kernels("hot_kernel").2 + model.kernels("mild_kernel").2;
    let joules = number(&report["gpus"][0], "joules");
    assert!((joules - total).abs() < EXACT && joules > took, "{total} {took} {report}");
    assert!(report["rows"].as_array().is_some_and(Vec::is_empty), "{report}");
}
