"""A small training on the GPU: training.py HOW STEPS [COUNTS [TRACE]]

HOW is plain; _exit: the program ends by os._exit; raise: by an exception that nobody catches; profile: by torch.profiler, whose number of each kernel
goes into COUNTS as JSON, and all that it has to say into TRACE; compile: by torch.compile; graphs: the step is a CUDA graph; autograd: with
torch.autograd.profiler.emit_nvtx; profile-compile, profile-graphs. The data comes from two workers of PyTorch's DataLoader, which end by os._exit. A
mark `measured` stands where the profiler begins.
"""

import collections
import json
import os
import sys
import time

import torch


class Numbers(torch.utils.data.Dataset):
    def __init__(self, steps):
        self.steps = steps

    def __len__(self):
        return 32 * self.steps

    def __getitem__(self, index):
        return torch.full((64,), float(index % 7)), index % 10


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)).cuda()


def train(steps):
    network = model()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for data, target in torch.utils.data.DataLoader(Numbers(steps), batch_size=32, num_workers=2):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(data.cuda()), target.cuda()).backward()
        optimizer.step()
    torch.cuda.synchronize()


def step_of(how):
    """One step on data that stays, compiled or captured, and warm."""
    network = model()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    data, target = torch.ones(32, 64, device="cuda"), torch.zeros(32, dtype=torch.long, device="cuda")

    def loss():
        return torch.nn.functional.cross_entropy(network(data), target)

    if how == "compile":
        loss = torch.compile(loss)

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss().backward()
        optimizer.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    if how == "graphs":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        step = graph.replay
    step()
    torch.cuda.synchronize()
    return step


def repeat(how, steps):
    step = step_of(how)

    def run():
        torch.cuda.nvtx.mark("measured")
        for _ in range(steps):
            step()
        torch.cuda.synchronize()

    return run


def profiled(run, counts, trace=None):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        run()
    device = torch.autograd.DeviceType.CUDA
    names = collections.Counter(event.name for event in profiler.events() if event.device_type == device)
    with open(counts, "w") as file:
        json.dump(names, file)
    if trace:
        profiler.export_chrome_trace(trace)


def main():
    how, steps = sys.argv[1], int(sys.argv[2])
    torch.cuda.init()
    begin = time.perf_counter()
    kind = how.removeprefix("profile-")
    run = repeat(kind, steps) if kind in ("compile", "graphs") else lambda: train(steps)
    if how == "autograd":
        with torch.autograd.profiler.emit_nvtx():
            run()
    elif how.startswith("profile"):
        profiled(run, *sys.argv[3:])
    else:
        run()
    print(f"trained {time.perf_counter() - begin:.3f} s", flush=True)
    if how == "_exit":
        os._exit(0)
    if how == "raise":
        raise RuntimeError("nobody catches this")


if __name__ == "__main__":
    main()
