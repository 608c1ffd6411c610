"""Compares the traces of a directory with what rank.py, or the software GPU, says was done there.

    rows.py --files N [--ranks N] [--times N] [--jobs N] [--named] [--nodes N [--merged FILE] [--dataset DIR]] [--kernels PREFIX]
"""

import argparse
import csv
import glob
import json
import sqlite3
import statistics
import subprocess
from collections import defaultdict
from pathlib import Path

# So far may nodes be apart in a merged trace. Each is at the median, over its markers, of their time less the wall clock's that they say.
NEAR_NS = 5_000_000
# Markers of rank 0; each rank has one more than the rank before (rank.py).
EACH = 100
FACTS = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")


def arguments():
    parser = argparse.ArgumentParser()
    for number in ("files", "ranks", "times", "jobs", "nodes"):
        parser.add_argument(f"--{number}", type=int)
    parser.add_argument("--named", action="store_true")
    for text in ("merged", "dataset", "kernels"):
        parser.add_argument(f"--{text}")
    return parser.parse_args()


class Trace:
    def __init__(self, path):
        self.path = path
        checked = subprocess.run(["rpd", "check", path], capture_output=True, text=True)
        assert checked.returncode == 0, f"rpd check {path}: {checked.stdout}{checked.stderr}"
        trace = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.facts = defaultdict(dict)
        for tag, value in trace.execute("select tag, value from rocpd_metadata where tag like 'session::%'"):
            _, session, key = tag.split("::", 2)
            self.facts[int(session)][key] = value
        self.markers = defaultdict(list)
        for session, start, args in trace.execute("select id >> 32, start, args from api where apiName = 'UserMarker' order by start"):
            if args != "together":
                rank, nth, wall = map(int, args.split())
                self.markers[session].append((rank, nth, start, wall))
        self.kernels = sorted(took for (took,) in trace.execute("select \"end\" - start from op where opType = 'KernelExecution'"))
        lost = trace.execute("select tag, value from rocpd_metadata where tag like 'session::%::lost::%' and cast(value as integer) > 0")
        lost = lost.fetchall()
        assert not lost, f"{path}: records are lost: {lost}"

    def rank(self, session):
        facts = self.facts[session]
        # In the recorder's order: the launcher within counts.
        return next(int(facts[f"env::{name}"]) for name in FACTS if f"env::{name}" in facts)


def markers(asked, traces, did):
    """Each process that ran has a session with its markers, all of them, and the rank that MPI or Slurm gave it."""
    found = []
    for trace in traces:
        for session, rows in trace.markers.items():
            ranks = {rank for rank, *_ in rows}
            assert ranks == {trace.rank(session)}, f"{trace.path}: session of rank {trace.rank(session)} has markers of {ranks}"
            (rank,) = ranks
            assert [nth for _, nth, *_ in rows] == list(range(EACH + rank)), f"{trace.path}: markers of rank {rank} are not all there"
            found.append(rank)
    ranks = asked.ranks or asked.files
    expected = sorted(list(range(ranks)) * ((asked.times or 1) * (asked.jobs or 1)))
    assert sorted(found) == expected, f"sessions of ranks {sorted(found)}, not {expected}"
    rows = sum(len(rows) for trace in traces for rows in trace.markers.values())
    # A second run that was refused did its work unrecorded.
    assert rows <= did, f"{rows} markers, but {did} were set"
    return rows


def names(traces):
    for trace in traces:
        for session, facts in trace.facts.items():
            name = trace.path.stem
            assert name.endswith(f"-{trace.rank(session)}"), f"{name} is of rank {trace.rank(session)}"
            job = facts.get("env::SLURM_JOB_ID") or facts.get("env::PMIX_NAMESPACE") or ""
            assert facts["host"] in name or (job and job in name), f"{name} names neither host {facts['host']} nor job {job}"


def nodes(asked, traces):
    """Distances of clocks on the nodes, as recorded and as merged."""
    lag = defaultdict(list)
    for trace in traces:
        for session, rows in trace.markers.items():
            lag[trace.facts[session]["boot_id"]] += [start - wall for *_, start, wall in rows]
    assert len(lag) == asked.nodes, f"{len(lag)} nodes"
    apart = [statistics.median(of_node) for of_node in lag.values()]
    apart = max(apart) - min(apart)
    assert apart > 4e13, f"clocks are {apart} ns apart"
    said = [f"clocks of {len(lag)} nodes {apart / 1e9:.0f} s apart"]
    if asked.merged:
        merged = Trace(Path(asked.merged))
        lag = defaultdict(list)
        for session, rows in merged.markers.items():
            lag[merged.facts[session]["node"]] += [start - wall for *_, start, wall in rows]
        assert len(lag) == asked.nodes, f"{len(lag)} nodes in {asked.merged}"
        rows = sum(map(len, lag.values()))
        assert rows == sum(len(rows) for trace in traces for rows in trace.markers.values())
        medians = [statistics.median(of_node) for of_node in lag.values()]
        near = max(medians) - min(medians)
        assert near < NEAR_NS, f"{near} ns apart in {asked.merged}"
        said.append(f"{near / 1e3:.0f} us when merged")
    return said


def dataset(asked, traces):
    """Manifests have the rows of each rank, at the times that its markers say."""
    found = {}
    for path in Path(asked.dataset, "_manifest").rglob("*.json"):
        manifest = json.loads(path.read_text())
        found[manifest["rank"]] = manifest
    furthest = 0
    for trace in traces:
        for session, rows in trace.markers.items():
            manifest = found.pop(rows[0][0])
            # `together` is one more, with the first to begin.
            assert manifest["rows"]["api"] == len(rows) + 1, f"rank {manifest['rank']} has {manifest['rows']}"
            started = rows[0][2] + int(manifest["offset_ns"]) - rows[0][3]
            furthest = max(furthest, abs(started))
            assert manifest["first_ns"] <= rows[0][2] + manifest["offset_ns"] <= manifest["last_ns"]
    assert not found, f"the dataset has more ranks: {sorted(found)}"
    assert furthest < 10 * NEAR_NS, f"{furthest} ns from the wall clock in {asked.dataset}"
    return [f"{furthest / 1e3:.0f} us at most from the wall clock in the dataset"]


def kernels(asked, traces):
    ran = []
    for log in glob.glob(f"{asked.kernels}.*"):
        for packet in csv.DictReader(open(log), delimiter="\t"):
            # ROCr and HIP fill and copy with kernels of their own.
            if packet["kind"] == "dispatch" and not packet["name"].startswith(("rocr:", "__amd_rocclr_")):
                ran.append(int(packet["end_ns"]) - int(packet["start_ns"]))
    recorded = sorted(took for trace in traces for took in trace.kernels)
    assert len(recorded) == len(ran) > 0, f"{len(recorded)} kernels recorded, {len(ran)} ran"
    # The GPU's clock has steps of 10 ns.
    assert all(abs(one - other) <= 10 for one, other in zip(recorded, sorted(ran))), "times differ"
    shares = {len(trace.kernels) for trace in traces}
    assert len(shares) == 1, f"ranks that did the same have {shares} kernels"
    return [f"{len(ran)} kernels, with the times that the GPUs had"]


def main():
    asked = arguments()
    paths = [path for path in sorted(Path().glob("*.rpd")) if path.name != asked.merged]
    assert len(paths) == asked.files, f"files: {[path.name for path in paths]}, not {asked.files}"
    traces = [Trace(path) for path in paths]
    said = [f"{len(paths)} files"]
    if asked.kernels:
        said += kernels(asked, traces)
    else:
        did = sum(int(line) for path in Path().glob("did.*") for line in path.read_text().split())
        said.append(f"{markers(asked, traces, did)} markers")
    if asked.named:
        names(traces)
    if asked.nodes:
        said += nodes(asked, traces)
    if asked.dataset:
        said += dataset(asked, traces)
    print(", ".join(said))


main()
