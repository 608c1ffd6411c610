//! What a command costs.

use std::process::Command;

/// How long a tool of the original may take, s: its autograd takes hours over a million calls.
pub(crate) const PATIENCE: u64 = 600;

/// Time and memory.
pub(crate) struct Measured {
    /// Wall time, s.
    pub(crate) wall: f64,
    /// Time of all processors, s.
    pub(crate) cpu: f64,
    /// Largest resident size, MB; not known of the floor, which runs in this process.
    pub(crate) peak_mb: f64,
}

impl Measured {
    /// Names and values.
    pub(crate) fn values(&self) -> [(&'static str, f64); 3] {
        [("wall_s", self.wall), ("cpu_s", self.cpu), ("peak_mb", self.peak_mb)]
    }
}

/// Runs a command and prints what it took: wall and CPU seconds, kB.
const STOPWATCH: &str = "
import resource, subprocess, sys, time
limit, program, *arguments = sys.argv[1:]
# python3 may be a script that starts it, and what that took is not to be counted.
command = [sys.executable if program == 'python3' else program, *arguments]
before = resource.getrusage(resource.RUSAGE_CHILDREN)
begun = time.monotonic()
try:
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=float(limit) or None)
except subprocess.TimeoutExpired:
    sys.exit()
wall = time.monotonic() - begun
used = resource.getrusage(resource.RUSAGE_CHILDREN)
sys.stderr.buffer.write(done.stderr if done.returncode else b'')
print(wall, used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime, used.ru_maxrss)
sys.exit(done.returncode)";

/// Runs `command` to its end.
pub(crate) fn of(command: &Command) -> Measured {
    run(command, 0).unwrap()
}

/// Runs `command` to its end, unless that takes longer than [`PATIENCE`].
pub(crate) fn patiently(command: &Command) -> Option<Measured> {
    run(command, PATIENCE)
}

/// The run with the median of the processor's time of `runs` runs.
pub(crate) fn median(runs: usize, mut run: impl FnMut() -> Measured) -> Measured {
    let mut all: Vec<Measured> = (0..runs).map(|_| run()).collect();
    all.sort_by(|one, other| one.cpu.total_cmp(&other.cpu));
    all.swap_remove(runs / 2)
}

/// Runs `command`, at most `limit` seconds; 0 is no limit.
fn run(command: &Command, limit: u64) -> Option<Measured> {
    let mut watched = Command::new("python3");
    watched.args(["-c", STOPWATCH, &limit.to_string()]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        value.map(|value| watched.env(name, value));
    }
    let output = watched.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let [wall, cpu, peak_kb] = numbers[..] else { return None };
    Some(Measured { wall, cpu, peak_mb: peak_kb / 1024.0 })
}
