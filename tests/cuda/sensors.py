"""What NVML says of a GPU that works, in the trace, by NVML itself and by the program; what sampling costs; and where there is no NVML."""

import ctypes
import json
import os
import sys
import threading
import time

from common import BIN, HERE, OUT, WORK, Trace, check, machine, place, record, run, say

# What joules may be off by, as a part of those of the counter.
NEAR = 0.05
CPU = "select cast(value as integer) / 1e9 from rocpd_metadata where tag = 'session::0::recorder_cpu_ns'"


class Energy(threading.Thread):
    """What the counter of energy of the first GPU says while a command runs, by a process that is not recorded: (ns, J)."""

    def __init__(self):
        super().__init__(daemon=True)
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        assert self.nvml.nvmlInit_v2() == 0 and self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)) == 0
        self.read, self.goes_on = [], True

    def run(self):
        number = ctypes.c_ulonglong()
        while self.goes_on:
            if self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.device, ctypes.byref(number)) == 0:
                self.read.append((time.monotonic_ns(), number.value / 1000))
            time.sleep(0.02)

    def at(self, moment):
        """Between the two readings around that time."""
        before = [one for one in self.read if one[0] <= moment][-1]
        after = [one for one in self.read if one[0] >= moment][0]
        share = (moment - before[0]) / max(1, after[0] - before[0])
        return before[1] + share * (after[1] - before[1])


def sensors():
    readings()
    costs()
    without_nvml()


def readings():
    """A long loop of matrix products: what NVML's counter says is what the trace has, and what rpd energy makes of it."""
    sampled = Energy()
    sampled.start()
    ran, path = record("sensors.rpd", [sys.executable, HERE / "matmul.py", 12], RPDT_MONITOR="all", RPDT_MONITOR_PERIOD="10ms")
    sampled.goes_on = False
    sampled.join()
    trace = Trace(path)
    rows = dict(trace.rows("select monitorType, count(*) from rocpd_monitor group by 1"))
    wanted = {"power", "energy", "vram", "sclk", "mclk", "temp_edge", "gpu_util", "mem_util"}
    check("sensors have rows", wanted <= set(rows), f"{rows} {ran.stderr.strip()}")
    # The driver's buffer has 50 samples a second, its other values change ten times.
    check("power has the driver's samples", rows.get("power", 0) > 300, rows)
    joules(trace, ran.stdout, sampled)
    busiest = "select max(cast(value as real)) from rocpd_monitor where monitorType = '{}'"
    power, vram = (trace.number(busiest.format(sensor)) for sensor in ("power", "vram"))
    check("power and memory are possible", 100 < power < 1500 and 400e6 < vram < 1e12, f"{power} W, {vram} bytes")
    say(trace.rows("select tag, value from rocpd_metadata where tag like 'session::0::monitor%'"))
    for end in ("_exit", "exit", "return"):
        words = ["launch=100", "sleep=300"] + ([] if end == "return" else [end])
        ran, path = record(f"sensors-{end}.rpd", [WORK, *words], RPDT_MONITOR="all", RPDT_MONITOR_PERIOD="1ms")
        status = {"_exit": 5, "exit": 6, "return": 0}[end]
        check(f"sensors and {end}", ran.returncode == status and Trace(path).number("select count(*) from rocpd_monitor") > 0, ran.stderr)


def near(what, ours, theirs, of_whom):
    check(what, abs(ours - theirs) < NEAR * theirs, f"{ours:.1f} J, {of_whom} {theirs:.1f} J")


def energy(path, by):
    """The report of a trace."""
    said = run([BIN / "rpd", "energy", "--json", "--by", by, path])
    told = run([BIN / "rpd", "energy", "--by", by, path])
    say("\n     ".join(told.stdout.splitlines()[:8]), told.stderr[-300:])
    check(f"rpd energy --by {by}", said.returncode == 0 and told.returncode == 0, said.stderr)
    (OUT / f"energy-{by}.json").write_text(said.stdout)
    return json.loads(said.stdout)


def joules(trace, printed, sampled):
    """Those of the trace, of its reports, of another process that reads the counter meanwhile, and of the program around its loop."""
    read = trace.rows("select start, cast(value as real) from rocpd_monitor where monitorType = 'energy' and deviceId = 0 order by start")
    # Nobody saw where the first value began.
    changes = [after for before, after in zip(read, read[1:]) if after[1] != before[1]]
    (begin, first), (end, last) = changes[0], changes[-1]
    by_nvml = sampled.at(end) - sampled.at(begin)
    near("energy is the counter's", last - first, by_nvml, "by NVML in another process")
    by_kernel, by_marker = energy(trace.path, "kernel"), energy(trace.path, "marker")
    [gpu] = [gpu for gpu in by_kernel["gpus"] if gpu["gpu"] == 0]
    near("rpd energy: the GPU's joules", gpu["joules"], by_nvml, "by NVML in another process")
    apart = abs(gpu["idle_joules"] + gpu["operations_joules"] - gpu["joules"])
    check("rpd energy: idle and operations are all", apart < 1e-6 * gpu["joules"], f"{apart} J apart")
    [said] = [line.split() for line in printed.splitlines() if line.startswith("joules ")]
    taken, seconds = float(said[1]), (int(said[3]) - int(said[2])) / 1e9
    floor = gpu["idle_watts"] * seconds
    of_kernels = sum(row["joules"] or 0 for row in by_kernel["rows"])
    of_range = sum(row["joules"] or 0 for row in by_marker["rows"] if row["name"] == "loop")
    near("rpd energy: joules of the kernels and the idle floor", of_kernels + floor, taken, f"the program's counter in {seconds:.2f} s")
    near("rpd energy --by marker: joules of the loop and the idle floor", of_range + floor, taken, "the program's counter")


def costs():
    """CPU of the recorder's threads in a loop of 8 s, and of rpd monitor in 8 s; no aim is a check."""
    matmul = [sys.executable, HERE / "matmul.py", 8]
    table = ["sensors\tperiod\tcpu_s\tpercent_of_a_core\tsamples\tmissed\trows"]

    def add(name, period, path):
        trace = Trace(path)
        facts = dict(trace.rows("select tag, value from rocpd_metadata where tag like 'session::0::monitor_samples%'"))
        begin, end = trace.rows("select min(start), max(\"end\") from (select start, \"end\" from rocpd_api union all select start, \"end\" from rocpd_monitor)")[0]
        cpu, seconds = trace.number(CPU), (end - begin) / 1e9
        samples, missed = (facts.get(f"session::0::monitor_samples{what}", "-") for what in ("", "_missed"))
        count = trace.number("select count(*) from rocpd_monitor")
        table.append("\t".join([name, period, f"{cpu:.3f}", f"{cpu / seconds * 100:.2f}", samples, missed, str(count)]))

    _, path = record("plain.rpd", matmul)
    add("none", "-", path)
    for period in ("10ms", "1ms"):
        for asked in ("power", "energy", "power,energy", "power,vram,gpu_util", "all"):
            _, path = record("cost.rpd", matmul, RPDT_MONITOR=asked, RPDT_MONITOR_PERIOD=period)
            add(asked, period, path)
        path = OUT / "monitor.rpd"
        ran = run([BIN / "rpd", "monitor", "--force", "-o", path, "--sensors", f"available:{period}", "--", "sleep", 8])
        check(f"rpd monitor each {period}", ran.returncode == 0, ran.stderr)
        add("rpd monitor, all there are", period, path)
    text = "\n".join([f"# {machine()}; tests/cuda/run BIN OUT --sensors: CPU of the recorder's threads beside 8 s of products", *table]) + "\n"
    (OUT / "sensors.tsv").write_text(text)
    print(text, flush=True)


def without_nvml():
    """A file that is no library stands in its place."""
    folder = place("without-nvml")
    (folder / "libnvidia-ml.so.1").touch()
    before = os.environ.get("LD_LIBRARY_PATH")
    hidden = {"LD_LIBRARY_PATH": f"{folder}:{before}" if before else str(folder)}
    reason = "libnvidia-ml.so.1, which has its sensors, cannot be loaded"
    for words, least in ((["launch=10", "sleep=1000"], 1), (["launch=10"], 0)):
        for sensors in ("power,energy", "available"):
            ran, path = record("without-nvml.rpd", [WORK, *words], RPDT_MONITOR=sensors, **hidden)
            what = f"without NVML, {' '.join(words)}, {sensors}"
            # A program may end before the recorder has looked for it. That no sensor was read is said in any case.
            said = [line for line in ran.stderr.splitlines() if reason in line]
            check(f"{what}: said once of each GPU", least <= len(said) == len(set(said)) and ran.stderr.count("no sensor was read") == 1, ran.stderr)
            kernels, rows = Trace(path).operations(), Trace(path).number("select count(*) from rocpd_monitor")
            check(f"{what}: kernels are recorded", ran.returncode == 0 and kernels == {"KernelExecution": 10} and rows == 0, f"{kernels}, {rows} rows of sensors")
    ran = run([BIN / "rpd", "monitor", "--force", "-o", OUT / "without-nvml.rpd", "--", "true"], **hidden)
    check("without NVML, rpd monitor: refused in words", ran.returncode == 1 and ran.stderr.strip(), ran.stderr)
