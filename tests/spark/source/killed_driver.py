"""A driver that is to be killed: reads a topic as a stream and writes each batch's numbers to a file of its own.

    python -m tests.spark.source.killed_driver BOOTSTRAP TOPIC FOLDER [all] [MASTER [JSON]]

A batch that is written again replaces its file, so what is read twice after a restart must be the same. With `all` it
reads what there is and ends. MASTER is Spark's, and JSON its properties; beside them, how many records a batch has
(`records`), and which number takes long (`slow`).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.spark.standalone import SLOW

import ottla.spark
from ottla.spark.workers import worker_python


def main(bootstrap: str, topic: str, folder: str, everything: bool, master: str, config: dict[str, str]) -> None:
    records, slow = config.pop("records", "40"), config.pop("slow", None)
    python = worker_python(os.environ) if master.startswith("local") else sys.executable
    os.environ["PYSPARK_PYTHON"], os.environ["SPARK_LOCAL_IP"] = python, "127.0.0.1"
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false").config(map=config)
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.config("spark.local.dir", f"{folder}/local").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(ottla.spark.OttlaDataSource)
    ottla.spark.track(spark)

    value = "CAST(value AS STRING)"
    value = value if slow is None else f"if({value} = '{slow}', if({SLOW}, '', {value}), {value})"

    def write(frame: Any, batch: int) -> None:
        numbers = sorted(int(row.value) for row in frame.selectExpr(f"{value} AS value").collect())
        written = Path(folder) / f"{batch}.numbers"
        written.with_suffix(".new").write_text("".join(f"{number}\n" for number in numbers))
        written.with_suffix(".new").rename(written)
        print("batch", batch, len(numbers), flush=True)

    stream = spark.readStream.format("ottla").option("kafka.bootstrap.servers", bootstrap)
    stream = (
        stream.option("subscribe", topic).option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", records)
    )
    stream = stream.option("kafka.group.id", f"group-of-{topic}")
    trigger = {"availableNow": True} if everything else {"processingTime": "0 seconds"}
    writer = stream.load().writeStream.option("checkpointLocation", f"{folder}/checkpoint").trigger(**trigger)
    writer.foreachBatch(write).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    words = sys.argv[1:]
    ends = "all" in words[3:]
    chosen = [word for word in words[3:] if word != "all"]
    main(*words[:3], ends, chosen[0] if chosen else "local[2]", json.loads(chosen[1]) if chosen[1:] else {})
