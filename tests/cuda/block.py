"""A transformer's block on the GPU, forward and backward, launched kernel by kernel: block.py STEPS [profile]

A line says how many steps there were, and CLOCK_MONOTONIC before and after. Lines `cpu` before and behind it are the CPU time of the process, all its
threads, and what the recorder's threads took of it, half a second after what the process did last: they have caught up by then. `profile`: by torch.profiler, whose
start and end are in the CPU time and not between the steps' times; lines of their own say how long its first start takes, and its end. A recorder that
is not to start by itself (RPDT_AUTOSTART=0) is started before the steps, when CUDA has been used.
"""

import ctypes
import os
import pathlib
import sys
import time

import torch


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def recorders():
    """CPU time of the recorder's threads, ns."""
    taken = 0
    for thread in pathlib.Path("/proc/self/task").iterdir():
        if (thread / "comm").read_text().startswith("rpd-"):
            taken += int((thread / "schedstat").read_text().split()[0])
    return taken


def cpu():
    time.sleep(0.5)
    print("cpu", time.process_time_ns(), recorders(), 0, flush=True)


def main():
    steps = int(sys.argv[1])
    begin = now()
    torch.cuda.init()
    print("cuInit", 0, begin, now(), flush=True)
    torch.manual_seed(0)
    block = torch.nn.TransformerEncoderLayer(256, 4, batch_first=True).cuda()
    data = torch.randn(2, 64, 256, device="cuda")

    def run(count):
        for _ in range(count):
            block(data).square().mean().backward()
        torch.cuda.synchronize()

    def measured():
        begin = now()
        run(steps)
        return begin, now()

    run(20)
    if sys.argv[2:] == ["profile"]:
        from torch.profiler import ProfilerActivity, profile

        begin = now()
        with profile(activities=[ProfilerActivity.CUDA]):
            started = now()
            run(2)
        print("profiler-start", 0, begin, started, flush=True)
        cpu()
        with profile(activities=[ProfilerActivity.CUDA]):
            begin, end = measured()
        print("profiler-end", 0, end, now(), flush=True)
    else:
        if os.environ.get("RPDT_AUTOSTART") == "0":
            ctypes.CDLL(None).rpdstart()
        cpu()
        begin, end = measured()
    print("block", steps, begin, end, flush=True)
    cpu()


if __name__ == "__main__":
    main()
