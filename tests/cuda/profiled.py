"""What work.c does, by torch.profiler: profiled.py LIBRARY WHAT...

LIBRARY is work.c as a shared library, and each WHAT one of its words. Two lines more say how long the profiler took to start and to end, and a third how
many events it has of kernels, copies and fills.
"""

import ctypes
import sys

import torch
from torch.profiler import ProfilerActivity, profile

from block import now


def main():
    library, *words = sys.argv[1:]
    torch.ones(1, device="cuda")
    texts = [word.encode() for word in ["work", *words]]
    begin = now()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        started = now()
        # The library writes into the words.
        ctypes.CDLL(library).main(len(texts), (ctypes.c_char_p * (len(texts) + 1))(*map(ctypes.c_char_p, texts), None))
        end = now()
    print("profiler-start", 0, begin, started)
    print("profiler-end", 0, end, now())
    on_gpu = torch.autograd.DeviceType.CUDA
    print("profiler-events", sum(event.device_type() == on_gpu for event in profiler.profiler.kineto_results.events()), 0, 0)


if __name__ == "__main__":
    main()
