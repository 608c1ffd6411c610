"""What NVML says of a GPU that works, in the trace and by NVML itself."""

import ctypes
import sys
import threading
import time

from common import BIN, HERE, OUT, WORK, Trace, check, record, run, say


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
    """A long loop of matrix products: what NVML's counter says is what the trace has, and what rpd energy makes of it."""
    sampled = Energy()
    sampled.start()
    matmul = [sys.executable, HERE / "matmul.py", 12]
    ran, path = record("sensors.rpd", matmul, RPDT_MONITOR="all", RPDT_MONITOR_PERIOD="10ms")
    sampled.goes_on = False
    sampled.join()
    trace = Trace(path)
    rows = dict(trace.rows("select monitorType, count(*) from rocpd_monitor group by 1"))
    wanted = {"power", "energy", "vram", "sclk", "mclk", "temp_edge", "gpu_util", "mem_util"}
    check("sensors have rows", wanted <= set(rows), f"{rows} {ran.stderr.strip()}")
    # The driver's buffer has 50 samples a second, its other values change ten times.
    check("power has the driver's samples", rows.get("power", 0) > 300, rows)
    energy = trace.rows("select start, cast(value as real) from rocpd_monitor where monitorType = 'energy' and deviceId = 0 order by start")
    ours = energy[-1][1] - energy[0][1]
    theirs = sampled.at(energy[-1][0]) - sampled.at(energy[0][0])
    check("energy is the counter's", abs(ours - theirs) < 0.05 * theirs, f"{ours:.0f} J, NVML {theirs:.0f} J")
    said = run([BIN / "rpd", "energy", "--json", path])
    told = run([BIN / "rpd", "energy", path])
    say("\n     ".join(told.stdout.splitlines()[:8]), told.stderr[-300:])
    check("rpd energy", said.returncode == 0 and told.returncode == 0, said.stderr)
    (OUT / "energy.json").write_text(said.stdout)
    busiest = "select max(cast(value as real)) from rocpd_monitor where monitorType = '{}'"
    power, vram = (trace.number(busiest.format(sensor)) for sensor in ("power", "vram"))
    check("power and memory are possible", 100 < power < 1500 and 400e6 < vram < 1e12, f"{power} W, {vram} bytes")
    say(trace.rows("select tag, value from rocpd_metadata where tag like 'session::0::monitor%'"))
    cpu = "select cast(value as integer) / 1e9 from rocpd_metadata where tag = 'session::0::recorder_cpu_ns'"
    with_sensors = trace.number(cpu)
    _, path = record("plain.rpd", matmul)
    say(f"recorder's CPU in 12 s: {with_sensors:.2f} s with all sensors each 10 ms, {Trace(path).number(cpu):.2f} s without")
    _, path = record("power.rpd", matmul, RPDT_MONITOR="power,vram,gpu_util", RPDT_MONITOR_PERIOD="10ms")
    say(f"{Trace(path).number(cpu):.2f} s with power, vram and gpu_util")
    for end in ("_exit", "exit", "return"):
        words = ["launch=100", "sleep=300"] + ([] if end == "return" else [end])
        ran, path = record(f"sensors-{end}.rpd", [WORK, *words], RPDT_MONITOR="all", RPDT_MONITOR_PERIOD="1ms")
        status = {"_exit": 5, "exit": 6, "return": 0}[end]
        check(f"sensors and {end}", ran.returncode == status and Trace(path).number("select count(*) from rocpd_monitor") > 0, ran.stderr)
