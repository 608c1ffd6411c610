//! Why a run left no GPU operation in the trace: the most likely cause, in one phrase that says what to do.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rpd_postprocess::text::{self, counted};

use crate::record::executable;
use crate::record::launch;
use crate::record::report::{Cupti, EndedProcess, HsaStage, Kfd, LoadedProcess, OtherRuntime, RunReport};

/// When recording was to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    AtOnce,
    /// After --delay or RPDT_DELAY.
    Later,
    /// When the program calls rpdstart().
    ByProgram,
}

/// Bytes of its name that the kernel keeps of a process.
const LONGEST_NAME: usize = 15;

/// The cause, from what the processes reported, what the command's process was called at its end, and, where none reported, from the
/// command's file.
///
pub(crate) fn reason(
    report: &RunReport,
    command: &Path,
    at_end: &launch::EndedCommand,
    start: Start,
) -> String {
    if report.loaded.is_empty() {
        return not_loaded(command);
    }
    // A command is often a shell or a launcher around the program that matters: the process in which the
    // GPU runtime came furthest is the one to explain, unless one that never said how far it came may have come further.
    let furthest =
        report.ended.iter().max_by_key(|ended| (ended.hsa, ended.tool.is_some(), ended.lost, ended.runtime));
    match (furthest, report.silent()) {
        (Some(ended), _) if ended.hsa > HsaStage::Absent || ended.runtime.is_some() => {
            in_process(report, ended, start)
        }
        (_, Some(silent)) => unheard(silent, command, at_end),
        (Some(ended), None) => in_process(report, ended, start),
        (None, None) => not_loaded(command),
    }
}

/// What became of a process that did not tell how it ended.
fn unheard(silent: &LoadedProcess, command: &Path, at_end: &launch::EndedCommand) -> String {
    let exe = named(&silent.exe, silent.pid);
    let is_called_so = |file: &Path| {
        let file = file.file_name().unwrap_or_default().as_encoded_bytes();
        file.starts_with(&at_end.name) && at_end.name.len() >= file.len().min(LONGEST_NAME)
    };
    // The kernel's name for it is that of the link, such as `python3`, where it was run through one.
    let links_to_it =
        |link: &Path| is_called_so(link) && link.canonicalize().is_ok_and(|file| file == silent.exe);
    let in_path =
        || executable::resolve(OsStr::from_bytes(&at_end.name), std::env::var_os("PATH").as_deref());
    let is_same =
        is_called_so(&silent.exe) || links_to_it(command) || in_path().is_ok_and(|file| links_to_it(&file));
    if silent.pid == at_end.pid && !at_end.name.is_empty() && !is_same {
        let name = String::from_utf8_lossy(&at_end.name);
        return format!(
            "{exe} became {}, into which the recorder was not loaded (statically linked, or LD_PRELOAD was cleared), or which was \
             killed, or ended without its exit handlers or with other rights, before an operation was written",
            text::escape(&name)
        );
    }
    if fs::read_link(format!("/proc/{}/exe", silent.pid)).is_ok_and(|runs| runs == silent.exe) {
        return format!("{exe} still runs, and has written no operation yet");
    }
    format!(
        "{exe} was killed, or ended without its exit handlers or with other rights, before an operation was written"
    )
}

fn named(exe: &Path, pid: u32) -> String {
    format!("{} (process {pid})", text::escape_path(exe))
}

fn not_loaded(command: &Path) -> String {
    let why = executable::obstacle_to_preloading(command).unwrap_or_else(|| {
        format!("{} or its launcher clears LD_PRELOAD, or the dynamic loader refused it", command.display())
    });
    format!("the recorder was not loaded: {}", text::escape(&why))
}

fn in_process(report: &RunReport, ended: &EndedProcess, start: Start) -> String {
    let program = report
        .program(ended.pid)
        .map_or_else(|| format!("process {}", ended.pid), |exe| named(exe, ended.pid));
    let no_driver = match ended.kfd {
        Kfd::Missing => {
            Some("there is no /dev/kfd: load the amdgpu driver, or give the container --device /dev/kfd")
        }
        Kfd::Denied => {
            Some("there is no permission for /dev/kfd: add the user to the groups render and video")
        }
        Kfd::Usable => None,
    };
    match (ended.hsa, ended.runtime) {
        (HsaStage::Absent, Some(OtherRuntime::Cuda(cupti))) => {
            return of_cuda(&program, cupti, ended, start);
        }
        (HsaStage::Absent, Some(OtherRuntime::Itself)) => {
            return format!(
                "{program} drives the GPU by /dev/kfd itself, without the HSA runtime, in which the recorder sits; \
                 run it on HIP (tinygrad: HIP=1 instead of AMD=1)"
            );
        }
        _ => {}
    }
    match (ended.hsa, &ended.tool, no_driver) {
        (HsaStage::Absent, ..) => match report.loaded.len() {
            1 => format!(
                "no GPU runtime was loaded: {program} has neither libhsa-runtime64 (AMD) nor libcuda (NVIDIA)"
            ),
            more => format!(
                "no GPU runtime was loaded: none of {more} processes has libhsa-runtime64 (AMD) or libcuda (NVIDIA)"
            ),
        },
        (HsaStage::Mapped, _, Some(why)) => format!("hsa_init failed in {program}: {why}"),
        (HsaStage::Mapped, Some(tool), None) => format!(
            "another tool took the GPU runtime's table in {program}: {}; run without it",
            text::escape(tool)
        ),
        (HsaStage::Mapped, None, None) => {
            format!("{program} loaded the GPU runtime but did not initialise it, or hsa_init failed")
        }
        (HsaStage::Loaded, ..) if ended.ops > 0 => {
            format!(
                "{program} says it recorded {}, but they are not in the file",
                counted(ended.ops, "operation", "operations")
            )
        }
        (HsaStage::Loaded, ..) if ended.lost > 0 => lost(&program, ended),
        (HsaStage::Loaded, ..) if start != Start::AtOnce => not_started(&program, start),
        (HsaStage::Loaded, _, Some(why)) => format!("hsa_init failed in {program}: {why}"),
        (HsaStage::Loaded, _, None) => {
            format!("{program} initialised the GPU runtime but dispatched no kernel and copied nothing")
        }
    }
}

/// What was lost may be calls alone, of a program that has given the GPU no work.
fn lost(program: &str, ended: &EndedProcess) -> String {
    let lost = counted(ended.lost, "record was", "records were");
    format!("no operation of {program} was recorded, and {lost} lost")
}

/// Why nothing was recorded where recording did not begin with the program.
fn not_started(program: &str, start: Start) -> String {
    match start {
        Start::ByProgram => format!("recording was off, and {program} did not turn it on with rpdstart()"),
        _ => format!(
            "{program} gave the GPU no work while recording was on, or ended before; --delay and --duration (RPDT_DELAY, RPDT_DURATION) say when it is"
        ),
    }
}

/// Why nothing was recorded of a program that has CUDA's driver.
fn of_cuda(program: &str, cupti: Cupti, ended: &EndedProcess, start: Start) -> String {
    match cupti {
        Cupti::Refused => {
            format!(
                "{program} uses an NVIDIA GPU, and the recorder could not use CUPTI there: a line above says why"
            )
        }
        Cupti::OtherTool => {
            format!(
                "{program} uses an NVIDIA GPU, and CUDA_INJECTION64_PATH names another tool; run without it"
            )
        }
        _ if ended.lost > 0 => lost(program, ended),
        _ if start != Start::AtOnce => not_started(program, start),
        Cupti::Attached => format!("{program} initialised CUDA but launched no kernel and copied nothing"),
        Cupti::Unasked => format!(
            "{program} loaded CUDA's driver for NVIDIA GPUs but did not initialise it, or found no GPU"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::launch::Ending;

    /// Process 1 is the command's own, and was called that at its end.
    fn ended_as(name: &str) -> launch::EndedCommand {
        launch::EndedCommand { ending: Ending::Exited(0), pid: 1, name: name.into(), asked_to_end: None }
    }

    fn reason_at_end(name: &str, lines: &str) -> String {
        reason(&RunReport::parse(lines.as_bytes()), Path::new("/bin/sh"), &ended_as(name), Start::AtOnce)
    }

    fn reason_of(lines: &str) -> String {
        reason_at_end("sh", lines)
    }

    fn ended(fields: &str) -> String {
        reason_of(&format!("loaded pid=7 exe=/opt/app\nended pid=7 start=1 {fields} cpu_ns=0\n"))
    }

    #[test]
    fn each_cause_has_its_words() {
        for (fields, words) in [
            ("hsa=no tool=none kfd=missing ops=0 lost=0", "no GPU runtime was loaded"),
            ("hsa=no tool=none kfd=missing runtime=cuda cupti=none ops=0 lost=0", "did not initialise it"),
            (
                "hsa=no tool=none kfd=missing runtime=cuda cupti=refused ops=0 lost=0",
                "/opt/app (process 7) uses an NVIDIA GPU, and the recorder could not use CUPTI there",
            ),
            ("hsa=no tool=none kfd=missing runtime=cuda cupti=other ops=0 lost=0", "names another tool"),
            ("hsa=no tool=none kfd=missing runtime=cuda cupti=attached ops=0 lost=0", "launched no kernel"),
            ("hsa=no tool=none kfd=missing runtime=cuda cupti=attached ops=0 lost=3", "3 records were lost"),
            ("hsa=no tool=none kfd=ok runtime=kfd ops=0 lost=0", "drives the GPU by /dev/kfd itself"),
            ("hsa=mapped tool=none kfd=missing ops=0 lost=0", "there is no /dev/kfd"),
            ("hsa=mapped tool=none kfd=denied ops=0 lost=0", "no permission for /dev/kfd"),
            (
                "hsa=mapped tool=librocprofiler-register kfd=ok ops=0 lost=0",
                "librocprofiler-register; run without",
            ),
            ("hsa=mapped tool=none kfd=ok ops=0 lost=0", "did not initialise it"),
            (
                "hsa=loaded tool=none kfd=missing ops=0 lost=0",
                "hsa_init failed in /opt/app (process 7): there is no",
            ),
            (
                "hsa=loaded tool=none kfd=ok ops=0 lost=1",
                "no operation of /opt/app (process 7) was recorded, and 1 record was lost",
            ),
            ("hsa=loaded tool=librocprofiler-register kfd=ok ops=0 lost=0", "dispatched no kernel"),
            (
                "hsa=loaded tool=none kfd=ok ops=5 lost=0",
                "recorded 5 operations, but they are not in the file",
            ),
        ] {
            let reason = ended(fields);
            assert!(reason.contains(words), "{fields}: {reason}");
            assert!(!reason.contains('\n'));
        }
    }

    #[test]
    fn the_program_behind_a_wrapper_is_the_one_explained() {
        let reason = reason_of(
            "loaded pid=1 exe=/bin/sh\nloaded pid=2 exe=/opt/app\n\
             ended pid=2 start=1 hsa=mapped tool=none kfd=denied ops=0 lost=0 cpu_ns=0\n\
             ended pid=1 start=1 hsa=no tool=none kfd=denied ops=0 lost=0 cpu_ns=0\n",
        );
        assert!(reason.contains("/opt/app (process 2): there is no permission"), "{reason}");
    }

    #[test]
    fn silence_is_explained_too() {
        assert!(reason_of("").contains("the recorder was not loaded"));
        assert!(reason_of("loaded pid=1 exe=/bin/sh\n").contains("/bin/sh (process 1) was killed"));
        let wrapped = reason_of(
            "loaded pid=1 exe=/bin/sh\nloaded pid=2 exe=/opt/app\n\
             ended pid=1 start=1 hsa=no tool=none kfd=ok ops=0 lost=0 cpu_ns=0\n",
        );
        assert!(wrapped.contains("/opt/app (process 2) was killed"), "{wrapped}");
        let replaced = reason_at_end("trainer", "loaded pid=1 exe=/usr/bin/env\n");
        assert!(replaced.starts_with("/usr/bin/env (process 1) became trainer, into which"), "{replaced}");
        for (name, exe) in
            [("a-long-program-", "/bin/a-long-program-name"), ("", "/usr/bin/env"), ("env", "/usr/bin/env")]
        {
            let same = reason_at_end(name, &format!("loaded pid=1 exe={exe}\n"));
            assert!(same.starts_with(&format!("{exe} (process 1) was killed")), "{same}");
        }
        let off = RunReport::parse(
            b"loaded pid=7 exe=/a\nended pid=7 start=1 hsa=loaded tool=none kfd=ok ops=0 lost=0 cpu_ns=0\n",
        );
        let reason = |start| reason(&off, Path::new("/a"), &ended_as("a"), start);
        assert!(reason(Start::ByProgram).contains("rpdstart()"));
        assert!(reason(Start::Later).contains("--delay"));
    }
}
