"""Calls of GPU libraries by PyTorch, with sizes that tell them apart: calls.py HOW [profile]

HOW is one: on one GPU; two: collectives of two processes, a GPU each; loop=COUNT: so many products one after the other, and what one of them took. Prints
a line of JSON for each kind of call: the library, the function and the arguments that it is called with, and how often. With `profile` the line has the
kernels that torch.profiler saw meanwhile too, but those that are PyTorch's own.
"""

import collections
import ctypes
import json
import os
import re
import sys
import time

import torch
import torch.distributed
import torch.multiprocessing

CALLS = 20
IS_PROFILED = sys.argv[2:] == ["profile"]
# Kernels of PyTorch's own, and what is no kernel.
OWN = re.compile("Mem(cpy|set)|.*\\bat::native::")


def profiled(act):
    """How often torch.profiler sees which kernel while it acts."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        act()
        torch.cuda.synchronize()
    device = torch.autograd.DeviceType.CUDA
    names = [event.name for event in profiler.events() if event.device_type == device]
    return collections.Counter(name for name in names if not OWN.match(name))


def calls(function, arguments, act, count=CALLS, **facts):
    def all_of_them():
        for _ in range(count):
            act()

    if IS_PROFILED:
        facts["kernels"] = profiled(all_of_them)
    else:
        all_of_them()
        torch.cuda.synchronize()
    print(json.dumps({"function": function, "arguments": arguments, "calls": count, **facts}), flush=True)


def random(*sizes, dtype=torch.float32):
    return torch.randn(*sizes, device="cuda", dtype=dtype)


def matrices():
    """A matrix that lies row after row is its transpose to BLAS: the first size of the result is n."""
    for function, dtype, (m, n, k) in (("cublasSgemm_v2", torch.float32, (192, 256, 320)), ("cublasGemmEx", torch.float16, (320, 448, 192))):
        left, right, out = random(n, k, dtype=dtype), random(k, m, dtype=dtype), random(n, m, dtype=dtype)
        calls(function, {"m": m, "n": n, "k": k}, lambda: torch.mm(left, right, out=out))
    left, right, out = random(6, 96, 160), random(6, 160, 224), random(6, 96, 224)
    calls("cublasSgemmStridedBatched", {"m": 224, "n": 96, "k": 160, "batchCount": 6}, lambda: torch.bmm(left, right, out=out))
    data, weight, bias = random(384, 512, dtype=torch.bfloat16), random(640, 512, dtype=torch.bfloat16), random(640, dtype=torch.bfloat16)
    calls("cublasLtMatmul", {"m": 640, "n": 384, "k": 512, "a_type": "CUDA_R_16BF"}, lambda: torch.nn.functional.linear(data, weight, bias))


def large():
    """One whose time is known, from the end of the first, which loads the kernel, to that of the last."""
    size = 8192
    left, right, out = (random(size, size, dtype=torch.float16) for _ in range(3))
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(CALLS)]
    for end in ends:
        torch.mm(left, right, out=out)
        end.record()
    torch.cuda.synchronize()
    us = ends[0].elapsed_time(ends[-1]) * 1e3 / (CALLS - 1)
    print(json.dumps({"function": "cublasGemmEx", "arguments": {"m": size, "n": size, "k": size}, "calls": CALLS, "us": us}), flush=True)


def convolutions():
    data, filters = random(8, 16, 40, 56), random(24, 16, 3, 3)
    calls("cudnnBackendExecute", {}, lambda: torch.nn.functional.conv2d(data, filters, padding=1))
    own_convolution(data, filters, torch.empty(8, 24, 40, 56, device="cuda"))


def own_convolution(data, filters, out):
    """By the functions of cuDNN that are passed descriptors; PyTorch calls the others. They are looked up as a program that is linked with cuDNN has them."""
    ctypes.CDLL("libcudnn.so.9", mode=ctypes.RTLD_GLOBAL)
    cudnn = ctypes.CDLL(None)

    def done(answer):
        assert answer == 0, answer

    def made(name):
        descriptor = ctypes.c_void_p()
        done(getattr(cudnn, f"cudnnCreate{name}")(ctypes.byref(descriptor)))
        return descriptor

    number, address = ctypes.c_int, ctypes.c_void_p
    handle = made("")
    given, weights, result, convolution = made("TensorDescriptor"), made("FilterDescriptor"), made("TensorDescriptor"), made("ConvolutionDescriptor")
    row_after_row, of_float, cross_correlation, multiply_add = 0, 0, 1, 3
    for descriptor, tensor in ((given, data), (result, out)):
        done(cudnn.cudnnSetTensor4dDescriptor(descriptor, row_after_row, of_float, *map(number, tensor.shape)))
    done(cudnn.cudnnSetFilter4dDescriptor(weights, of_float, row_after_row, *map(number, filters.shape)))
    done(cudnn.cudnnSetConvolution2dDescriptor(convolution, *map(number, (1, 1, 1, 1, 1, 1)), cross_correlation, of_float))
    done(cudnn.cudnnSetConvolutionMathType(convolution, multiply_add))
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    implicit_gemm, no_workspace = 0, ctypes.c_size_t(0)

    def act():
        pointer = lambda tensor: address(tensor.data_ptr())
        convolve = cudnn.cudnnConvolutionForward
        of_data = (ctypes.byref(one), given, pointer(data), weights, pointer(filters), convolution)
        done(convolve(handle, *of_data, implicit_gemm, None, no_workspace, ctypes.byref(zero), result, pointer(out)))

    torch.cuda.synchronize()
    lists = {"in": "8,16,40,56", "filter": "24,16,3,3", "out": "8,24,40,56", "pad": "1,1", "stride": "1,1", "data_type": "CUDNN_DATA_FLOAT"}
    calls("cudnnConvolutionForward", lists, act)
    wanted = torch.nn.functional.conv2d(data.cpu().double(), filters.cpu().double(), padding=1)
    assert (out.cpu() - wanted).abs().max() < 0.01


def transforms():
    for sizes, dims in (((64, 4096), (1,)), ((6, 96, 160), (1, 2))):
        data = torch.randn(*sizes, device="cuda", dtype=torch.complex64)
        lengths = ",".join(str(sizes[dim]) for dim in dims)
        calls("cufftXtExec", {"n": lengths, "batch": sizes[0], "inputtype": "CUDA_C_32F"}, lambda: torch.fft.fftn(data, dim=dims))


def one():
    matrices()
    if not IS_PROFILED:
        large()
    convolutions()
    transforms()


def rank(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29513", RANK=str(rank), WORLD_SIZE="2")
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", rank=rank, world_size=2, device_id=torch.device("cuda", rank))
    everyone = {"datatype": "ncclFloat32", "nranks": 2}
    whole, half = torch.ones(3_000_000, device="cuda"), torch.ones(1_500_000, device="cuda")
    calls("ncclAllReduce", {"count": 3_000_000, "op": "ncclSum", **everyone}, lambda: torch.distributed.all_reduce(whole), bytes=12_000_000, factor=1)
    calls("ncclAllGather", {"sendcount": 1_500_000, **everyone}, lambda: torch.distributed.all_gather_into_tensor(whole, half), bytes=12_000_000, factor=0.5)
    scatter = lambda: torch.distributed.reduce_scatter_tensor(half, whole)
    calls("ncclReduceScatter", {"recvcount": 1_500_000, "op": "ncclSum", **everyone}, scatter, bytes=12_000_000, factor=0.5)
    few = torch.ones(700_001, device="cuda", dtype=torch.float16)
    calls("ncclBcast", {"count": 700_001, "datatype": "ncclFloat16", "root": 0, "nranks": 2}, lambda: torch.distributed.broadcast(few, 0), bytes=1_400_002, factor=1)
    torch.distributed.destroy_process_group()


def loop(count):
    """Short products on one stream, in rounds that the GPU is done with before the next one."""
    left, right, out = random(32, 32), random(32, 32), random(32, 32)
    for _ in range(200):
        torch.mm(left, right, out=out)
    torch.cuda.synchronize()
    rounds = []
    for _ in range(count // 500):
        begin = time.perf_counter_ns()
        for _ in range(500):
            torch.mm(left, right, out=out)
        rounds.append((time.perf_counter_ns() - begin) / 500)
        torch.cuda.synchronize()
    print(json.dumps({"calls": 200 + count // 500 * 500, "ns": sorted(rounds)[len(rounds) // 2]}), flush=True)


def main():
    how, _, number = sys.argv[1].partition("=")
    if how == "two":
        torch.multiprocessing.spawn(rank, nprocs=2)
    elif how == "loop":
        loop(int(number))
    else:
        one()


if __name__ == "__main__":
    main()
