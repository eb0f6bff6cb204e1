"""Reads topics with Spark's own Kafka source and with Ottla's, in one session that has the former's jars, and compares.

    python -m tests.spark.source.connector_rows BOOTSTRAP TOPIC TRANSACTIONS COMPACTED

Prints one line of JSON for each set of options: its name, the rows and the tasks of each, and whether the rows are the
same.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession
from tools.kafka_jars import connector_jars

import ottla.spark


def option_sets(topic: str, transactions: str, compacted: str) -> dict[str, dict[str, str]]:
    def offsets(*numbers: int) -> str:
        return json.dumps({topic: {str(partition): number for partition, number in enumerate(numbers)}})

    return {
        "everything": {"includeHeaders": "true"},
        "splits": {"minPartitions": "7"},
        "records a split": {"maxRecordsPerPartition": "13"},
        "offsets": {"startingOffsets": offsets(5, -2, 30), "endingOffsets": offsets(9, 70, -1)},
        "times": {"startingTimestamp": "1700000000050", "endingTimestamp": "1700000000200"},
        "times by partition": {
            "startingOffsetsByTimestamp": offsets(1700000000010, 1700000000100, 1700000000001),
            "endingOffsetsByTimestamp": offsets(1700000000100, 1700000000250, 1700009999999),
        },
        "after the last": {"startingTimestamp": "1800000000000", "startingOffsetsByTimestampStrategy": "latest"},
        "a pattern": {"subscribePattern": f"^{topic[:-1]}.$"},
        "a part of names": {"subscribePattern": f"{topic[1:-1]}."},
        "assigned": {"assign": json.dumps({topic: [0, 2]})},
        "transactions, all": {"subscribe": transactions},
        "transactions, committed": {"subscribe": transactions, "kafka.isolation.level": "read_committed"},
        "transactions, splits": {
            "subscribe": transactions,
            "kafka.isolation.level": "read_committed",
            "minPartitions": "9",
        },
        "compacted": {"subscribe": compacted},
        "compacted, splits": {"subscribe": compacted, "maxRecordsPerPartition": "11"},
    }


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    """The JVM's source has null where a record has no headers; ours has an empty list, with which Spark is quicker."""
    found = []
    for row in frame.collect():
        named = row.asDict(recursive=True)
        if "headers" in named:
            named["headers"] = [tuple(header.values()) for header in named["headers"] or []]
        found.append(tuple(named.items()))
    return sorted(found, key=lambda pairs: [dict(pairs)[name] for name in ("topic", "partition", "offset")])


def main(bootstrap: str, topic: str, transactions: str, compacted: str) -> None:
    os.environ["PYSPARK_PYTHON"], os.environ["SPARK_LOCAL_IP"] = sys.executable, "127.0.0.1"
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.config("spark.jars", connector_jars()).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(ottla.spark.OttlaDataSource)
    for name, options in option_sets(topic, transactions, compacted).items():
        given = {"kafka.bootstrap.servers": bootstrap, **options}
        if not {"subscribe", "subscribePattern", "assign"} & set(options):
            given["subscribe"] = topic
        frames = [
            spark.read.format("kafka").options(**given).load(),
            spark.read.format("ottla").options(**given).load(),
            ottla.spark.read(spark, given),
        ]
        theirs, loaded, read = found = [rows_of(frame) for frame in frames]
        said = {
            "options": name,
            "rows": [len(rows) for rows in found],
            "tasks": [frame.rdd.getNumPartitions() for frame in frames],
            "same": theirs == loaded == read,
        }
        print(json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
