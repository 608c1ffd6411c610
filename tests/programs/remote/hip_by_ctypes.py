"""Uses the GPU by ctypes for as long as it runs: fills memory again and again. Ends when the file "end" exists.

Usage: hip_by_ctypes.py LIBRARY     HIP's"""

import ctypes
import os
import sys
import time

hip = ctypes.CDLL(sys.argv[1])


def call(name, *arguments):
    status = getattr(hip, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name}: {status}")


memory = ctypes.c_void_p()
call("hipMalloc", ctypes.byref(memory), ctypes.c_size_t(4096))
print("ready", flush=True)
while not os.path.exists("end"):
    call("hipMemset", memory, 0, ctypes.c_size_t(4096))
    call("hipDeviceSynchronize")
    time.sleep(0.001)
