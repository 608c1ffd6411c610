"""What Python programs do with rpdTracerControl, one scene per run: scenes.py SCENE. Grids tell launches apart."""

import contextlib
import multiprocessing
import os
import sqlite3
import sys
import threading
import time

from rocpd.schema import RocpdSchema
from rpdTracerControl import rpdTracerControl


def mark(profile, name):
    profile.rangePush("scene", "UserMarker", name)
    profile.rangePop()


def grids(file):
    connection = sqlite3.connect(file)
    rows = connection.execute("select gridX from dispatch order by start").fetchall()
    connection.close()
    return [grid for grid, in rows]


def start_stop():
    from hip import Gpu

    rpdTracerControl.setFilename(name="own.rpd", append=False)
    profile = rpdTracerControl()
    gpu = Gpu()
    gpu.launch(1)
    profile.start()
    gpu.launch(2)
    profile.stop()
    gpu.launch(3)
    with rpdTracerControl() as inner:
        mark(inner, "in a section")
        gpu.launch(4)
    gpu.launch(5)


def nested():
    from hip import Gpu

    outer, inner = rpdTracerControl(), rpdTracerControl()
    gpu = Gpu()
    with outer:
        gpu.launch(1)
        with inner:
            inner.start()
            gpu.launch(2)
            inner.stop()
        gpu.launch(3)
    gpu.launch(4)


def worker(number):
    from hip import Gpu

    profile = rpdTracerControl()
    gpu = Gpu()
    gpu.launch(100)
    with profile:
        mark(profile, f"worker {number}")
        gpu.launch(number)


def processes(method):
    rpdTracerControl.setFilename("own.rpd")
    profile = rpdTracerControl()
    context = multiprocessing.get_context(method)
    workers = [context.Process(target=worker, args=(number,)) for number in (1, 2, 3)]
    for process in workers:
        process.start()
    with profile:
        mark(profile, "main")
    for process in workers:
        process.join()
    print([process.exitcode for process in workers])


def renaming_worker():
    try:
        rpdTracerControl.setFilename("other.rpd")
    except RuntimeError as error:
        print(error, flush=True)


def rename_in_a_process():
    rpdTracerControl()
    process = multiprocessing.get_context("spawn").Process(target=renaming_worker)
    process.start()
    process.join()


def flush():
    from hip import Gpu

    profile = rpdTracerControl()
    gpu = Gpu()
    profile.start()
    gpu.launch(1, 2)
    profile.flush()
    print(grids("trace.rpd"))
    gpu.launch(3)
    profile.stop()
    profile.flush()
    print(grids("trace.rpd"))


def append():
    rpdTracerControl.setFilename("own.rpd", append=True)
    with rpdTracerControl() as profile:
        mark(profile, "appended")


def replace():
    rpdTracerControl.setFilename("own.rpd")
    with rpdTracerControl() as profile:
        mark(profile, "alone")


def another_file():
    from hip import Gpu

    gpu = None
    for number in (1, 2, 3):
        rpdTracerControl.setFilename(f"{number}.rpd")
        profile = rpdTracerControl()
        gpu = gpu or Gpu()
        with profile:
            gpu.launch(number)
    rpdTracerControl.setFilename("1.rpd", append=True)
    with profile:
        gpu.launch(4)


def sections_of_a_server():
    """As SGLang's scheduler: the file is removed and created anew before each section, and read after it."""
    from hip import Gpu

    gpu = None
    for number in (1, 2, 3):
        rpdTracerControl.skipCreate()
        if os.path.exists("trace.rpd"):
            os.unlink("trace.rpd")
        connection = sqlite3.connect("trace.rpd")
        RocpdSchema().writeSchema(connection)
        connection.commit()
        del connection
        profile = rpdTracerControl()
        gpu = gpu or Gpu()
        profile.setPythonTrace(True)
        profile.start()
        profile.rangePush("", "rpd profile range", "")
        gpu.launch(number, 10 * number)
        profile.rangePop()
        profile.stop()
        profile.flush()
        connection = sqlite3.connect("trace.rpd")
        names = connection.execute("select distinct apiName from api where apiName in ('launch', 'rpd profile range') order by 1")
        print(grids("trace.rpd"), [name for name, in names])
        connection.close()


class Trace:
    def __enter__(self):
        return deep(3)

    def __exit__(self, *exception):
        pass


def deep(levels):
    return deep(levels - 1) if levels else 0


@contextlib.contextmanager
def annotated(profile, text):
    profile.rangePush("", "UserMarker", text)
    yield
    profile.rangePop()


def failing():
    raise ValueError("on purpose")


def python_trace():
    profile = rpdTracerControl()
    with profile:
        threading.Thread(target=deep, args=(1,)).start()
        profile.setPythonTrace(True)
        with Trace():
            pass
        with annotated(profile, "held by a generator"):
            sum(number for number in range(2))
        with contextlib.suppress(ValueError):
            failing()
        thread = threading.Thread(target=deep, args=(1,), name="traced")
        thread.start()
        thread.join()
        profile.setPythonTrace(False)
        deep(5)


def skip_load():
    rpdTracerControl.skipLoad()
    with rpdTracerControl() as profile:
        mark(profile, "never")
    print(os.environ.get("RPDT_FILENAME"), os.path.exists("trace.rpd"))


def somebody_elses_file():
    with open("notes.txt", "w") as file:
        file.write("mine")
    rpdTracerControl.setFilename("notes.txt")
    try:
        rpdTracerControl()
    except RuntimeError as error:
        print(error)
    print(open("notes.txt").read())


def odd_texts():
    with rpdTracerControl() as profile:
        mark(profile, "half \ud800 and a \0 in it")
        mark(profile, "umlaut \u00e4")


def no_recorder():
    try:
        rpdTracerControl()
    except RuntimeError as error:
        print(error)


def late():
    from hip import Gpu

    gpu = Gpu()
    gpu.launch(1)
    with rpdTracerControl():
        gpu.launch(2, 3)
    gpu.launch(4)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
