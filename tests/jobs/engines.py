"""The checks of tests/jobs/run: engines.py REPOSITORY [--growth [RANKS...] | --cost]."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pyspark

from rpd import jobs, spark

REPOSITORY = Path(sys.argv[1])
HERE = REPOSITORY / "target" / "jobs"
RPD = REPOSITORY / "target" / "release" / "rpd"
RANKS = REPOSITORY / "target" / "release" / "examples" / "ranks"
QUERIES = sorted(file.stem for file in (REPOSITORY / "sql" / "job_queries").glob("*.sql"))
SEED = "20261127"
# Ranks, iterations, kernels of an iteration: 64 ranks have 970,000 operations.
JOB = (64, 50, 300)
# Two jobs of as many ranks: what the longer one takes more is the cost of its operations.
COST = ((16, 200, 300), (16, 800, 300))
# Rows of a rank are as many at each size, and few, for the disk: 2,060 operations.
GROWTH = (20, 100)
CLUSTER = "local-cluster[2,1,1024]"
EXECUTOR = b"CoarseGrainedExecutorBackend"


def say(*words):
    print(*words, flush=True)


def run(*command):
    begun = time.monotonic()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout, time.monotonic() - begun


def job(name, ranks, iterations, kernels):
    """The traces of a job, and a dataset of them."""
    place = HERE / name
    shutil.rmtree(place, ignore_errors=True)
    run(RANKS, place / "traces", ranks, iterations, kernels, SEED)
    traces = sorted((place / "traces").iterdir())
    _, took = run(RPD, "dataset", place / "dataset", *traces)
    return place, traces, took


def normal(columns, rows):
    return [dict(zip(columns, row)) for row in rows]


def by_sqlite(place, query):
    answer, took = run(RPD, "sql", "--json", "--timeout", "0", place / "all.rpd", query)
    return json.loads(answer), took


def by_duckdb(place, query):
    answer, took = run(sys.executable, "-m", "rpd.duck", query, place / "dataset", "--json")
    return json.loads(answer), took


def by_spark(session, query):
    begun = time.monotonic()
    answer = session.sql(jobs.statement(query))
    rows = normal(answer.columns, answer.collect())
    return rows, time.monotonic() - begun


def equal(what, found, expected):
    if found != expected:
        pairs = [pair for pair in zip(found, expected) if pair[0] != pair[1]]
        sys.exit(f"{what}: {len(found)} rows in place of {len(expected)}; the first that differ: {pairs[:2]}")


def executors():
    """Processes of Spark's executors that are descendants of this one."""
    found, parents = set(), {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if EXECUTOR in (entry / "cmdline").read_bytes():
                    found.add(int(entry.name))
            except OSError:
                pass

    def is_ours(process):
        while process in parents and process != os.getpid():
            process = parents[process]
        return process == os.getpid()

    # A script that starts Java has the class in its arguments too: the one without a child of that kind counts.
    return {process for process in found if is_ours(process) and not any(parents.get(other) == process for other in found)}


def killed(session, query, expected):
    """Kills an executor while it works on a query, which must answer all the same."""
    _, warm = by_spark(session, query)
    before = executors()
    assert len(before) == 2, before
    result = {}

    def ask():
        result["rows"], result["took"] = by_spark(session, query)

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(warm * 0.4)
    assert session.sparkContext.statusTracker().getActiveStageIds(), "the query was over before the kill"
    victim = min(before)
    os.kill(victim, signal.SIGKILL)
    say(f"  {query}: warm {warm:.1f} s; executor killed {warm * 0.4:.1f} s after the query began again")
    came = set()
    while asking.is_alive() and not came:
        came = executors() - before
        time.sleep(0.05)
    assert victim not in executors(), "the executor lives on"
    assert came, "no other executor came while the query ran"
    asking.join()
    equal(f"{query} with an executor killed", result["rows"], expected)
    say(f"  another executor came; the query took {result['took']:.1f} s; {len(expected)} rows equal to SQLite's")


def check():
    say(f"Python {sys.version.split()[0]}, DuckDB {duckdb.__version__}, Spark {pyspark.__version__}, {os.cpu_count()} CPUs")
    place, traces, _ = job("t64", *JOB)
    run(RPD, "merge", "-o", place / "all.rpd", *traces)
    expected, seconds = {}, {}
    for query in QUERIES:
        expected[query], in_sqlite = by_sqlite(place, query)
        assert expected[query], query
        found, in_duckdb = by_duckdb(place, query)
        equal(f"{query} by DuckDB", found, expected[query])
        seconds[query] = [in_sqlite, in_duckdb]
    session = spark.session(CLUSTER)
    try:
        spark.open_dataset(session, str(place / "dataset"))
        for query in QUERIES:
            found, took = by_spark(session, query)
            equal(f"{query} by Spark", found, expected[query])
            seconds[query].append(took)
        operations = sum(row["ops"] for row in expected["job_busy"])
        say(f"{JOB[0]} ranks, {operations} operations without barriers; Spark: {CLUSTER}")
        say("query             rows   SQLite s   DuckDB s   Spark s   answers")
        for query, (in_sqlite, in_duckdb, in_spark) in seconds.items():
            say(f"{query:15}  {len(expected[query]):5}  {in_sqlite:9.2f}  {in_duckdb:9.2f}  {in_spark:8.2f}   equal to the row")
        say("An executor is killed (SIGKILL) while it works:")
        for query in ("job_overlap", "job_stragglers"):
            killed(session, query, expected[query])
    finally:
        session.stop()
    answer, _ = run(sys.executable, "-m", "rpd.spark", "job_busy", place / "dataset", "--master", CLUSTER, "--json")
    equal("python3 -m rpd.spark job_busy", json.loads(answer), expected["job_busy"])
    refused = subprocess.run([sys.executable, "-m", "rpd.spark", "job_tops", str(place / "dataset")], capture_output=True, text=True)
    assert refused.returncode == 2 and "job_top" in refused.stderr, refused
    refused = subprocess.run([sys.executable, "-m", "rpd.spark", "job_top", str(HERE)], capture_output=True, text=True)
    assert refused.returncode == 2 and "_dataset.json" in refused.stderr, refused
    empty = HERE / "copies.sql"
    empty.write_text("SELECT COUNT(*) AS copies FROM copy;\n")
    answer, _ = run(sys.executable, "-m", "rpd.spark", empty, place / "dataset", "--json")
    assert json.loads(answer) == [{"copies": 0}], answer
    say("python3 -m rpd.spark: answers as above; what is wrong ends with 2; a table without rows is empty")
    shutil.rmtree(place)


def growth(sizes):
    for ranks in sizes:
        place, _, took = job("growth", ranks, *GROWTH)
        sizes_of = {table: [file.stat().st_size for file in (place / "dataset" / table).rglob("*.parquet")] for table in ("op", "api")}
        session = spark.session("local[2]")
        try:
            spark.open_dataset(session, str(place / "dataset"))
            rows = {table: session.sql(f"SELECT COUNT(*) FROM {table}").collect()[0][0] for table in sizes_of}
            by_spark(session, "job_busy")
            say(f"{ranks} ranks: {rows['op']} operations, {rows['api']} calls; rpd dataset {took:.1f} s")
            for table, bytes_of in sizes_of.items():
                say(f"  {table}: {len(bytes_of)} files, {sum(bytes_of)} bytes, {sum(bytes_of) / rows[table]:.1f} a row")
            for query in QUERIES:
                in_duckdb, in_spark = by_duckdb(place, query), by_spark(session, query)
                equal(f"{query} by Spark", in_spark[0], in_duckdb[0])
                say(f"  {query:15} DuckDB {in_duckdb[1]:6.2f} s  Spark local[2] {in_spark[1]:6.2f} s  {len(in_spark[0])} rows")
        finally:
            session.stop()
        shutil.rmtree(place)


def cpu_of(process):
    """Seconds of CPU that a process and its threads have used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cost():
    """CPU seconds of Spark for each million operations, without what a query costs at all."""
    taken = []
    for size in COST:
        place, _, _ = job("cost", *size)
        session = spark.session("local[2]", ["spark.driver.memory=4g"])
        try:
            spark.open_dataset(session, str(place / "dataset"))
            java = session.sparkContext._gateway.proc.pid
            operations = session.sql("SELECT COUNT(*) FROM op").collect()[0][0]
            seconds = {}
            for query in QUERIES:
                # The first time has what Java compiles.
                by_spark(session, query)
                before = cpu_of(java)
                by_spark(session, query)
                seconds[query] = cpu_of(java) - before
            taken.append((operations, seconds))
        finally:
            session.stop()
        shutil.rmtree(place)
    (few, less), (many, more) = taken
    say(f"Spark local[2], CPU seconds of {few} and {many} operations of {COST[0][0]} ranks, and of each million more:")
    for query in QUERIES:
        say(f"  {query:15} {less[query]:6.2f} {more[query]:6.2f} {(more[query] - less[query]) / (many - few) * 1e6:6.2f}")


if __name__ == "__main__":
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    wanted = sys.argv[2:3]
    if wanted == ["--growth"]:
        growth([int(word) for word in sys.argv[3:]] or [16, 64, 256, 1000])
    elif wanted == ["--cost"]:
        cost()
    else:
        check()
