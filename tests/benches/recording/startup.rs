//! What the recorder and its loader cost a process that has no use for them: children of a recorded program inherit LD_PRELOAD.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use crate::harness::{Dir, loader, program, recorder};
use crate::sample::{Samples, print_table};

const SPAWNS: usize = 200;

/// Spawns of a program that does nothing, without a library and with each, in turn.
pub(crate) fn startup(samples: &mut Samples) {
    let (noop, dir) = (program("noop"), Dir::new());
    let variants = [("plain", None), ("recorder", Some(recorder())), ("loader", Some(loader()))];
    for _ in 0..SPAWNS {
        for (variant, library) in &variants {
            let (wall, cpu) = spawn(&noop, library.as_deref(), &dir);
            samples.add("startup", "noop", variant, "wall us", wall);
            samples.add("startup", "noop", variant, "CPU us", cpu);
        }
    }
    assert_eq!(dir.names(), [""; 0], "a process without a GPU left a file");
    let mut rows = vec![];
    for measure in ["wall us", "CPU us"] {
        let of = |variant| samples.spread("startup", "noop", variant, measure);
        let plain = of("plain");
        let more = |variant| format!("{:.0}", of(variant).median - plain.median);
        let with = |variant| of(variant).show(1.0, 0);
        let (recorder, loader) = (more("recorder"), more("loader"));
        rows.push(vec![
            measure.to_string(),
            recorder,
            loader,
            plain.show(1.0, 0),
            with("recorder"),
            with("loader"),
        ]);
    }
    let columns = ["", "recorder: more than plain", "loader: more than plain", "plain", "recorder", "loader"];
    print_table("A process that uses no GPU, with LD_PRELOAD", &columns, &rows);
}

/// Microseconds of wall and CPU time.
fn spawn(noop: &Path, library: Option<&Path>, dir: &Dir) -> (f64, f64) {
    let mut command = Command::new(noop);
    command.current_dir(dir.path("")).stdout(Stdio::null()).env_remove("LD_PRELOAD");
    if let Some(library) = library {
        command.env("LD_PRELOAD", library);
    }
    let begin = Instant::now();
    #[expect(clippy::zombie_processes, reason = "waited for below, by the call that also says its CPU time")]
    let child = command.spawn().unwrap();
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: a child of ours that nobody has waited for, two valid places.
    let waited = unsafe { libc::wait4(child.id() as i32, &mut status, 0, usage.as_mut_ptr()) };
    let wall = begin.elapsed().as_secs_f64() * 1e6;
    assert!(waited > 0 && ExitStatus::from_raw(status).success(), "{}", noop.display());
    // SAFETY: all-zero is a valid rusage, and the call has written it.
    let usage = unsafe { usage.assume_init() };
    let us = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
    (wall, us(usage.ru_utime) + us(usage.ru_stime))
}
