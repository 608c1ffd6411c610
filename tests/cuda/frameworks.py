"""Programs of PyTorch: their kernels are those that torch.profiler has in another run, by name, number and fields."""

import collections
import json
import re
import shutil
import sys

from common import BIN, HERE, OUT, RECORDER, Trace, check, gpus, record, run, say

TRAINING = [sys.executable, HERE / "training.py"]


def kernels(counts):
    return {name: count for name, count in counts.items() if not re.match("Mem(cpy|set)", name)}


def same(what, recorded, profiled):
    """Two tables of how often what was there."""
    differ = {name: (recorded.get(name, 0), profiled.get(name, 0)) for name in {*recorded, *profiled} if recorded.get(name, 0) != profiled.get(name, 0)}
    check(what, recorded and not differ, f"{sum(recorded.values())} recorded, {sum(profiled.values())} profiled, {len(recorded)} different")
    for name, (ours, theirs) in sorted(differ.items(), key=str)[:10]:
        say(f"{ours} recorded, {theirs} profiled:", name)


def profile(how, steps, *files):
    """What torch.profiler counts in a run without the recorder."""
    counts = OUT / "profile.json"
    counts.unlink(missing_ok=True)
    ran = run([*TRAINING, how, steps, counts, *files])
    if not counts.exists():
        say(how, ran.stderr[-500:])
    return kernels(json.loads(counts.read_text()))


def eager():
    _, path = record("training.rpd", [*TRAINING, "_exit", 200])
    profiled = profile("profile", 200, OUT / "kineto.json")
    trace = Trace(path)
    by_name = "select description, count(*) from op where opType = 'KernelExecution' group by 1"
    recorded = dict(trace.rows(by_name))
    same("PyTorch's kernels are torch.profiler's", recorded, profiled)
    trace.linked("PyTorch")
    trace.check("PyTorch")
    fields(trace)
    ran, path = record("raise.rpd", [*TRAINING, "raise", 200])
    trace = Trace(path)
    check("an exception ends PyTorch", ran.returncode == 1 and "RuntimeError: nobody catches this" in ran.stderr, ran.returncode)
    same("PyTorch, an exception: kernels are torch.profiler's", dict(trace.rows(by_name)), profiled)
    trace.check("PyTorch, an exception")


def fields(trace):
    """Of each kernel and copy, what both know."""
    events = json.loads((OUT / "kineto.json").read_text())["traceEvents"]
    theirs, copies = collections.Counter(), collections.Counter()
    for event in events:
        facts = event.get("args", {})
        if event.get("cat") == "kernel":
            sizes = tuple(facts["grid"]) + tuple(facts["block"])
            theirs[(event["name"], *sizes, facts["registers per thread"], facts["shared memory"], facts["stream"])] += 1
        elif event.get("cat") == "gpu_memcpy":
            copies[(event["name"].split(" ")[1], facts["bytes"], facts["stream"])] += 1
    columns = "kernelName, gridX, gridY, gridZ, workgroupX, workgroupY, workgroupZ, vgpr, groupSegmentSize, queueId"
    kernels_of = f"select {columns}, count(*) from dispatch D join rocpd_kernelcodeobject C on C.id = D.codeObject_id group by {columns}"
    ours = {tuple(row): count for *row, count in trace.rows(kernels_of)}
    same("PyTorch: grid, block, registers, shared memory and stream of kernels", ours, theirs)
    directions = "case opType when 'CopyHostToDevice' then 'HtoD' when 'CopyDeviceToHost' then 'DtoH' else 'DtoD' end"
    copies_of = "rocpd_api_ops L join op O on O.id = L.op_id join rocpd_copyapi C on C.api_ptr_id = L.api_id"
    ours = {tuple(row): count for *row, count in trace.rows(f"select {directions}, size, queueId, count(*) from {copies_of} group by 1, 2, 3")}
    same("PyTorch: direction, bytes and stream of copies", ours, copies)


def with_the_profiler():
    counts = OUT / "profile.json"
    ran, _ = record("profiler.rpd", [*TRAINING, "profile", 20, counts])
    check("torch.profiler in a recorded program", ran.returncode == 0, ran.stderr[-300:])
    counts.unlink(missing_ok=True)
    ran, _ = record("yield.rpd", [*TRAINING, "profile", 20, counts], RPDT_CUPTI_YIELD=1)
    seen = sum(json.loads(counts.read_text()).values())
    check("torch.profiler where the recorder yields", ran.returncode == 0 and seen > 100, f"{seen} {ran.stderr[-300:]}")


def compiled():
    for how in ("compile", "graphs"):
        _, path = record(f"{how}.rpd", [*TRAINING, how, 30], RPDT_SAVE_CODE=OUT / "code")
        profiled = profile(f"profile-{how}", 30)
        trace = Trace(path)
        same(f"PyTorch, {how}: kernels are torch.profiler's", trace.measured(), profiled)
        trace.linked(f"PyTorch, {how}")
        trace.check(f"PyTorch, {how}")
        ran = run([BIN / "rpd", "code", path])
        say("\n     ".join(ran.stdout.splitlines()[:6]), ran.stderr[-300:])
        shutil.rmtree(OUT / "code", ignore_errors=True)


def autograd():
    _, path = record("autograd.rpd", [*TRAINING, "autograd", 20])
    ran = run([BIN / "rpd", "autograd", path])
    table = run([BIN / "rpd", "table", "--csv", path, "aten::addmm"])
    check("operators of emit_nvtx have their kernels", ran.returncode == 0 and "gemm" in table.stdout, ran.stderr[-300:] + table.stdout[:600])


def arguments():
    """PyTorch launches by the runtime, whose calls make calls of the driver inside."""
    _, path = record("allocations.rpd", [*TRAINING, "_exit", 20])
    allocated = Trace(path).rows("select args, count(*) from api where apiName = 'cudaMalloc' group by 1")
    known = allocated and all(" | source=lib" in text for text, _ in allocated)
    check("PyTorch: libraries that allocate, from CUPTI 12.6 on", known, str(allocated))
    _, path = record("arguments-torch.rpd", [*TRAINING, "_exit", 20], RPDT_CUDA_APIS="args")
    trace = Trace(path)
    sizes = "'%gridDim=' || gridX || ',' || gridY || ',' || gridZ || ' | blockDim=' || workgroupX || ',' || workgroupY || ',' || workgroupZ || ' | %'"
    launches = "from rocpd_kernelapi K join api A on A.id = K.api_ptr_id where A.apiName like 'cudaLaunchKernel%'"
    say(trace.rows(f"select A.apiName, count(*), A.args {launches} group by 1"))
    all_of, fit = (trace.number(f"select count(*) {launches}{also}") for also in ("", f" and A.args like {sizes} and A.args glob '*stream=0x*'"))
    check("PyTorch: grid and block in a launch's arguments are CUPTI's of its kernel", 0 < all_of == fit, f"{fit} of {all_of}")
    copies = "from rocpd_copyapi C join api A on A.id = C.api_ptr_id where A.apiName = 'cudaMemcpyAsync'"
    all_of, fit = (trace.number(f"select count(*) {copies}{also}") for also in ("", f" and A.args like '%count=0x' || printf('%x', C.size) || ' | kind=_ | stream=0x%'"))
    check("PyTorch: bytes in a copy's arguments are CUPTI's", 0 < all_of == fit, f"{fit} of {all_of}")
    trace.linked("PyTorch, arguments")


def pytorch():
    for part in [eager, arguments, with_the_profiler, compiled, autograd]:
        part()


def markers():
    ran = run([sys.executable, HERE / "markers.py", RECORDER, "measure"], 300)
    check("markers of torch.cuda.nvtx and emit_nvtx", ran.returncode == 0, ran.stdout.strip() if ran.returncode == 0 else ran.stdout + ran.stderr)


def peers():
    """Copies from GPU to GPU."""
    _, path = record("peer.rpd", [sys.executable, HERE / "peer.py"])
    profiled = run([sys.executable, HERE / "peer.py", "profile"])
    trace = Trace(path)
    copies = trace.rows(
        "select srcDevice, dstDevice, C.size, count(*) from rocpd_copyapi C where srcDevice >= 0 and dstDevice >= 0 and srcDevice <> dstDevice group by 1, 2, 3 order by 3 desc"
    )
    seen = [(size, count) for _, _, size, count in copies]
    check("copies between GPUs", seen == [(4 << 20, 40), (1 << 20, 20)], f"{copies}, {profiled.stdout.strip()}")
    say(trace.rows("select opType, gpuId, count(*) from op group by 1, 2"), trace.rows("select apiName, count(*) from api group by 1"))
    trace.linked("copies between GPUs")
    trace.check("copies between GPUs")


def several_gpus():
    """Two processes, a GPU each, which train together over NCCL; their kernels are those that torch.profiler has in another run."""
    if gpus() < 2:
        say("one GPU")
        return
    peers()
    for how in ("ddp", "fsdp"):
        ran, path = record(f"{how}.rpd", [sys.executable, HERE / "parallel.py", how])
        profiled = run([sys.executable, HERE / "parallel.py", how, "profile"])
        trace = Trace(path)
        by_profiler = collections.Counter()
        for line in profiled.stdout.splitlines():
            if line.startswith("{"):
                by_profiler.update(json.loads(line))
        same(f"{how}: kernels are torch.profiler's", trace.measured(), kernels(by_profiler))
        used = trace.rows("select gpuId, count(*) from rocpd_op group by 1")
        check(f"{how}: two GPUs", len(used) == 2, f"{used} {ran.stderr[-300:] if len(used) != 2 else ''}")
        trace.linked(how)
        trace.check(how)
