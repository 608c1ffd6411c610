"""What the parts of `run` share: the places that it was called with, checks, programs that are run, and the rows of a trace."""

import collections
import ctypes
import importlib.util
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLACES = [word for word in sys.argv[1:] if not word.startswith("--")]
if not PLACES:
    sys.exit("run BIN [OUT] [--PART...]: the head of the file says which parts there are")
BIN = Path(PLACES[0]).resolve()
OUT = Path(PLACES[1] if len(PLACES) > 1 else tempfile.mkdtemp()).resolve()
PROGRAMS = OUT / "programs"
RECORDER = BIN / "librpd_tracer.so"
LOADER = {"LD_PRELOAD": str(BIN / "librpd_remote.so")}
WORK = PROGRAMS / "work"
failed = []


def check(what, holds, detail=""):
    print("ok  " if holds else "FAIL", what, detail, flush=True)
    if not holds:
        failed.append(what)


def say(*words):
    print("    ", *words, flush=True)


def build():
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    library = ["-shared", "-fPIC"]
    sources = {"work": HERE.parent / "programs" / "cuda" / "work.c", "attach": HERE / "attach.c", "copies": HERE / "copies.c", "libfloor.so": HERE / "floor.c"}
    sources["libwork.so"] = sources["work"]
    for name, source in sources.items():
        kind = library if name.endswith(".so") else []
        compile(PROGRAMS / name, source, *kind)


def compile(program, source, *options):
    subprocess.run(["cc", "-O2", *options, "-o", program, source, "-ldl", "-lpthread"], check=True)


def cupti():
    """The libcupti that programs without the recorder load, as the recorder would find it."""
    try:
        ctypes.CDLL("libcupti.so.13")
        mapped = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libcupti.so" in line]
        return Path(mapped[0])
    except OSError:
        pass
    places = ["/lib", "/usr/lib", "/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64"]
    packages = [Path(place) / "nvidia" for place in sys.path]
    found = [Path(place) / "libcupti.so.13" for place in places] + [file for place in packages for file in place.glob("*/lib/libcupti.so.13")]
    return next((file for file in found if file.exists()), Path("libcupti.so.13"))


FLOOR = {"CUDA_INJECTION64_PATH": PROGRAMS / "libfloor.so", "FLOOR_CUPTI": cupti()}

# What it printed, how it ended, and when, by CLOCK_MONOTONIC in s.
Ran = collections.namedtuple("Ran", "returncode stdout stderr ended")


def run(command, seconds=200, **variables):
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    # No pipes: a daemon that the command leaves behind keeps those open.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([str(word) for word in command], env=environment, stdout=out, stderr=err, start_new_session=True)
        late = ""
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            late = f"\n{command[0]} did not end in {seconds} s"
        finally:
            ended = time.monotonic()
            finish(process)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
        return Ran(process.returncode, texts[0], texts[1] + late, ended)


def finish(process):
    """Ends a process that is still there, with those of its session."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def record(name, command, seconds=200, **variables):
    trace = OUT / name
    ran = run([BIN / "rpd", "record", "--force", "-o", trace, "--", *command], seconds, **variables)
    if not trace.exists():
        say("no", name, ran.stdout[-500:], ran.stderr[-500:])
    return ran, trace


class Trace:
    def __init__(self, path):
        self.path = path
        self.file = sqlite3.connect(f"file:{path}?mode=rw", uri=True)

    def __del__(self):
        # A connection is in a cycle of references: by itself it would be open until the next collection, and rpd record not replace the file.
        self.file.close()

    def rows(self, sql):
        return self.file.execute(sql).fetchall()

    def number(self, sql):
        return self.rows(sql)[0][0]

    def operations(self):
        return dict(self.rows("select opType, count(*) from op group by 1"))

    def measured(self):
        """How many of each kernel began behind the mark `measured` of their process."""
        marks = "with M as materialized (select id >> 32 as session, max(start) as begin from api where args = 'measured' group by 1)"
        kernels = "select description, count(*) from op O join M on M.session = O.id >> 32 and O.start > M.begin where opType = 'KernelExecution' group by 1"
        return dict(self.rows(f"{marks} {kernels}"))

    def check(self, what, warnings=0):
        ran = run([BIN / "rpd", "check", self.path])
        last = ran.stdout.strip().splitlines()[-1] if ran.stdout.strip() else ran.stderr
        held = f"0 errors, {warnings} warning" in last
        check(f"{what}: rpd check", held, last if held else ran.stdout)

    def linked(self, what, is_late=False):
        """`is_late`: the program launched while CUPTI was attached, so kernels may be recorded whose calls are not."""
        operations = self.number("select count(*) from rocpd_op")
        early = "select count(*), ifnull(max(A.start - O.start), 0) from rocpd_api_ops L join rocpd_op O on O.id = L.op_id join rocpd_api A on A.id = L.api_id where O.start < A.start"
        links = self.number("select count(distinct op_id) from rocpd_api_ops")
        made_up = self.number("select count(*) from api where apiName = 'cudaOperation'")
        check(f"{what}: every operation has its call", links == operations and (made_up == 0 or is_late), f"{links} of {operations}, {made_up} made up")
        count, most = self.rows(early)[0]
        check(f"{what}: no operation before its call", count == 0, f"{count}, by {most} ns at most")


# What work.c says it did.
Done = collections.namedtuple("Done", "what count begin end")


def done(text):
    lines = [line.split() for line in text.splitlines()]
    return [Done(line[0], int(line[1]), int(line[2]), int(line[3])) for line in lines if len(line) >= 4 and all(re.fullmatch("-?[0-9]+", word) for word in line[1:4])]


def place(name):
    """An empty directory of that name."""
    directory = OUT / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    return directory


def ask(verb, process, *options):
    """rpdRemote."""
    return run([BIN / "rpd", "remote", verb, *options, process.pid], 60)


def machine():
    """The GPU, its driver and CUPTI, as a trace says them."""
    _, path = record("machine.rpd", [WORK, "launch=1"])
    facts = dict(Trace(path).rows("select tag, value from rocpd_metadata where tag like 'gpu::%::name' or tag like 'session::0::version::%'"))
    path.unlink()
    names = [value for tag, value in facts.items() if tag.startswith("gpu::")]
    version = lambda what: facts.get(f"session::0::version::{what}", "?")
    model = re.search("model name\\s*: (.*)", Path("/proc/cpuinfo").read_text())
    text = f"{', '.join(names)}, driver {version('nvidia_driver')}, CUDA {version('cuda')}, CUPTI {version('cupti')}"
    return f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC; {text}; {os.cpu_count()} x {model.group(1) if model else '?'}; rpd {version('rpd')}"


def has_torch():
    has = importlib.util.find_spec("torch") is not None
    if not has:
        say("PyTorch is not here")
    return has


def gpus():
    """How many GPUs a program of PyTorch's sees."""
    ran = run([sys.executable, "-c", "import torch; print(torch.cuda.device_count())"])
    return int(ran.stdout) if ran.returncode == 0 else 0


def nsys():
    """NVIDIA's nsys, where there is one."""
    places = ["/usr/local/cuda/bin/nsys", "nsight-systems*/*/bin/nsys", "nsight-systems*/bin/nsys", "nsight-compute/*/host/target-linux-x64/nsys"]
    found = [str(file) for text in places for file in (Path("/opt/nvidia").glob(text) if "*" in text else [Path(text)]) if file.exists()]
    return shutil.which("nsys") or next(iter(found), None)
