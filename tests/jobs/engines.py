"""The checks of tests/jobs/run: engines.py REPOSITORY [--growth [RANKS...] | --cost]."""

import contextlib
import json
import os
import re
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
WORKERS = 2
EXECUTOR = b"CoarseGrainedExecutorBackend"
# A driver that all of the cluster reaches, and shuffles for one machine.
CONF = ["spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1", "spark.ui.enabled=false", f"spark.sql.shuffle.partitions={spark.LOCAL_PARTITIONS}"]


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


class Cluster:
    """A master and workers of Spark, each a process, that speak with nobody outside this machine. They end with the block."""

    def __init__(self):
        self.folder = HERE / "cluster"
        self.processes = []

    def __enter__(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        master = "org.apache.spark.deploy.master.Master"
        self.master_log, self.url = self.start("master", r"Starting Spark master at (spark://\S+)", master)
        for number in range(WORKERS):
            worker = ["org.apache.spark.deploy.worker.Worker", "-c", "1", "-m", "1g", "--work-dir", self.folder / f"work{number}"]
            self.start(f"worker{number}", r"registered with master (\S+)", *worker, self.url)
        self.workers = self.processes[1:]
        return self

    def start(self, name, pattern, program, *arguments):
        """Starts a program of Spark and waits for what its log says when it is ready."""
        home = Path(pyspark.__file__).parent
        log = self.folder / f"{name}.log"
        options = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        # What a killed process leaves is in the folder.
        environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_DIRS": str(self.folder)}
        with open(log, "w") as out:
            command = [home / "bin" / "spark-class", program, *options, *arguments]
            self.processes.append(subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment))
        return log, logged(log, pattern, self.processes[-1])

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def logged(log, pattern, process, seconds=120):
    """What stands in a log where the pattern has its group, as soon as it stands there."""
    until = time.monotonic() + seconds
    while not (found := re.search(pattern, log.read_text())):
        assert process.poll() is None and time.monotonic() < until, f"{pattern} is not in:\n{log.read_text()}"
        time.sleep(0.1)
    return found[1]


def executors(of=None):
    """Processes of Spark's executors that are descendants of this process, or of another one."""
    root, found, parents = of or os.getpid(), set(), {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if EXECUTOR in (entry / "cmdline").read_bytes():
                    found.add(int(entry.name))
            except OSError:
                pass

    def is_ours(process):
        while process in parents and process != root:
            process = parents[process]
        return process == root

    # A script that starts Java has the class in its arguments too: the one without a child of that kind counts.
    return {process for process in found if is_ours(process) and not any(parents.get(other) == process for other in found)}


class Asking:
    """A query that Spark works on: it has had 0.4 of the time that it takes."""

    def __init__(self, session, query):
        # An executor that has just come is slow at first.
        by_spark(session, query)
        _, self.warm = by_spark(session, query)
        self.executors = executors()
        assert len(self.executors) == WORKERS, self.executors
        self.query, self.found = query, {}
        self.thread = threading.Thread(target=self.ask, args=(session,))
        self.thread.start()
        time.sleep(self.warm * 0.4)
        assert session.sparkContext.statusTracker().getActiveStageIds(), "the query was over before the kill"

    def ask(self, session):
        self.found["rows"], self.found["took"] = by_spark(session, self.query)

    def kill(self, what, processes):
        for process in processes:
            os.kill(process, signal.SIGKILL)
        say(f"  {self.query}: warm {self.warm:.1f} s; {what} killed {self.warm * 0.4:.1f} s after the query began again")

    def wait_for(self, what, is_there):
        while not is_there():
            assert self.thread.is_alive(), f"{what} was not seen while the query ran"
            time.sleep(0.05)

    def answers(self, what, expected):
        self.thread.join()
        equal(f"{self.query}: {what}", self.found["rows"], expected)
        say(f"  {what}; the query took {self.found['took']:.1f} s; {len(expected)} rows equal to SQLite's")


def kill_an_executor(session, query, expected):
    """Its worker starts another one, and the query answers all the same."""
    asking = Asking(session, query)
    victim = min(asking.executors)
    asking.kill("executor", [victim])
    asking.wait_for("another executor", lambda: executors() - asking.executors)
    assert victim not in executors(), "the executor lives on"
    asking.answers("another executor came", expected)


def kill_a_worker(session, query, expected, cluster):
    """With its executor, as when a machine is lost. What is left of the cluster does the work."""
    asking = Asking(session, query)
    worker, log = cluster.workers[0], cluster.master_log
    own = executors(worker.pid)
    assert len(own) == 1, own
    asking.kill("a worker and its executor", [worker.pid, *own])
    worker.wait()
    asking.wait_for("that the master removes the worker", lambda: "Removing worker" in log.read_text())
    asking.answers("the master removed the worker", expected)
    left = asking.executors - own
    assert executors() == left, f"{executors()} in place of {left}"


def check():
    say(f"Python {sys.version.split()[0]}, DuckDB {duckdb.__version__}, Spark {pyspark.__version__}, {os.cpu_count()} CPUs")
    place, traces, _ = job("t64", *JOB)
    run(RPD, "merge", "-o", place / "all.rpd", *traces)
    # No manifest names it: nobody may count its rows.
    file = next((place / "dataset" / "op").rglob("*.parquet"))
    shutil.copy(file, file.with_name("part-0000000000000001-0-00000000.parquet"))
    expected, seconds = {}, {}
    for query in QUERIES:
        expected[query], in_sqlite = by_sqlite(place, query)
        assert expected[query], query
        found, in_duckdb = by_duckdb(place, query)
        equal(f"{query} by DuckDB", found, expected[query])
        seconds[query] = [in_sqlite, in_duckdb]
    with Cluster() as cluster:
        on_spark(cluster, place, expected, seconds)
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


def on_spark(cluster, place, expected, seconds):
    session = spark.session(cluster.url, CONF)
    try:
        spark.open_dataset(session, str(place / "dataset"))
        for query in QUERIES:
            found, took = by_spark(session, query)
            equal(f"{query} by Spark", found, expected[query])
            seconds[query].append(took)
        operations = sum(row["ops"] for row in expected["job_busy"])
        say(f"{JOB[0]} ranks, {operations} operations without barriers; Spark: a master and {WORKERS} workers with a core each")
        say("query             rows   SQLite s   DuckDB s   Spark s   answers")
        for query, (in_sqlite, in_duckdb, in_spark) in seconds.items():
            say(f"{query:15}  {len(expected[query]):5}  {in_sqlite:9.2f}  {in_duckdb:9.2f}  {in_spark:8.2f}   equal to the row")
        say("An executor is killed (SIGKILL) while it works:")
        for query in ("job_overlap", "job_stragglers"):
            kill_an_executor(session, query, expected[query])
        say("A worker is killed with its executor:")
        kill_a_worker(session, "job_overlap", expected["job_overlap"], cluster)
    finally:
        session.stop()
    # By what is left of the cluster.
    conf = [word for setting in CONF for word in ("--conf", setting)]
    answer, _ = run(sys.executable, "-m", "rpd.spark", "job_busy", place / "dataset", "--master", cluster.url, "--json", *conf)
    equal("python3 -m rpd.spark job_busy", json.loads(answer), expected["job_busy"])


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
    # So that what was started ends as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    wanted = sys.argv[2:3]
    if wanted == ["--growth"]:
        growth([int(word) for word in sys.argv[3:]] or [16, 64, 256, 1000])
    elif wanted == ["--cost"]:
        cost()
    else:
        check()
