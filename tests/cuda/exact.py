"""Programs of the driver's interface: what is recorded of them is what they say they have done."""

import collections
import json
import re
import shutil
import sys

from common import BIN, FLOOR, HERE, OUT, PROGRAMS, RECORDER, WORK, Trace, check, done, record, run, say

# By CUPTI's kinds of copies; 0 for those that it does not know.
TO_DEVICE, TO_HOST, ON_DEVICE, ON_HOST = "CopyHostToDevice", "CopyDeviceToHost", "CopyDeviceToDevice", "CopyHostToHost"
DIRECTIONS = [ON_DEVICE, TO_DEVICE, TO_HOST, TO_DEVICE, TO_HOST, ON_DEVICE, ON_DEVICE, ON_DEVICE, ON_DEVICE, ON_HOST, ON_DEVICE]
FILL = "FillBuffer"


def counts():
    words = ["nodes=100", "launch=1000", "copy=300", "fill=50", "graph=200", "capture=7", "threads=4", "launch=10000", "graph=25"]
    ran, path = record("exact.rpd", [WORK, *words])
    trace = Trace(path)
    # A thread's first graph is captured from launches that run later.
    kernels = 1000 + 200 * 100 + 4 * 10000 + 4 * 25 * 100
    expected = {"KernelExecution": kernels, TO_DEVICE: 100, ON_DEVICE: 100, TO_HOST: 100, FILL: 50}
    check("counts", trace.operations() == expected, str(trace.operations()))
    for what, count, begin, end in done(ran.stdout):
        if what in ("launch", "graph"):
            kernels = count * (100 if what == "graph" else 1)
            inside = trace.number(f"select count(*) from op where opType = 'KernelExecution' and start >= {begin} and end <= {end}")
            check(f"kernels of {what} inside the host's times", inside == kernels, f"{inside} of {kernels}")
    nodes = trace.rows("select count(*), count(distinct graph), count(distinct graphNode) from ext_launchattribute")
    check("each launch of a graph has the same 100 nodes", nodes == [(30000, 4, 400)], str(nodes))
    trace.linked("counts")
    trace.check("counts")
    versions = trace.rows("select substr(tag, 21), value from rocpd_metadata where tag like 'session::0::version::%'")
    say(versions, trace.rows("select value from rocpd_metadata where tag like 'gpu::%'"))


def copies():
    """Of every kind. What CUPTI has records of, a program says that reads them by itself."""
    program = [PROGRAMS / "copies", 20]
    records = OUT / "copies.txt"
    records.unlink(missing_ok=True)
    run(program, FLOOR_RECORDS=records, **FLOOR)
    by_cupti = collections.Counter()
    for line in records.read_text().splitlines():
        what, kind, size = line.split()
        by_cupti[DIRECTIONS[int(kind)] if what == "copy" else FILL, int(size)] += 1
    ran, path = record("copies.rpd", program)
    trace = Trace(path)
    of_copies = "from rocpd_api_ops L join op O on O.id = L.op_id join rocpd_copyapi C on C.api_ptr_id = L.api_id group by 1, 2"
    recorded = {(what, size): count for what, size, count in trace.rows(f"select opType, size, count(*) {of_copies}")}
    differ = {key: (by_cupti[key], recorded.get(key, 0)) for key in {*by_cupti, *recorded} if by_cupti[key] != recorded.get(key, 0)}
    check("copies of every kind are CUPTI's", recorded and not differ, f"{sum(recorded.values())} recorded, {sum(by_cupti.values())} by CUPTI; differ: {differ}")
    made = collections.Counter()
    for kind, count, size, call in (line.split() for line in ran.stdout.splitlines() if not line.startswith("no ")):
        made[call] += int(count)
        by_direction = {what: number for (what, bytes_), number in recorded.items() if bytes_ == int(size)}
        source, _, rest = kind.partition("-to-")
        on_host = lambda side: side.startswith(("host", "pageable", "pinned"))
        direction = TO_DEVICE if on_host(source) else TO_HOST if on_host(rest) else ON_DEVICE
        if kind.startswith("any-"):
            # How CUPTI tells of these is not written down.
            say(kind, count, by_direction)
        else:
            check(f"copies {kind}", by_direction == {direction: int(count)}, str(by_direction))
    calls = dict(trace.rows("select apiName, count(*) from api where apiName like 'cuMemcpy%' group by 1"))
    check("calls of copies", ran.returncode == 0 and calls == made, f"{calls}; the program: {dict(made)} {ran.stdout[-200:] if ran.returncode else ''}")
    trace.linked("copies")
    trace.check("copies")
    ran, path = record("copies-arguments.rpd", program, RPDT_CUDA_APIS="args")
    trace = Trace(path)
    # Of a rectangle they are its width and height.
    size = re.compile(r"ByteCount=0x([0-9a-f]+)|WidthInBytes=0x([0-9a-f]+) \| Height=0x([0-9a-f]+)")
    given = collections.Counter()
    for call, arguments in trace.rows("select apiName, args from api where apiName like 'cuMemcpy%'"):
        words = size.search(arguments)
        bytes_, width, height = (int(word or "0", 16) for word in words.groups()) if words else (0, 0, 0)
        given[call, bytes_ or width * height] += 1
    said = {(call, int(size)): int(count) for _, count, size, call in (line.split() for line in ran.stdout.splitlines() if not line.startswith("no "))}
    differ = {key: (said.get(key), given.get(key)) for key in {*said, *given} if said.get(key) != given.get(key)}
    check("arguments of copies say their bytes", said and not differ, str(differ))
    say(trace.rows("select apiName, args from api where apiName like 'cuMemcpy2D%' or apiName like '%Peer%' group by 1"))


def two_processes():
    """Two programs at the same time, on one GPU, into one file."""
    commands = f"'{WORK}' launch=20000 copy=30 sleep=500 launch=100 & '{WORK}' threads=2 launch=10000 fill=7 sleep=500 & wait"
    _, path = record("two.rpd", ["sh", "-c", commands])
    trace = Trace(path)
    expected = {"KernelExecution": 40100, TO_DEVICE: 10, ON_DEVICE: 10, TO_HOST: 10, FILL: 14}
    check("two processes in one file", trace.operations() == expected, str(trace.operations()))
    sessions = trace.rows("select count(*), min(gpuId), max(gpuId), min(start), max(end) from rocpd_op group by id >> 32 order by 1")
    check("two processes: each has its own", [session[0] for session in sessions] == [20014, 20130], str(sessions))
    check("two processes: one GPU", len({gpu for session in sessions for gpu in session[1:3]}) == 1, str(sessions))
    say("they overlapped by", f"{(min(session[4] for session in sessions) - max(session[3] for session in sessions)) / 1e6:.0f} ms")
    trace.linked("two processes")
    trace.check("two processes")


def many():
    peak = OUT / "peak.json"
    words = ["threads=4", "launch=750000"]
    plain = run([sys.executable, HERE / "peak.py", peak, WORK, *words], 400)
    without = json.loads(peak.read_text())
    path = OUT / "many.rpd"
    path.unlink(missing_ok=True)
    command = ["env", f"LD_PRELOAD={RECORDER}", f"RPDT_FILENAME={path}", WORK, *words]
    ran = run([sys.executable, HERE / "peak.py", peak, *command], 400)
    used = json.loads(peak.read_text())
    trace = Trace(path)
    check("3,000,000 launches", trace.operations() == {"KernelExecution": 3_000_000}, str(trace.operations()))
    calls = trace.number("select count(*) from api where apiName = 'cuLaunchKernel'")
    check("3,000,000 launches: calls", calls == 3_000_000, calls)
    lost = trace.rows("select tag, value from rocpd_metadata where tag like '%::lost::%'")
    check("3,000,000 launches: nothing lost", not lost, str(lost))
    trace.linked("3,000,000 launches")
    recorder = trace.number("select cast(value as integer) / 1e9 from rocpd_metadata where tag = 'session::0::recorder_cpu_ns'")
    launched = [(launch.end - launch.begin) / 1e9 for text in (plain.stdout, ran.stdout) for launch in done(text)[-1:]]
    say("s of launching: plain, recorded", launched, f"; {path.stat().st_size / 3e6:.0f} bytes per launch")
    say(f"CPU: plain {without['cpu_s']:.1f} s, recorded {used['cpu_s']:.1f} s, of it the recorder's threads {recorder:.1f} s")
    say(f"memory: plain {without['mib']:.0f} MiB, recorded {used['mib']:.0f} MiB, so {used['mib'] - without['mib']:.0f} more; the aim is 120")
    path.unlink()


def ends():
    for end in ["_exit", "exit", "abort", "return"]:
        for way in ["record", "variable"]:
            words = ["threads=2", "launch=3000"] + ([] if end == "return" else [end])
            path = OUT / f"end-{end}-{way}.rpd"
            path.unlink(missing_ok=True)
            if way == "record":
                record(path.name, [WORK, *words])
            else:
                run([WORK, *words], CUDA_INJECTION64_PATH=RECORDER, RPDT_FILENAME=path)
            trace = Trace(path)
            check(f"{end} by {way}", trace.operations() == {"KernelExecution": 6000}, str(trace.operations()))
            trace.linked(f"{end} by {way}")
            path.unlink()
    for way in ["record", "variable"]:
        path = OUT / f"uncaught-{way}.rpd"
        path.unlink(missing_ok=True)
        program = [sys.executable, HERE / "uncaught.py", 3000]
        if way == "record":
            ran, _ = record(path.name, program)
        else:
            ran = run(program, CUDA_INJECTION64_PATH=RECORDER, RPDT_FILENAME=path)
        trace = Trace(path)
        ended = ran.returncode == 1 and "RuntimeError: nobody catches this" in ran.stderr
        held = ended and trace.operations() == {"KernelExecution": 3000}
        check(f"an exception that nobody catches, by {way}", held, f"{trace.operations()} {ran.returncode} {ran.stderr[-200:] if not ended else ''}")
        trace.linked(f"an exception, by {way}")
        trace.check(f"an exception, by {way}")
    ran, path = record("kill.rpd", [WORK, "rate=1500", "kill"])
    trace = Trace(path)
    _, _, _, killed = done(ran.stdout)[-1]
    missing = (killed - trace.number("select max(end) from rocpd_op")) / 1e6
    check("kill -9: at most 200 ms are missing", missing <= 200, f"{missing:.0f} ms")
    trace.check("kill -9", 1)
    ran, path = record("fork.rpd", [WORK, "launch=1000", "fork=4", "launch=100", "_exit"], 60)
    trace = Trace(path)
    check("fork", trace.operations() == {"KernelExecution": 1100} and "child ended" not in ran.stdout, ran.stdout[-200:])


def details():
    ran, path = record("details.rpd", [WORK, "launch=10", "copy=3", "free"])
    trace = Trace(path)
    texts = lambda name: [row[0] for row in trace.rows(f"select distinct args from api where apiName = '{name}'")]
    waits, allocated, freed = [texts(name) for name in ("cuStreamSynchronize", "cuMemAlloc_v2", "cuMemFree_v2")]
    check("what is waited for", len(waits) == 1 and re.fullmatch("stream=0x[0-9a-f]+", waits[0]), str(waits))
    same = len(allocated) == len(freed) == 1 and allocated[0].split(" ")[0] == freed[0].split(" ")[0] and "size=0x20000" in allocated[0]
    check("what is allocated and freed", same, str(allocated + freed))
    facts = trace.rows("select substr(tag, 13), value from rocpd_metadata where tag like 'session::0::cuda::%'")
    kinds = {tag.split("::")[1] for tag, _ in facts}
    check("streams, contexts and overheads", kinds == {"stream", "context", "overhead"}, str(facts))
    ran, path = record("arguments.rpd", [WORK, "threads=4", "launch=20000", "copy=30", "fill=3", "free"], RPDT_CUDA_APIS="args")
    trace = Trace(path)
    like = "f=0x% | gridDimX=3 | gridDimY=2 | gridDimZ=1 | blockDimX=64 | blockDimY=1 | blockDimZ=1 | sharedMemBytes=128 | hStream=0x%"
    launches = trace.number(f"select count(*) from api where apiName = 'cuLaunchKernel' and args like '{like}'")
    check("arguments of launches", launches == 80000, str(launches))
    without = trace.rows("select apiName, count(*) from api where args = '' and (apiName like 'cuMem%' or apiName like 'cuLaunch%') group by 1")
    check("arguments of copies, fills and allocations", not without, str(without))
    say(trace.rows("select apiName, args from api where apiName like 'cuMem%' group by 1"))
    trace.linked("arguments")


def graphs():
    ran, path = record("graphs.rpd", [WORK, "launch=10", "graph=1000"], RPDT_CUDA_GRAPHS="launch")
    trace = Trace(path)
    check("graphs as launches", trace.operations() == {"KernelExecution": 10, "GraphExecution": 1000}, str(trace.operations()))
    trace.linked("graphs as launches")
    trace.check("graphs as launches")


def code():
    ran, path = record("code.rpd", [WORK, "launch=10"], RPDT_SAVE_CODE=OUT / "code")
    saved = list((OUT / "code").glob("*.cubin"))
    check("cubins are saved", len(saved) == 1, str(saved))
    for command in (["code", "--args", saved[0]], ["code", path]) if saved else ():
        ran = run([BIN / "rpd", *command])
        check("rpd code", ran.returncode == 0 and "empty()" in ran.stdout, ran.stdout + ran.stderr)
    if saved and shutil.which("cuobjdump"):
        say(" ".join(run(["cuobjdump", "-res-usage", saved[0]]).stdout.split()))
    shutil.rmtree(OUT / "code", ignore_errors=True)


def exact():
    for part in [counts, copies, two_processes, details, graphs, code, ends, many]:
        part()
