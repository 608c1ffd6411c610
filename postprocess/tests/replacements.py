#!/usr/bin/env python3
"""Works out anew, with numpy, scipy and arch, what `rpd replacements --json TRACE` says, and compares. Run by hand:

    pip install numpy scipy arch
    python3 postprocess/tests/replacements.py target/release/rpd TRACE ...

Quantiles must be equal. Block lengths are those of arch.bootstrap.optimal_block_length, resamples are drawn by other random numbers,
and Student's distribution is scipy's, so the ends of intervals may differ by a few hundredths of their width.
"""
import json
import sqlite3
import subprocess
import sys

import numpy as np
from arch.bootstrap import optimal_block_length
from scipy import stats

QUERY = """
    SELECT s.string, o.gpuId, d.gridX, d.gridY, d.gridZ, d.workgroupX, d.workgroupY, d.workgroupZ, c.path, o.start, o."end" - o.start
    FROM rocpd_op o JOIN rocpd_string s ON s.id = description_id JOIN dispatch d ON d.id = o.id
    LEFT JOIN ext_replacement r ON r.op_id = o.id LEFT JOIN ext_candidate c ON c.id = candidate_id ORDER BY o.start
"""


def influences(sides, times, medians):
    """What each time does to the ratio of the medians."""
    sign = np.sign(times - medians[sides]) * np.where(sides == 0, 1, -1)
    return sign * len(sides) / np.array([np.sum(sides == 0), np.sum(sides == 1)])[sides]


def block(values):
    if len(values) < 3 or np.all(values == values[0]):
        return 1
    length = optimal_block_length(values)["circular"].iloc[0]
    return 1 if np.isnan(length) else max(1, round(length))


def interval(series, resamples=4000):
    """95 % of the ratios of circular block bootstraps, made wider for small samples."""
    random = np.random.default_rng(5)
    together = [np.concatenate([times[sides == side] for sides, times in series]) for side in (0, 1)]
    medians = np.array([np.median(times) for times in together])
    blocks = [block(influences(sides, times, medians)) for sides, times in series]
    ratios = []
    while len(ratios) < resamples:
        drawn = [[], []]
        for (sides, times), length in zip(series, blocks):
            starts = random.integers(0, len(times), -(-len(times) // length))
            places = ((starts[:, None] + np.arange(length)).ravel() % len(times))[: len(times)]
            for side in (0, 1):
                drawn[side].append(times[places][sides[places] == side])
        drawn = [np.concatenate(side) for side in drawn]
        if all(len(side) for side in drawn):
            ratios.append(np.median(drawn[0]) / np.median(drawn[1]))
    counts = len(series[0][0]) if len(series) == 1 else min(len(sides) / length for (sides, _), length in zip(series, blocks))
    freedom = max(1, counts - 1)
    wider = stats.t.ppf(0.975, freedom) / stats.norm.ppf(0.975) * np.sqrt((freedom + 1) / freedom)
    ratio = medians[0] / medians[1]
    return [ratio * (edge / ratio) ** wider for edge in np.quantile(ratios, [0.025, 0.975])]


def check(rpd, trace):
    told = json.loads(subprocess.run([rpd, "replacements", "--json", trace], check=True, stdout=subprocess.PIPE).stdout)
    dispatches = {}
    for *launch, path, start, duration in sqlite3.connect(trace).execute(QUERY):
        dispatches.setdefault(tuple(launch), {}).setdefault(path, []).append((start, duration))
    worst = intervals = 0
    for launch in told["launches"]:
        builds = dispatches[(launch["kernel"], launch["gpu"], *launch["grid"], *launch["workgroup"])]
        base = builds[launch["builds"][0]["candidate"]]
        for build in launch["builds"]:
            found = builds[build["candidate"]]
            times = np.array([duration for _, duration in found])
            assert build["calls"] == len(times) and build["total_ns"] == times.sum(), build
            for key, share in (("p10_ns", 0.1), ("median_ns", 0.5), ("p90_ns", 0.9)):
                assert abs(build[key] - np.quantile(times, share)) < 1e-6, (build, key)
            if build["low"] is None or build["sampled"] < build["calls"]:
                continue
            one = sorted([(start, 0, duration) for start, duration in base] + [(start, 1, duration) for start, duration in found])
            sides, both = np.array([side for _, side, _ in one]), np.array([duration for *_, duration in one], dtype=float)
            series = [(sides, both)] if build["by_turns"] else [(sides[sides == side], both[sides == side]) for side in (0, 1)]
            low, high = interval(series)
            width = max(high - low, 1e-9)
            apart = max(abs(build["low"] - low), abs(build["high"] - high)) / width
            print(f"{build['low']:.5f} to {build['high']:.5f}, here {low:.5f} to {high:.5f}: {apart:.3f} of its width")
            worst, intervals = max(worst, apart), intervals + 1
    print(f"{trace}: {len(told['launches'])} launches, {intervals} intervals, the worst end is {worst:.3f} of the width off")
    return worst < 0.2


if __name__ == "__main__":
    sys.exit(not all([check(sys.argv[1], trace) for trace in sys.argv[2:]]))
