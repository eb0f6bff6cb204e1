"""A driver that the tests kill: a stream over files, one a micro-batch, into a topic.

python killed_driver.py JSON    # bootstrap, topic, files, checkpoint, master, config, expression; dies, options, fails

A query that fails is started again, as often as `fails` says.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from pyspark.errors import StreamingQueryException

import ottla.spark


def main() -> None:
    given = json.loads(sys.argv[1])
    spark = ottla.spark.session(master=given["master"], config={"spark.ui.enabled": False, **given["config"]})
    spark.sparkContext.setLogLevel("ERROR")
    if "dies" in given:
        from tests.spark.sink.exactly_once.dying import DyingDataSource

        spark.dataSource.register(DyingDataSource)
    for left in reversed(range(given.get("fails", 0) + 1)):
        query = started(spark, given)
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if not left:
                raise
            print("failed:", error, flush=True)
        else:
            return


def started(spark: Any, given: Mapping[str, Any]) -> Any:
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(given["files"])
    return (
        lines.repartition(2)
        .selectExpr(f"{given['expression']} AS value")
        .writeStream.format("dying" if "dies" in given else "ottla")
        .option("dies", given.get("dies", ""))
        .options(**given.get("options", {}))
        .option("kafka.bootstrap.servers", given["bootstrap"])
        .option("topic", given["topic"])
        .option("ottla.query", given["topic"])
        # Small, so that a batch of Spark's is many of Kafka's and a kill finds it half written.
        .option("kafka.batch.size", 500)
        .option("checkpointLocation", given["checkpoint"])
        .trigger(availableNow=True)
        .start()
    )


main()
