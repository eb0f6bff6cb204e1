"""Archives of the classes that Kafka's server and its tools load, once for all that start later.

A virtual machine maps such a file in place of reading, checking and linking each class: a Kafka starts for two thirds
of the processor's time. Java leaves an archive of other jars, or of another Java, unused.

    python -m tools.class_archives      # makes those that are missing
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from pathlib import Path

from tools.java import ARCHIVES, QUICK_FLAGS, archive_of, making_flags
from tools.kafka_jars import KAFKA, JarsUnavailable, classpath, jars
from tools.kafka_server import kafka_server
from tools.kafka_tools import KafkaTools
from tools.server_process import ServerFailed

#: An archive is written when the machine ends.
_END_SECONDS_MAX = 60.0
_TOPIC = "t"


def make_for_kafka(folder: Path, scratch: Path) -> None:
    """A server that has a topic, a group and its records, and the tools that made them."""
    wanted = {main: archive_of(classpath(folder), main) for main in ("kafka.Kafka", "Program.java")}
    if all(archive.exists() for archive in wanted.values()):
        return
    written = {main: scratch / archive.name for main, archive in wanted.items()}
    server = kafka_server(
        scratch / "kafka", folder=folder, flags=("-Xmx512m", *QUICK_FLAGS, *making_flags(written["kafka.Kafka"]))
    )
    tools = KafkaTools(folder, flags=making_flags(written["Program.java"]), end_seconds_max=_END_SECONDS_MAX)
    with server, tools:
        at = ("--bootstrap-server", server.bootstrap)
        tools.run("TopicCommand", *at, "--create", "--topic", _TOPIC)
        tools.run("ConsoleProducer", *at, "--topic", _TOPIC, stdin=b"a\nb\n")
        tools.run("consumer.ConsoleConsumer", *at, "--topic", _TOPIC, "--from-beginning", "--max-messages", "2")
        tools.run("consumer.group.ConsumerGroupCommand", *at, "--all-groups", "--describe")
    for main, archive in wanted.items():
        if written[main].exists():
            os.replace(written[main], archive)


def main() -> int:
    if not KAFKA.is_there():
        return 0
    ARCHIVES.mkdir(parents=True, exist_ok=True)
    with (ARCHIVES / "lock").open("w") as lock, tempfile.TemporaryDirectory(dir=ARCHIVES) as scratch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            make_for_kafka(jars(KAFKA), Path(scratch))
        except (JarsUnavailable, ServerFailed, OSError) as fault:
            print(f"no archives of classes: {fault}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
