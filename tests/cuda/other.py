"""100 kernels that torch.profiler counts, where the recorder is started while it is there, and 100 behind it: other.py COUNT

The profiler's count goes into the file COUNT.
"""

import ctypes
import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile


def main():
    numbers = torch.ones(8, device="cuda")
    recorder = ctypes.CDLL(None)

    def launch():
        for _ in range(100):
            numbers.add_(1)
        torch.cuda.synchronize()

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        recorder.rpdstart()
        launch()
    device = torch.autograd.DeviceType.CUDA
    with open(sys.argv[1], "w") as file:
        json.dump(sum(event.device_type == device for event in profiler.events()), file)
    launch()


if __name__ == "__main__":
    main()
