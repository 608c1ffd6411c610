"""PyTorch's NVTX markers on a machine with an NVIDIA GPU, which no other test has: markers.py LIBRPD_TRACER [MEASURE]

The recorder gets in by NVTX alone. Checks the rows of torch.cuda.nvtx, and those of emit_nvtx against torch.profiler's counts of the
same steps, and those of DataLoader's workers, which end by os._exit as their process does. With MEASURE: the time of a push and pop, with the recorder
and without.
"""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

# What workers mark, and what their process marks just before it ends.
ITEMS, LAST = 1600, 1000
ROUNDS = 20


def ranges():
    import torch
    import torch.cuda.nvtx as nvtx

    x = torch.randn(512, 512, device="cuda")
    print(nvtx.range_push("outer"), nvtx.range_push("inner"), nvtx.range_pop(), nvtx.range_pop())
    nvtx.mark("a mark")
    with nvtx.range("with {}", "format"):
        x = x @ x
    crossing = nvtx.range_start("crossing")
    thread = threading.Thread(target=nvtx.range_end, args=(crossing,))
    thread.start()
    thread.join()
    for step in range(1000):
        nvtx.range_push(f"step {step}")
        nvtx.range_pop()


def pairs():
    import torch.cuda.nvtx as nvtx

    count = 200_000
    begin = time.perf_counter()
    for _ in range(count):
        nvtx.range_push("timed")
        nvtx.range_pop()
    print(round((time.perf_counter() - begin) / count * 1e9))


def steps():
    import torch
    from torch.profiler import ProfilerActivity, profile

    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data, target = torch.randn(32, 64, device="cuda"), torch.randint(0, 10, (32,), device="cuda")

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()

    step()
    with torch.autograd.profiler.emit_nvtx(record_shapes=True):
        for _ in range(20):
            step()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(20):
            step()
    print(json.dumps({event.key: event.count for event in profiler.key_averages()}))


class Marking:
    """Items that are numbers; whoever gets one marks it."""

    def __len__(self):
        return ITEMS

    def __getitem__(self, index):
        import torch.cuda.nvtx as nvtx

        nvtx.range_push(f"item {index}")
        nvtx.range_pop()
        return index


def workers():
    import torch
    import torch.cuda.nvtx as nvtx

    for batch in torch.utils.data.DataLoader(Marking(), batch_size=10, num_workers=4):
        nvtx.mark(f"batch {int(batch[0])}")
    for number in range(LAST):
        nvtx.mark(f"last {number}")
    os._exit(0)


def run(scene, library=None):
    """What a scene prints, and the counts of its markers' texts."""
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "NVTX_INJECTION64_PATH")}
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.rpd")
        if library:
            environment.update(NVTX_INJECTION64_PATH=os.path.abspath(library), RPDT_FILENAME=trace)
        command = [sys.executable, os.path.abspath(__file__), scene]
        printed = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
        if not library:
            return printed, {}
        connection = sqlite3.connect(trace)
        rows = connection.execute("select args, count(*) from api where apiName = 'UserMarker' group by 1").fetchall()
        assert connection.execute("select count(*) from rocpd_metadata where tag like '%::lost::%' and value != '0'").fetchone() == (0,)
        connection.close()
        return printed, dict(rows)


def main():
    library = sys.argv[1]
    printed, rows = run("ranges", library)
    assert printed == "0 1 1 0\n", printed
    assert [rows.get(text) for text in ("outer", "inner", "a mark", "with format", "crossing")] == [1] * 5, rows
    assert sum(text.startswith("step ") for text in rows) == 1000 and len(rows) == 1005, len(rows)
    printed, rows = run("steps", library)
    names = {}
    for text, count in rows.items():
        name = text.split(", ")[0]
        names[name] = names.get(name, 0) + count
    # The profiler counts calls of CUDA too, which are no markers.
    operators = {name: count for name, count in json.loads(printed.splitlines()[-1]).items() if not name.startswith("cu")}
    assert names == operators, (names, operators)
    print(f"emit_nvtx: {sum(names.values())} markers of {len(names)} names, as many of each as the profiler counts")
    marked = {f"item {number}" for number in range(ITEMS)} | {f"batch {number}" for number in range(0, ITEMS, 10)} | {f"last {number}" for number in range(LAST)}
    for _ in range(ROUNDS):
        _, rows = run("workers", library)
        assert rows == dict.fromkeys(marked, 1), f"{len(rows)} of {len(marked)}: {sorted(marked - rows.keys())[:5]}"
    print(f"workers that end by os._exit: all {len(marked)} markers, {ROUNDS} times of {ROUNDS}")
    if len(sys.argv) > 2:
        print(f"push and pop: {run('pairs', library)[0].strip()} ns, without the recorder {run('pairs')[0].strip()} ns")


if __name__ == "__main__":
    scenes = {"ranges": ranges, "pairs": pairs, "steps": steps, "workers": workers}
    scenes.get(sys.argv[1], main)()
