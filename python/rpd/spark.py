"""python3 -m rpd.spark QUERY DATASET --master URL: asks a dataset by Apache Spark, on this machine or a cluster.

Scheduling, shuffles and the repetition of what was lost with a machine are Spark's. Paths as s3a://... are for its connectors.
"""

import os
import shutil
import sys

from rpd.jobs import TABLES, Wrong, check, files, place, run, unreadable

# Shuffles of one machine in so many pieces; Spark's own number for a cluster is 200, and it joins small ones.
LOCAL_PARTITIONS = 8
# Tasks that look for the files of a table.
LISTING = 64


def session(master, conf=()):
    """A Spark session in which the queries run as they are."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise Wrong("this needs Spark: pip install pyspark, and Java 17") from None
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"
    if not shutil.which(java):
        raise Wrong("Spark needs Java 17, and there is none: apt install openjdk-17-jre-headless, or set JAVA_HOME")
    builder = SparkSession.builder.appName("rpd").master(master)
    # Else "end" is a text.
    builder = builder.config("spark.sql.ansi.doubleQuotedIdentifiers", "true").config("spark.sql.ansi.enabled", "true")
    # Bars of progress are for eyes.
    builder = builder.config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
    # Files are many times smaller than the rows in them, so only what a table was seen to take decides if each executor gets all of it.
    builder = builder.config("spark.sql.autoBroadcastJoinThreshold", "-1")
    builder = builder.config("spark.sql.adaptive.autoBroadcastJoinThreshold", "10MB")
    # With Spark's own number, 10,000, a table of 50,000 files took two minutes on two cores in place of 20 seconds.
    builder = builder.config("spark.sql.sources.parallelPartitionDiscovery.parallelism", str(LISTING))
    if master.startswith("local"):
        # Nobody else has to reach it, and the name of this machine need lead nowhere.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.shuffle.partitions", str(LOCAL_PARTITIONS))
    for setting in conf:
        key, sign, value = setting.partition("=")
        if not sign:
            raise Wrong(f"--conf {setting}: KEY=VALUE is wanted")
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        raise Wrong(f"Spark does not start with --master {master}: {error}") from None
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def open_dataset(spark, dataset):
    """Makes the tables of a dataset known to a session, by their names. One that no rank has rows of is empty."""
    from pyspark.errors import AnalysisException

    check(dataset)
    named = files(dataset)
    found = 0
    for table, columns in TABLES.items():
        folder = place(dataset, table)
        paths = [folder] if named is None else named[table]
        # With its columns known beforehand, no file is opened before a query needs it.
        reader = spark.read.schema(", ".join(f"`{name}` {kind}" for name, kind in columns.items()))
        try:
            rows = reader.option("basePath", folder).parquet(*paths) if paths else None
        except AnalysisException as error:
            if named is not None or "PATH_NOT_FOUND" not in str(error):
                raise unreadable(dataset, error) from None
            rows = None
        if rows is None:
            # Rows from Python would need the same Python on the machines of the cluster.
            empty = ", ".join(f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in columns.items())
            rows = spark.sql(f"SELECT {empty} WHERE FALSE")
        else:
            found += 1
        rows.createOrReplaceTempView(table)
    if not found:
        raise Wrong(f"{dataset} has no rows: add traces with rpd dataset --append")


def _ask(arguments, statement):
    spark = session(arguments.master, arguments.conf)
    try:
        from pyspark.errors import PySparkException

        open_dataset(spark, arguments.dataset)
        try:
            answer = spark.sql(statement)
            return answer.columns, [tuple(row) for row in answer.collect()]
        except PySparkException as error:
            raise Wrong(f"the query cannot be run: {error}") from None
    finally:
        spark.stop()


def _options(parser):
    parser.add_argument("--master", metavar="URL", default="local[*]", help="the cluster, as spark://HOST:7077 or yarn; this machine without it")
    parser.add_argument("--conf", metavar="KEY=VALUE", action="append", default=[], help="a setting of Spark's; may be repeated")


if __name__ == "__main__":
    run("rpd.spark", _ask, _options)
