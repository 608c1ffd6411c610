//! What a command costs.

use std::process::Command;

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
begun = time.monotonic()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
wall = time.monotonic() - begun
used = resource.getrusage(resource.RUSAGE_CHILDREN)
sys.stderr.buffer.write(done.stderr if done.returncode else b'')
print(wall, used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(done.returncode)";

/// Runs `command` to its end.
pub(crate) fn of(command: &Command) -> Measured {
    let mut watched = Command::new("python3");
    watched.args(["-c", STOPWATCH]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        value.map(|value| watched.env(name, value));
    }
    let output = watched.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    Measured { wall: numbers[0], cpu: numbers[1], peak_mb: numbers[2] / 1024.0 }
}
