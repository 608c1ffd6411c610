"""Multiplies large matrices for some seconds, in a range `loop`: matmul.py SECONDS

Prints how many products, and where NVML is here, what its counter of energy has for the first GPU from a change of it shortly before the loop to one
behind it: J, and from when to when (ns of CLOCK_MONOTONIC).
"""

import ctypes
import sys
import time

import torch

seconds = float(sys.argv[1])


def counter():
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    device = ctypes.c_void_p()
    assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0

    def read():
        number = ctypes.c_ulonglong()
        assert nvml.nvmlDeviceGetTotalEnergyConsumption(device, ctypes.byref(number)) == 0
        return number.value

    def changed():
        before = read()
        while (now := read()) == before:
            time.sleep(0.001)
        return time.monotonic_ns(), now / 1000

    return changed


try:
    changed = counter()
except OSError:
    changed = None
left, right = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
left @ right
torch.cuda.synchronize()
if changed:
    begin, before = changed()
end = time.monotonic() + seconds
count = 0
torch.cuda.nvtx.range_push("loop")
while time.monotonic() < end:
    for _ in range(20):
        left @ right
    count += 20
    torch.cuda.synchronize()
torch.cuda.nvtx.range_pop()
print(count, flush=True)
if changed:
    done, after = changed()
    print("joules", after - before, begin, done, flush=True)
