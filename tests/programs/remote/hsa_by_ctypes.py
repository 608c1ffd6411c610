"""Has the HSA runtime initialised, without HIP. Ends when the file "end" exists."""

import ctypes
import os
import time

hsa = ctypes.CDLL("libhsa-runtime64.so.1")
status = hsa.hsa_init()
if status != 0:
    raise RuntimeError(f"hsa_init: {status}")
print("ready", flush=True)
while not os.path.exists("end"):
    time.sleep(0.01)
