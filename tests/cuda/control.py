"""Recording is started and stopped: by the program itself, and from outside by rpdRemote."""

import bisect
import collections
import os
import shutil
import statistics
import subprocess
import time

from common import LOADER, OUT, PROGRAMS, WORK, Trace, ask, check, cupti, done, finish, place, record, run, say

# CUPTI has gone so long after a stop, s.
GOES = 0.75
# The cycles end then, whatever their number, s.
LONGEST = 400


def rates(text):
    return [line.split() for line in text.splitlines() if line.startswith("rate")]


def stops():
    words = ["threads=4", "rate=400"] + ["stop", "sleep=1500", "rate=400", "start", "rate=400"] * 3
    ran, path = record("stops.rpd", [WORK, *words])
    measured = rates(ran.stdout)
    on, off = [measured[0]] + measured[2::2], measured[1::2]
    trace = Trace(path)
    expected = sum(int(rate[1]) for rate in on)
    check("stop and start", trace.operations() == {"KernelExecution": expected}, f"{trace.operations()} {expected}")
    trace.linked("stop and start")
    trace.check("stop and start")
    plain = rates(run([WORK, "threads=4", "rate=400", "rate=400", "rate=400"]).stdout)
    times = [[float(rate[4]) for rate in group] for group in (plain, on, off)]
    say("ns per launch: plain, recorded, stopped", times)
    check("stopped as fast as plain", statistics.median(times[2]) < 1.2 * statistics.median(times[0]))
    path.unlink()
    # Of 200 pauses each tenth is so long that CUPTI goes.
    pauses = [f"sleep={700 if number % 10 == 0 else 20}" for number in range(200)]
    words = ["launch=100"] + [word for pause in pauses for word in ("stop", pause, "launch=10", "start", "launch=20")]
    ran, path = record("pauses.rpd", [WORK, *words], 120)
    trace = Trace(path)
    check("200 pauses", trace.operations() == {"KernelExecution": 4100}, str(trace.operations()))
    check("200 pauses: the program ends as without", ran.returncode == 0, f"{ran.returncode} {ran.stderr.strip()[-500:]}")
    trace.linked("200 pauses")


def remote():
    """A program that runs with the loader alone, started and stopped from outside; the time of its launches before, between and after."""
    there = place("remote")
    words = ["rate=400", "rate=400"] + [word for number in range(1, 8) for word in ("rate=400", f"await={number}")]
    process = subprocess.Popen([WORK, *words], cwd=there, env={**os.environ, **LOADER}, stdout=subprocess.PIPE, text=True)
    measured = []
    for number in range(1, 8):
        for line in process.stdout:
            measured += rates(line)
            if line.startswith("await"):
                break
        ran = ask("stop" if number % 2 == 0 else "start", process, "--wait")
        check(f"rpdRemote {number}", ran.returncode == 0, ran.stderr.strip())
        time.sleep(1.5)
        (there / f"awaited-{number}").touch()
    process.wait(timeout=60)
    trace = Trace(there / "trace.rpd")
    before, on, off = measured[:3], measured[3::2], measured[4::2]
    expected = sum(int(rate[1]) for rate in on)
    check("rpdRemote: kernels", trace.operations() == {"KernelExecution": expected}, f"{trace.operations()} {expected}")
    trace.linked("rpdRemote")
    trace.check("rpdRemote")
    times = [[float(rate[4]) for rate in group] for group in (before, on, off)]
    say("ns per launch: before, recorded, stopped", times)
    check("rpdRemote: stopped as fast as before", min(times[2]) < 1.2 * statistics.median(times[0]))
    calls = trace.number("select count(*) from api where apiName = 'cuLaunchKernel'")
    check("rpdRemote: calls", calls == expected, f"{calls} {expected}")
    # At any moment, that of cuInit among them; the program never waits, and what it launches after the start is recorded.
    for number in range(40):
        started(f"after {10 * number} ms", {"RPD_REMOTE_FROM": "start"}, [], lambda _: time.sleep(0.01 * number))
    # And while the first context is created, which takes a tenth of a second from cuInit on.
    for words in [], ["own"]:
        for number in range(60):
            def moment(process):
                process.stdout.readline()
                time.sleep(0.002 * number)
            started(f"{2 * number} ms behind cuInit {words}", {"RPD_REMOTE_FROM": "start"}, words, moment)
    # CUPTI alone does not survive that.
    for words in [], ["own"]:
        command = lambda number: [PROGRAMS / "attach", 2000 * number, *words]
        ended = [run(command(number), 60, ATTACH_CUPTI=cupti()).returncode for number in range(60)]
        say("CUPTI alone, attached each 2 ms behind cuInit", words, dict(collections.Counter(ended)))


def started(moment, variables, words, wait):
    """A program that is started when `wait` returns."""
    there = place("started")
    begin = time.perf_counter()
    environment = {**os.environ, **LOADER, **variables}
    process = subprocess.Popen([WORK, *words, "await=1", "launch=500"], cwd=there, env=environment, stdout=subprocess.PIPE, text=True)
    wait(process)
    ran = ask("start", process, "--wait")
    while ran.returncode != 0 and time.perf_counter() - begin < 5:
        # It may not have got as far as its first instruction.
        ran = ask("start", process, "--wait")
    (there / "awaited-1").touch()
    process.communicate(timeout=60)
    took = time.perf_counter() - begin
    kernels = Trace(there / "trace.rpd").operations() if (there / "trace.rpd").exists() else ran.stderr
    check(f"rpdRemote start {moment}", kernels == {"KernelExecution": 500} and process.returncode == 0, f"{kernels} {took:.1f} s")
    shutil.rmtree(there)


class Launching:
    """A program that launches for 10 ms of each 100 ms until it is told to end."""

    def __init__(self, name, variables):
        self.place = place(name)
        self.file = open(self.place / "said", "w+b")
        self.process = subprocess.Popen([WORK, "until=1"], cwd=self.place, env={**os.environ, **variables}, stdout=self.file, start_new_session=True)

    def end(self):
        """Each time that it launched: how many kernels, from and to in ns of CLOCK_MONOTONIC."""
        (self.place / "awaited-1").touch()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            say("the program did not end")
        finish(self.process)
        self.file.seek(0)
        return [what for what in done(self.file.read().decode()) if what.what == "rate"]

    def resident(self):
        pages = int((self.process_file("statm")).split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def process_file(self, name):
        with open(f"/proc/{self.process.pid}/{name}") as file:
            return file.read()


def each(pieces):
    """ns of a launch in each."""
    return [(piece.end - piece.begin) / piece.count for piece in pieces]


def plain():
    """The same program without the loader."""
    launching = Launching("plain", {})
    time.sleep(4)
    return statistics.median(each(launching.end()))


def cycles(count=200):
    """rpdRemote start and stop of a program that launches all the while. CUPTI goes in each pause."""
    without = [plain(), plain()]
    launching = Launching("cycles", LOADER)
    process = launching.process
    time.sleep(5)
    windows, wrong, memory, begin = [], [], [], time.monotonic()
    for number in range(count):
        moments = [time.monotonic_ns()]
        for verb, pause in (("start", 0.25), ("stop", 1.05)):
            ran = ask(verb, process, "--wait")
            if ran.returncode != 0:
                wrong.append((number, verb, ran.stderr.strip()[-200:]))
            moments.append(time.monotonic_ns())
            time.sleep(pause)
            moments.append(time.monotonic_ns())
        windows.append(moments)
        if process.poll() is not None or time.monotonic() - begin > LONGEST:
            break
        memory.append(launching.resident())
    time.sleep(4)
    pieces = launching.end()
    without += [plain(), plain()]
    check(f"{count} starts and stops were done", not wrong and len(windows) == count, f"{len(windows)}, {wrong[:3]}")
    check(f"{count} cycles: the program ends as without", process.returncode == 0, process.returncode)
    path = OUT / "cycles" / "trace.rpd"
    trace = Trace(path)
    starts = lambda name: sorted(row[0] for row in trace.rows(f"select start from rocpd_api where apiName_id in (select id from rocpd_string where string = '{name}')"))
    calls, made_up = starts("cuLaunchKernel"), starts("cudaOperation")
    within = lambda piece, moments=calls: bisect.bisect_right(moments, piece.end) - bisect.bisect_left(moments, piece.begin)
    # A window: asked to start, started, asked to stop, stopped, the next one.
    inside = lambda begin, end: [piece for piece in pieces if begin <= piece.begin and piece.end <= end]
    recorded = [piece for window in windows for piece in inside(window[1], window[2])]
    paused = [piece for window in windows for piece in inside(window[3], window[4])]
    stopped = [piece for window in windows for piece in inside(window[3] + GOES * 1e9, window[4])]
    before, after = inside(0, windows[0][0]), inside(windows[-1][3] + GOES * 1e9, float("inf"))
    short = [(piece.count, within(piece)) for piece in recorded if within(piece) != piece.count]
    check(f"{count} cycles: all that was launched while recording was on", recorded and not short, f"{len(recorded)} times of 10 ms, missing {short[:5]}")
    extra = [within(piece) for piece in paused if within(piece)]
    check(f"{count} cycles: nothing of what was launched while it was off", paused and not extra, f"{len(paused)} times of 10 ms, {extra[:5]}")
    without_call = sum(within(piece, made_up) for piece in recorded)
    check(f"{count} cycles: kernels without a call are of moments when CUPTI was attached alone", without_call == 0, f"{without_call} of {len(made_up)}")
    trace.linked(f"{count} cycles", is_late=True)
    trace.check(f"{count} cycles")
    groups = {"before": before, "recorded": recorded, "stopped": stopped, "after": after}
    medians = {what: statistics.median(each(group)) for what, group in groups.items() if group}
    tenth = max(1, len(stopped) // 10)
    course = [round(statistics.median(each(stopped[begin : begin + tenth]))) for begin in range(0, len(stopped), tenth)]
    say("ns per launch:", {what: round(time) for what, time in medians.items()}, f"; programs without the loader {[round(time) for time in without]}")
    say("ns per launch while stopped, in the course of the cycles:", course)
    say("MiB of the program after each tenth of the cycles:", [round(mib) for mib in memory[:: max(1, count // 10)]])
    least = max(medians["before"], max(without))
    check(f"{count} cycles: stopped as fast as plain", medians["stopped"] < 1.2 * least and medians["after"] < 1.2 * least, str(medians))
    path.unlink()
