"""python3 -m rpd.spark QUERY DATASET --master URL: asks a dataset by Apache Spark, on this machine or a cluster.

Scheduling, shuffles and the repetition of what was lost with a machine are Spark's. Paths as s3a://... are for its connectors.
"""

import os
import shutil
import sys

from rpd.jobs import TABLES, Wrong, check, place, run

# Shuffles of one machine in so many pieces; Spark's own number for a cluster is 200, and it joins small ones.
LOCAL_PARTITIONS = 8


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
    found = 0
    for table, columns in TABLES.items():
        schema = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
        try:
            # With its columns known beforehand, no file is opened before a query needs it.
            rows = spark.read.schema(schema).parquet(place(dataset, table))
            found += 1
        except AnalysisException as error:
            if "PATH_NOT_FOUND" not in str(error):
                raise Wrong(f"cannot read {dataset}: {error}") from None
            rows = spark.createDataFrame([], schema)
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
