#!/usr/bin/env python3
"""How long the overview of a dataset takes, as a page asks for it: seconds from the start of rpd view, and its memory.

usage: tests/jobs/overview.py DATASET...   (rpd from target/release; schema/examples/ranks and rpd dataset make a dataset)
"""
import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

RPD = Path(__file__).resolve().parents[2] / "target/release/rpd"


def overview(dataset):
    """Ranks, operations, seconds to the first track and to all, to an open rank; largest resident size without and with it, MB."""
    begun = time.monotonic()
    view = subprocess.Popen([RPD, "view", "--no-open", dataset], stdout=subprocess.PIPE, text=True)
    try:
        url = view.stdout.readline().strip()

        def ask(path):
            return urllib.request.urlopen(url + path).read()

        def memory():
            status = Path(f"/proc/{view.pid}/status").read_text()
            return int(status.split("VmHWM:")[1].split()[0]) / 1000

        ranks = json.loads(ask("ranks"))
        done, first = 0, None
        while done < len(ranks["tracks"]):
            answer = ask(f"utilisation?from={done}")
            if answer and first is None:
                first = time.monotonic() - begun
            done += len(answer) // (24 + 2 * ranks["parts"])
            if not answer:
                time.sleep(0.02)
        every = time.monotonic() - begun
        without = memory()
        begun = time.monotonic()
        ask("rank/0/all/")
        while not json.loads(ask("rank/0/all/trace")).get("is_whole"):
            time.sleep(0.02)
        opened = time.monotonic() - begun
        operations = sum(track["ops"] for track in ranks["tracks"])
        return len(ranks["tracks"]), operations, first, every, opened, without, memory()
    finally:
        view.terminate()
        view.wait()


if len(sys.argv) < 2:
    sys.exit(__doc__)
print("ranks\toperations\tfirst_s\tall_s\topened_s\tMB\topened_MB")
for dataset in sys.argv[1:]:
    ranks, operations, *numbers = overview(dataset)
    print(ranks, operations, *(f"{number:.2f}" for number in numbers), sep="\t")
