"""A driver that is to be killed: a batch job that comes again and again, and reads what is new to its group.

    python -m tests.spark.batch_driver BOOTSTRAP TOPIC GROUP FOLDER

Each run reads from where the group stands to what is the end then, writes the numbers to a file that is named after
where that was, and moves the group. One that died before that reads the same again, and its file takes the other's
place.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

import ottla.spark
from ottla.client.sync import Admin
from ottla.model import TopicPartition

#: As whoever starts such jobs by a clock; those beside it need the processor too.
PAUSE_SECONDS = 0.5


def main(bootstrap: str, topic: str, group: str, folder: str) -> None:
    config = {"spark.ui.enabled": False, "spark.local.dir": f"{folder}/local", "spark.driver.memory": "512m"}
    spark = ottla.spark.session(master="local[2]", config=config)
    spark.sparkContext.setLogLevel("ERROR")
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "kafka.group.id": group}
    with Admin(bootstrap_servers=bootstrap) as admin:
        for number in itertools.count():
            stands = admin.list_group_offsets(group)
            rows = ottla.spark.read(spark, options, startingOffsets="group", columns=["value", "partition", "offset"])
            read = rows.collect()
            if not read:
                time.sleep(PAUSE_SECONDS)
                continue
            name = "-".join(str(stands[tp].offset) for tp in sorted(stands)) or "first"
            written = Path(folder) / f"{name}.numbers"
            written.with_suffix(".new").write_text("".join(f"{int(row.value)}\n" for row in read))
            written.with_suffix(".new").rename(written)
            ends: dict[TopicPartition, int] = {}
            for row in read:
                tp = TopicPartition(topic, row.partition)
                ends[tp] = max(ends.get(tp, 0), row.offset + 1)
            admin.alter_group_offsets(group, ends)
            print("batch", number, len(read), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5])
