"""A small training on the GPU: training.py plain|profile|_exit STEPS [COUNTS]

The data comes from two workers of PyTorch's DataLoader, which end by os._exit. `profile`: by torch.profiler, whose number of each kernel goes
into COUNTS as JSON. `_exit`: the program ends by os._exit.
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


def train(steps):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for data, target in torch.utils.data.DataLoader(Numbers(steps), batch_size=32, num_workers=2):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(data.cuda()), target.cuda()).backward()
        optimizer.step()
    torch.cuda.synchronize()


def profiled(steps, counts):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        train(steps)
    device = torch.autograd.DeviceType.CUDA
    names = collections.Counter(event.name for event in profiler.events() if event.device_type == device)
    with open(counts, "w") as file:
        json.dump(names, file)


def main():
    how, steps = sys.argv[1], int(sys.argv[2])
    torch.cuda.init()
    begin = time.perf_counter()
    profiled(steps, sys.argv[3]) if how == "profile" else train(steps)
    print(f"trained {time.perf_counter() - begin:.3f} s", flush=True)
    if how == "_exit":
        os._exit(0)


if __name__ == "__main__":
    main()
