"""A training by two processes, a GPU each, over NCCL: parallel.py ddp|fsdp [profile]

With `profile`, each process prints how many of each kernel torch.profiler has seen, as JSON. A mark `measured` stands where it begins.
"""

import collections
import json
import os
import sys

import torch
import torch.distributed
import torch.multiprocessing

STEPS = 20


def work(rank, how, profiles):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK=str(rank), WORLD_SIZE="2")
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", rank=rank, world_size=2)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256)).cuda()
    if how == "ddp":
        network = torch.nn.parallel.DistributedDataParallel(network, device_ids=[rank])
    else:
        from torch.distributed.fsdp import FullyShardedDataParallel

        network = FullyShardedDataParallel(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    data = torch.full((64, 256), float(rank), device="cuda")

    def run(steps):
        for _ in range(steps):
            optimizer.zero_grad()
            network(data).square().mean().backward()
            optimizer.step()
        torch.cuda.synchronize()

    run(3)
    torch.distributed.barrier()
    torch.cuda.synchronize()
    torch.cuda.nvtx.mark("measured")
    if profiles:
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            run(STEPS)
        device = torch.autograd.DeviceType.CUDA
        print(json.dumps(collections.Counter(event.name for event in profiler.events() if event.device_type == device)), flush=True)
    else:
        run(STEPS)
    torch.distributed.destroy_process_group()


def main():
    torch.multiprocessing.spawn(work, args=(sys.argv[1], sys.argv[2:] == ["profile"]), nprocs=2)


if __name__ == "__main__":
    main()
