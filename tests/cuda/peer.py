"""Copies between two GPUs: peer.py [profile]

40 by one thread from the first to the second, 20 back. With `profile`, torch.profiler's count of them, as JSON.
"""

import json
import sys

import torch

first, second = torch.ones(1 << 20, device="cuda:0"), torch.ones(1 << 18, device="cuda:1")


def copy():
    for _ in range(40):
        first.to("cuda:1")
    for _ in range(20):
        second.to("cuda:0")
    for gpu in (0, 1):
        torch.cuda.synchronize(gpu)


if "profile" in sys.argv:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        copy()
    counts = {event.key: event.count for event in profiler.key_averages() if event.key.startswith("Memcpy")}
    print(json.dumps(counts))
else:
    copy()
