"""`rpd record --libraries`: each call of a library is there with its arguments, and with the kernels that torch.profiler has in another run."""

import collections
import json
import math
import statistics
import sys

from common import BIN, HERE, OUT, Trace, check, gpus, machine, record, run, say
from cost import Open, rounds

PROGRAM = [sys.executable, HERE / "calls.py"]
# A kernel's time against the program's, by events between calls.
NEAR = 0.1
# How many lines calls.py says.
KINDS = {"one": 9, "two": 4}


def lines(ran):
    """What the program says that it has called, by function and arguments; of several processes that say the same, together."""
    found = {}
    # Two processes may write before either has ended its line.
    for line in ran.stdout.replace("}{", "}\n{").splitlines():
        if not line.startswith("{"):
            continue
        said = json.loads(line)
        kernels = said.pop("kernels", {})
        one = found.setdefault((said["function"], json.dumps(said["arguments"])), {**said, "calls": 0, "kernels": collections.Counter()})
        one["calls"] += said["calls"]
        one["kernels"].update(kernels)
    return found


def recorded(name, how):
    """The rows of `rpd libraries` for what the program does in a recording."""
    ran, path = record(name, [*PROGRAM, how], RPDT_LIBRARIES="all")
    check(f"{how}: the program ends as without", ran.returncode == 0, ran.stderr[-500:])
    said = run([BIN / "rpd", "libraries", "--json", path])
    (OUT / name).with_suffix(".json").write_text(said.stdout)
    shown = run([BIN / "rpd", "libraries", path])
    say("\n     ".join(line[:170] for line in shown.stdout.splitlines()))
    return lines(ran), json.loads(said.stdout), Trace(path)


def has(configuration, arguments):
    pairs = dict(pair.split("=", 1) for pair in configuration.split(" | ") if "=" in pair)
    return all(pairs.get(name) == str(value) for name, value in arguments.items())


def launching(trace, function):
    """How many calls of the function have how many kernels between their begin and end on their thread, by the links of the trace."""
    inside = "join api A on A.pid = L.pid and A.tid = L.tid and A.start >= L.start and A.end <= L.end join rocpd_api_ops X on X.api_id = A.id"
    kernels = f"{inside} join op O on O.id = X.op_id and O.opType = 'KernelExecution'"
    return trace.rows(f"select count(distinct L.id), count(distinct O.id) from libraryCall L {kernels} where L.apiName = '{function}'")[0]


def compare(how, name):
    said, rows, trace = recorded(name, how)
    profiled = lines(run([*PROGRAM, how, "profile"]))
    check(f"{how}: the program called all that it should", len(said) == KINDS[how], f"{len(said)} kinds of calls")
    launched = collections.Counter()
    for (function, arguments), one in said.items():
        fit = [row for row in rows if row["function"] == function and has(row["configuration"], one["arguments"])]
        what = f"{function} {' '.join(f'{key}={value}' for key, value in one['arguments'].items())}"
        of_all = collections.Counter()
        for row in fit:
            of_all.update({kernel["name"]: kernel["operations"] for kernel in row["kernels"] if not kernel["name"].startswith(("Copy", "Fill"))})
        launched[function] += sum(of_all.values())
        calls, failed = sum(row["calls"] for row in fit), sum(row["failed"] for row in fit)
        check(f"{what}: one row, {one['calls']} calls", (len(fit), calls, failed) == (1, one["calls"], 0), f"{len(fit)} rows, {calls} calls, {failed} failed")
        theirs = profiled[function, arguments]["kernels"] if (function, arguments) in profiled else None
        if theirs is not None:
            check(f"{what}: kernels are torch.profiler's", of_all and of_all == theirs, f"{dict(of_all)} recorded, {dict(theirs)} profiled")
        if fit:
            speed(what, one, fit[0])
    for function, kernels in launched.items():
        calls, of_links = launching(trace, function)
        made = sum(one["calls"] for (other, _), one in said.items() if other == function)
        check(f"{function}: each call is linked to its kernels", (calls, of_links) == (made, kernels), f"{calls} of {made} calls, {of_links} kernels, {kernels} by rpd libraries")
    trace.check(f"libraries, {how}")
    trace.linked(f"libraries, {how}")


def speed(what, said, row):
    """What is worked out from the sizes."""
    size = said["arguments"]
    if {"m", "n", "k"} <= size.keys():
        flop = 2 * size["m"] * size["n"] * size["k"] * size.get("batchCount", 1) * row["calls"]
        found = (row["gflop_per_s"] or 0) * row["gpu_ns"]
        check(f"{what}: GFLOP/s are 2mnk's", abs(found - flop) < 1e-6 * flop, f"{row['gflop_per_s']} GFLOP/s")
    if "n" in size and "batch" in size:
        numbers = math.prod(int(length) for length in size["n"].split(","))
        flop = 5 * numbers * math.log2(numbers) * size["batch"] * row["calls"]
        found = (row["gflop_per_s"] or 0) * row["gpu_ns"]
        check(f"{what}: GFLOP/s are those of 5 N log2 N", abs(found - flop) < 1e-6 * flop, f"{row['gflop_per_s']} GFLOP/s")
    if "us" in said:
        ratio = row["gpu_us"] / said["us"]
        check(f"{what}: as long as by the program's events", abs(ratio - 1) < NEAR, f"{row['gpu_us']:.1f} us, {said['us']:.1f} us by events")
    if "bytes" in said:
        rate = said["bytes"] * row["calls"] / row["gpu_ns"]
        ours = (row["gb_per_s"] or 0, row["bus_gb_per_s"] or 0)
        near = all(abs(one - other) < 1e-6 * other for one, other in zip(ours, (rate, rate * said["factor"])))
        check(f"{what}: bandwidths are the bytes' and bus's", near, f"{ours[0]:.1f} and {ours[1]:.1f} GB/s")


def libraries():
    compare("one", "libraries.rpd")
    if gpus() >= 2:
        compare("two", "libraries-two.rpd")
    else:
        say("one GPU")
    cost()


def cost(calls=20_000):
    """What a call of cuBLAS costs more while it is recorded."""
    ways = {"plain": None, "recorded": "none", "with --libraries cublas": "cublas"}
    found = collections.defaultdict(list)
    with Open():
        for _ in rounds(7):
            for way, wanted in ways.items():
                command = [*PROGRAM, f"loop={calls}"]
                ran, path = record("loop.rpd", command, RPDT_LIBRARIES=wanted) if wanted else (run(command), None)
                said = json.loads(next((line for line in ran.stdout.splitlines() if line.startswith("{")), "{}"))
                if not said:
                    say(way, "failed:", ran.returncode, ran.stderr[-300:])
                    continue
                found[way].append(said["ns"])
                if wanted == "cublas":
                    rows = Trace(path).number("select count(*) from libraryCall where apiName = 'cublasSgemm_v2'")
                    check("each product of the loop has a row", rows == said["calls"], f"{rows} of {said['calls']}")
    middle = {way: statistics.median(times) for way, times in found.items()}
    table = ["how\tns_per_torch_mm\tns_of_each_round"]
    table += ["\t".join([way, f"{middle[way]:.0f}", ",".join(f"{time:.0f}" for time in times)]) for way, times in found.items()]
    more = middle.get("with --libraries cublas", float("nan")) - middle.get("recorded", float("nan"))
    table.append(f"# a call of cuBLAS costs {more:.0f} ns more where it is recorded")
    text = "\n".join([f"# {machine()}; tests/cuda/run BIN OUT --libraries", *table]) + "\n"
    (OUT / "libraries.tsv").write_text(text)
    print(text, flush=True)
