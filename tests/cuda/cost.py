"""What recording costs, without checks: each figure is a median of rounds by turns. A process of its own has the GPU open meanwhile, so that no program
waits for the driver to make the GPU ready."""

import collections
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import time

from common import FLOOR, HERE, OUT, PROGRAMS, RECORDER, WORK, LOADER, Trace, ask, check, done, finish, has_torch, machine, nsys, place, run, say

# A round begins only if the longest so far would end within that, s.
LONGEST = 450
# Of a step of block.py, by torch.profiler of PyTorch 2.11.
BLOCK_KERNELS = 61
MILLION = 1_000_000
PEAK = OUT / "peak.json"
TRACE = OUT / "cost.rpd"
RECORDED = {"LD_PRELOAD": RECORDER, "RPDT_FILENAME": TRACE}
# What is set for a program that is measured in that way. Those of `nsys` and `torch.profiler` have another command.
WAYS = {
    "plain": {},
    "floor": FLOOR,
    "recorded": RECORDED,
    "by the variable": {"CUDA_INJECTION64_PATH": RECORDER, "RPDT_FILENAME": TRACE},
    "as launches": {**RECORDED, "RPDT_CUDA_GRAPHS": "launch"},
    "args": {**RECORDED, "RPDT_CUDA_APIS": "args"},
    # By rpdstart after cuInit.
    "late": {**RECORDED, "RPDT_AUTOSTART": 0},
    "torch.profiler": {},
    "nsys": {},
}


class Open:
    """Another process has a context on the GPU."""

    def __enter__(self):
        self.place = place("open")
        self.process = subprocess.Popen([WORK, "launch=1", "await=1"], cwd=self.place, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.startswith("await"):
                break

    def __exit__(self, *_):
        (self.place / "awaited-1").touch()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            finish(self.process)


def rounds(most):
    begin, longest = time.monotonic(), 0
    for number in range(most):
        started = time.monotonic()
        if number and started - begin + longest > LONGEST:
            say(f"{number} rounds of {most}: no more fit into {LONGEST} s")
            return
        yield number
        longest = max(longest, time.monotonic() - started)


def measured(program, way):
    """What the program says, and what it and its descendants took; nothing where it failed."""
    for file in (PEAK, TRACE):
        file.unlink(missing_ok=True)
    command = [str(word) for word in program]
    if way == "torch.profiler" and program[0] == WORK:
        command[:1] = [sys.executable, str(HERE / "profiled.py"), str(PROGRAMS / "libwork.so")]
    elif way == "torch.profiler":
        command.append("profile")
    elif way == "nsys":
        options = ["-t", "cuda", "--cuda-graph-trace=node", "-s", "none", "--cpuctxsw=none", "-f", "true", "-o", OUT / "cost"]
        command = [nsys(), "profile", *options, *command]
    variables = [f"{name}={value}" for name, value in WAYS[way].items()]
    ran = run([sys.executable, HERE / "peak.py", PEAK, "env", *variables, *command], 120)
    said = done(ran.stdout)
    if ran.returncode != 0 or not said or not PEAK.exists():
        say(program, way, "failed:", ran.returncode, ran.stdout[-300:], ran.stderr[-300:])
        return None
    return said, json.loads(PEAK.read_text())


def ms(what):
    return (what.end - what.begin) / 1e6


def of(said, name):
    return [what for what in said if what.what == name]


def median(numbers, places=0):
    return f"{statistics.median(numbers):.{places}f}" if numbers else "-"


def written(name, heading, lines):
    text = "\n".join([f"# {machine()}; tests/cuda/run BIN OUT --{name}", *heading, *lines]) + "\n"
    (OUT / f"{name}.tsv").write_text(text)
    print(text, flush=True)


def costs(name, programs, most):
    """`programs`: a command, the kernels of each of what it counts, its threads, the ways."""
    found = collections.defaultdict(list)
    with Open():
        for _ in rounds(most):
            for what, (program, nodes, threads, ways) in programs.items():
                for way in ways:
                    one = measured(program, way)
                    if not one:
                        continue
                    said, peak = one
                    worked = next(line for line in reversed(said) if line.what in ("rate", "graph", "block"))
                    before, after = of(said, "cpu")
                    kernels = worked.count * nodes
                    found[what, way].append(
                        {
                            "ns": (worked.end - worked.begin) / kernels * threads,
                            "cpu": (after.count - before.count) / kernels,
                            "own": (after.begin - before.begin) / kernels,
                            "elsewhere": peak["cpu_s"] - after.count / 1e9,
                            "mib": peak["mib"],
                            "kernels": kernels,
                            **{"kept": f"{line.count} of {kernels}" for line in of(said, "profiler-events")},
                        }
                    )
    lines = ["what\thow\tns\tratio_to_floor\tns_of_each_round\tcpu_ns\tcpu_s_elsewhere\tmib\trecorders_cpu_ns"]
    middle = lambda what, way, column: statistics.median(round[column] for round in found[what, way]) if found[what, way] else float("nan")
    for (what, way), values in list(found.items()):
        each = ",".join(f"{value['ns']:.0f}" for value in values)
        ns, floor = middle(what, way, "ns"), middle(what, "floor", "ns")
        columns = [f"{ns:.0f}", f"{ns / floor:.2f}", each, f"{middle(what, way, 'cpu'):.0f}", f"{middle(what, way, 'elsewhere'):.2f}", f"{middle(what, way, 'mib'):.0f}", f"{middle(what, way, 'own'):.0f}"]
        lines.append("\t".join([what, way, *columns]))
        kept = [value["kept"] for value in values if "kept" in value]
        if kept:
            say(what, way, "has of the operations", kept)
    heading = [
        "# cpu_ns: of the program's process per kernel, while it launches and half a second longer. cpu_s_elsewhere: of all else, that is the end of the",
        "# program and other processes that the way of measuring has. mib: the most memory of all processes together. recorders_cpu_ns: of cpu_ns, what the",
        "# recorder's own threads took",
    ]
    aims = ["what\taim\twanted_at_most\tfound"]
    for what in programs:
        ratio = middle(what, "recorded", "ns") / middle(what, "floor", "ns")
        more = middle(what, "recorded", "cpu") - middle(what, "floor", "cpu")
        memory = middle(what, "recorded", "mib") - middle(what, "plain", "mib")
        aims += [f"{what}\twall to floor\t1.10\t{ratio:.2f}", f"{what}\tCPU above floor, ns per kernel\t1500\t{more:.0f}", f"{what}\tMiB above plain\t120\t{memory:.0f}"]
        if found[what, "nsys"]:
            all_of = lambda way: middle(what, way, "cpu") + middle(what, way, "elsewhere") * 1e9 / middle(what, way, "kernels")
            aims.append(f"{what}\tCPU of all processes, ns per kernel, to nsys's\t{all_of('nsys'):.0f}\t{all_of('recorded'):.0f}")
            aims.append(f"{what}\tMiB, to nsys's\t{middle(what, 'nsys', 'mib'):.0f}\t{middle(what, 'recorded', 'mib'):.0f}")
    written(name, heading, lines + aims)
    if nsys():
        files = [(file.suffix, file.stat().st_size) for file in OUT.glob("cost.*") if file.suffix.startswith((".nsys", ".qd"))]
        say(run([nsys(), "--version"]).stdout.strip(), nsys(), "left", files)


def programs_of_the_driver():
    also = (["torch.profiler"] if has_torch() else []) + (["nsys"] if nsys() else [])
    rate = ["launch=1000", "cpu", "rate=1500", "sleep=500", "cpu"]
    graph = ["nodes=100", "graph=20", "cpu", "graph=10000", "sleep=500", "cpu"]
    costs(
        "cost",
        {
            "launch": ([WORK, *rate], 1, 1, ["plain", "floor", "recorded", "args", *also]),
            "threads": ([WORK, "threads=4", *rate], 1, 4, ["plain", "floor", "recorded", "args", *also]),
            "graph": ([WORK, *graph], 100, 1, ["plain", "floor", "recorded", "as launches", *also]),
        },
        5,
    )


def block():
    if has_torch():
        ways = ["plain", "floor", "recorded", "late", "args", "torch.profiler"] + (["nsys"] if nsys() else [])
        costs("block", {"block": ([sys.executable, HERE / "block.py", 400], BLOCK_KERNELS, 1, ways)}, 7)


def readable(file, rows, seconds=20):
    """When the file has so many operations, ns of CLOCK_MONOTONIC."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if Trace(file).number("select count(*) from rocpd_op") >= rows:
                return time.monotonic_ns()
        except sqlite3.OperationalError:
            pass
        time.sleep(0.005)
    return time.monotonic_ns()


def is_at(process, number):
    """What the program said until it waits there."""
    said = ""
    for line in process.stdout:
        if line.startswith(f"await {number} "):
            break
        said += line
    return done(said)


def begins(found):
    """cuInit, and the first kernel."""
    for way in ["plain", "floor", "recorded", "by the variable"]:
        one = measured([WORK, "launch=1"], way)
        if not one:
            continue
        (init, launch), _ = one
        found["cuInit", way].append(ms(init))
        found["cuInit to the first kernel's end", way].append((launch.end - init.begin) / 1e6)
        if way in ("recorded", "by the variable"):
            check(f"the first kernel, {way}", Trace(TRACE).operations() == {"KernelExecution": 1})


def begins_with_torch(found):
    for way in ["plain", "floor", "recorded", "torch.profiler"]:
        one = measured([sys.executable, HERE / "block.py", 1], way)
        if not one:
            continue
        said, _ = one
        found["torch.cuda.init", way].append(ms(of(said, "cuInit")[0]))
        for what in of(said, "profiler-start"):
            found["the profiler's first start", way].append(ms(what))


def starts(found):
    """rpdstart after cuInit, then after a pause in which CUPTI has gone, then after one in which it has not."""
    words = ["launch=10", "start", "launch=10", "stop", "sleep=1500", "start", "launch=10", "stop", "start", "launch=10"]
    TRACE.unlink(missing_ok=True)
    ran = run([WORK, *words], **RECORDED, RPDT_AUTOSTART=0)
    for what, line in zip(("first", "after a long pause", "at once after a stop"), of(done(ran.stdout), "rpdstart")):
        found[f"rpdstart, {what}", "recorded"].append(ms(line))
    kernels = Trace(TRACE).operations() if TRACE.exists() else ran.stderr
    check("what is launched after rpdstart", kernels == {"KernelExecution": 30}, str(kernels))


def stops(found):
    """By the program itself, after a million kernels; then the same by rpdRemote."""
    there = place("stop")
    file = there / "trace.rpd"
    for name, loaded, words in (
        ("rpdstop", {"LD_PRELOAD": RECORDER}, ["threads=4", f"launch={MILLION // 4}", "stop", "await=1"]),
        ("rpdRemote stop", LOADER, ["await=1", "threads=4", f"launch={MILLION // 4}", "await=2"]),
    ):
        file.unlink(missing_ok=True)
        for number in (1, 2):
            (there / f"awaited-{number}").unlink(missing_ok=True)
        variables = {name: str(value) for name, value in {**loaded, "RPDT_FILENAME": file}.items()}
        process = subprocess.Popen([WORK, *words], cwd=there, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True)
        try:
            said = is_at(process, 1)
            if name == "rpdstop":
                stop = of(said, "rpdstop")[0]
                begin, end = stop.begin, stop.end
            else:
                ask("start", process, "--wait")
                (there / "awaited-1").touch()
                is_at(process, 2)
                begin = time.monotonic_ns()
                ask("stop", process, "--wait")
                end = time.monotonic_ns()
            found[name, "recorded"].append((end - begin) / 1e6)
            found[f"{name} to all rows in the file", "recorded"].append((readable(file, MILLION) - begin) / 1e6)
            for number in (1, 2):
                (there / f"awaited-{number}").touch()
            process.wait(60)
        finally:
            finish(process)
        kernels = Trace(file).operations()
        check(f"{name}: a million kernels", kernels == {"KernelExecution": MILLION}, str(kernels))


def stops_of_torch(found):
    one = measured([sys.executable, HERE / "block.py", 400], "torch.profiler")
    for what in of(one[0], "profiler-end") if one else []:
        found[f"the profiler's end after {400 * BLOCK_KERNELS} kernels", "torch.profiler"].append(ms(what))


def ends(found):
    """From the last kernel to the end of the program, and so to the whole file."""
    for way in ["plain", "floor", "recorded"] + (["nsys"] if nsys() else []):
        one = measured([WORK, "threads=4", "launch=1000", "rate=1500"], way)
        if one:
            said, peak = one
            found["the last kernel to the end of the command", way].append((peak["ended_ns"] - said[-1].end) / 1e6)


def times():
    """Starts, stops and ends, in ms."""
    found = collections.defaultdict(list)
    parts = [(begins, 11), (starts, 5), (stops, 5), (ends, 3)]
    parts += [(begins_with_torch, 3), (stops_of_torch, 1)] if has_torch() else []
    with Open():
        for part, most in parts:
            for _ in rounds(most):
                part(found)
    lines = ["what\thow\tms\tms_of_each"]
    lines += ["\t".join([what, way, median(each, 1), ",".join(f"{value:.1f}" for value in each)]) for (what, way), each in found.items()]
    aims = ["what\taim\twanted_at_most\tfound"]
    for what in ("cuInit", "cuInit to the first kernel's end"):
        if found[what, "recorded"] and found[what, "plain"]:
            more = statistics.median(found[what, "recorded"]) - statistics.median(found[what, "plain"])
            aims.append(f"{what}\tms above plain\t50\t{more:.1f}")
    for what in ("rpdstop", "rpdRemote stop"):
        aims.append(f"{what}\tms to all rows in the file, after a million kernels\t1000\t{median(found[f'{what} to all rows in the file', 'recorded'])}")
    written("times", [], lines + aims)
