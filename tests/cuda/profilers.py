"""Another profiler in the recorder's process or around it: before, while and after the recorder has CUPTI, which serves one at a time."""

import json
import sys

from common import HERE, OUT, PROGRAMS, RECORDER, WORK, Trace, check, compile, cupti, done, has_torch, nsys, place, run, say

TAKEN = "has CUPTI, which serves one at a time"
ANOTHERS = "CUDA_INJECTION64_PATH names another tool"
MARKS = "select count(*) from api where apiName = 'UserMarker'"
YIELDS = "another profiler takes CUPTI (RPDT_CUPTI_YIELD)"


def recorded(name, words, **variables):
    """The program's output and what is recorded of it: kernels and marks."""
    path = place(name) / "trace.rpd"
    ran = run(words, LD_PRELOAD=RECORDER, RPDT_FILENAME=path, **variables)
    if not path.exists():
        return ran, 0, 0
    trace = Trace(path)
    return ran, trace.operations().get("KernelExecution", 0), trace.number(MARKS)


def subscribers():
    """A program that subscribes to CUPTI by itself."""
    program = PROGRAMS / "work-cupti"
    library = cupti()
    compile(program, HERE.parent / "programs" / "cuda" / "work.c", "-Wl,--allow-shlib-undefined,--no-as-needed", str(library), f"-Wl,-rpath,{library.parent}")
    # Words, variables, what cuptiSubscribe answers to it, the recorder's kernels and marks, and its line.
    cases = {
        "before": ("profile launch=10 start launch=10 marks=1", {"RPDT_AUTOSTART": 0}, 0, 0, 1, TAKEN),
        "while recording is on": ("launch=10 profile launch=10 marks=1", {}, 39, 20, 1, None),
        "while recording is on, and the recorder yields": ("launch=10 profile launch=10 marks=1", {"RPDT_CUPTI_YIELD": 1}, 0, 10, 1, YIELDS),
        "after a stop": ("launch=10 stop sleep=1500 profile launch=10 start launch=10 marks=1", {}, 0, 10, 1, TAKEN),
    }
    for when, (words, variables, answer, kernels, marks, line) in cases.items():
        ran, seen, marked = recorded("profilers", [program, *words.split()], **variables)
        answered = [what.count for what in done(ran.stdout) if what.what == "profile"]
        holds = ran.returncode == 0 and answered == [answer] and (seen, marked) == (kernels, marks)
        lines = ran.stderr.strip().splitlines()
        is_said = len(lines) == 1 and line in lines[0] if line else not lines
        check(f"another profiler subscribes {when}", holds and is_said, f"{answered} {seen} {marked} {ran.stderr.strip()[-400:]}")


def of_torch():
    """torch.profiler before the recorder."""
    counts = OUT / "other.json"
    counts.unlink(missing_ok=True)
    ran, kernels, _ = recorded("profilers", [sys.executable, HERE / "other.py", counts], RPDT_AUTOSTART=0)
    profiled = json.loads(counts.read_text()) if counts.exists() else 0
    check("torch.profiler was there before: it has all kernels", ran.returncode == 0 and profiled == 100, f"{profiled} {ran.stderr.strip()[-400:]}")
    said = [line for line in ran.stderr.splitlines() if TAKEN in line]
    check("torch.profiler was there before: the recorder says so once", len(said) == 1 and kernels == 0, f"{kernels} {said}")


def of_nsys():
    """nsys names its own library in CUDA_INJECTION64_PATH. Its report cannot be read everywhere, so its kernels are not counted."""
    report = OUT / "other"
    command = [nsys(), "profile", "-t", "cuda", "-s", "none", "--cpuctxsw=none", "-f", "true", "-o", report]
    program = [WORK, "launch=100", "marks=2"]
    for way, words, outside in (
        ("around the recorder", [*command, "env", f"LD_PRELOAD={RECORDER}", *program], {}),
        ("inside the recorder", [*command, *program], {"LD_PRELOAD": RECORDER}),
    ):
        path = place("profilers") / "trace.rpd"
        ran = run(words, RPDT_FILENAME=path, **outside)
        kernels, marked = (sum(Trace(path).operations().values()), Trace(path).number(MARKS)) if path.exists() else (0, 0)
        launched = [what.count for what in done(ran.stdout) if what.what == "launch"]
        said = [line for line in (ran.stdout + ran.stderr).splitlines() if ANOTHERS in line]
        holds = launched == [100] and len(said) == 1 and (kernels, marked) == (0, 2)
        check(f"nsys {way}: the recorder stays out, says so, and has the marks", holds, f"{launched} {kernels} {marked} {said} {ran.stderr.strip()[-300:]}")
    for file in OUT.glob("other.*"):
        file.unlink()


def profilers():
    subscribers()
    if has_torch():
        of_torch()
    if nsys():
        of_nsys()
    else:
        say("nsys is not here")
