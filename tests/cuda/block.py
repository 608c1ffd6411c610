"""A transformer's block on the GPU, forward and backward, launched kernel by kernel: block.py STEPS [profile]

The last line says how many steps there were, and CLOCK_MONOTONIC before and after. `profile`: by torch.profiler, whose start and end are not in
those times.
"""

import sys
import time

import torch


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


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

        with profile(activities=[ProfilerActivity.CUDA]):
            run(2)
        with profile(activities=[ProfilerActivity.CUDA]):
            begin, end = measured()
    else:
        begin, end = measured()
    print("block", steps, begin, end, flush=True)


if __name__ == "__main__":
    main()
