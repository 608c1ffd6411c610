"""Multiplies large matrices for some seconds: matmul.py SECONDS"""

import sys
import time

import torch

seconds = float(sys.argv[1])
left, right = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
torch.cuda.synchronize()
end = time.monotonic() + seconds
count = 0
while time.monotonic() < end:
    for _ in range(20):
        left @ right
    count += 20
    torch.cuda.synchronize()
print(count, flush=True)
