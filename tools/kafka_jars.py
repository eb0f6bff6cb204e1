"""Apache Kafka's jars, fetched once with Maven and kept in a folder of the repository's cache.

They are a peer in the benchmarks and an oracle in the tests: the broker, its command line tools and its client.
``OTTLA_KAFKA_JARS``, ``OTTLA_KAFKA_STREAMS_JARS``, ``OTTLA_KAFKA_CONNECT_JARS``, ``OTTLA_KAFKA39_JARS``,
``OTTLA_KAFKA39_BROKER_JARS``, ``OTTLA_KAFKA28_BROKER_JARS`` and ``OTTLA_SPARK_CONNECTOR_JARS`` name folders to use (and
to fill, when they are empty) instead.

    python -m tools.kafka_jars             # prints the folder of Kafka 4.3
    python -m tools.kafka_jars --clients39 # prints the folder of the 3.9 client, which still speaks ZooKeeper mode
    python -m tools.kafka_jars --broker39  # prints the folder of Kafka 3.9 and ZooKeeper 3.8, broker and server
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent

#: A registry that drops a transfer usually serves it a moment later; Maven keeps what had arrived.
ATTEMPTS_MAX = 5
ATTEMPT_SECONDS_MAX = 600


@dataclass(frozen=True, kw_only=True)
class JarSet:
    """Some Maven artifacts with everything they depend on, in one folder."""

    folder_name: str
    variable: str
    artifacts: tuple[str, ...]
    #: Present only when the copy is whole enough to use.
    witness: str

    def folder(self) -> Path:
        named = os.environ.get(self.variable)
        return Path(named).resolve() if named else REPOSITORY / ".cache" / self.folder_name

    def is_there(self) -> bool:
        return (self.folder() / self.witness).is_file()


KAFKA = JarSet(
    folder_name="kafka-4.3.1",
    variable="OTTLA_KAFKA_JARS",
    artifacts=("org.apache.kafka:kafka_2.13:4.3.1", "org.apache.kafka:kafka-tools:4.3.1"),
    witness="kafka-clients-4.3.1.jar",
)
#: Kafka Streams, for applications that tests write.
STREAMS = JarSet(
    folder_name="kafka-streams-4.3.1",
    variable="OTTLA_KAFKA_STREAMS_JARS",
    artifacts=("org.apache.kafka:kafka-streams:4.3.1",),
    witness="kafka-streams-4.3.1.jar",
)
#: Kafka Connect's worker, and its connectors for files.
CONNECT = JarSet(
    folder_name="kafka-connect-4.3.1",
    variable="OTTLA_KAFKA_CONNECT_JARS",
    artifacts=("org.apache.kafka:connect-runtime:4.3.1", "org.apache.kafka:connect-file:4.3.1"),
    witness="connect-file-4.3.1.jar",
)
CLIENTS_39 = JarSet(
    folder_name="kafka-clients-3.9.0",
    variable="OTTLA_KAFKA39_JARS",
    artifacts=("org.apache.kafka:kafka-clients:3.9.0",),
    witness="kafka-clients-3.9.0.jar",
)

#: The last Kafka with a ZooKeeper mode, and the ZooKeeper that it came with.
BROKER_39 = JarSet(
    folder_name="kafka-3.9.0",
    variable="OTTLA_KAFKA39_BROKER_JARS",
    artifacts=("org.apache.kafka:kafka_2.13:3.9.0",),
    witness="zookeeper-3.8.4.jar",
)
#: The last Kafka whose tools write into ZooKeeper by themselves (`--zookeeper`).
BROKER_28 = JarSet(
    folder_name="kafka-2.8.2",
    variable="OTTLA_KAFKA28_BROKER_JARS",
    artifacts=("org.apache.kafka:kafka_2.13:2.8.2",),
    witness="kafka_2.13-2.8.2.jar",
)

#: Spark's own Kafka source for the JVM. No newer one could be had; it reads batches in PySpark 4.3 too.
SPARK_CONNECTOR = JarSet(
    folder_name="spark-kafka-4.0.0",
    variable="OTTLA_SPARK_CONNECTOR_JARS",
    artifacts=("org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",),
    witness="spark-sql-kafka-0-10_2.13-4.0.0.jar",
)
#: What of it Spark does not have itself.
_CONNECTOR_NEEDS = ("spark-sql-kafka-", "spark-token-provider-kafka-", "kafka-clients-", "commons-pool2-")


def connector_jars() -> str:
    """As `spark.jars` takes them."""
    folder = jars(SPARK_CONNECTOR)
    return ",".join(str(path) for path in sorted(folder.glob("*.jar")) if path.name.startswith(_CONNECTOR_NEEDS))


class JarsUnavailable(Exception):
    """The jars are not here and cannot be fetched; the message says why, for a skip or a person."""


def jars(wanted: JarSet = KAFKA) -> Path:
    """The folder that holds ``wanted``; fetches it when it is missing. Safe to call from several processes."""
    if shutil.which("java") is None:
        raise JarsUnavailable("no java on PATH")
    if wanted.is_there():
        return wanted.folder()
    if shutil.which("mvn") is None:
        raise JarsUnavailable(f"{wanted.folder()} has no {wanted.witness}, and there is no mvn on PATH to fetch it")
    folder = wanted.folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not wanted.is_there():  # another process may have fetched them while this one waited
            _fetch(wanted, folder)
    return folder


def classpath(folder: Path) -> str:
    """Java's own wildcard: every jar of the folder."""
    return f"{folder}/*"


def _fetch(wanted: JarSet, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(_pom(wanted.artifacts))
        copied = Path(scratch) / "jars"
        _copy_dependencies(pom, copied)
        if not (copied / wanted.witness).is_file():
            raise JarsUnavailable(f"Maven copied no {wanted.witness}")
        if folder.exists():
            folder.rmdir()  # an empty folder named by the environment; one with files in it is not ours to remove
        copied.rename(folder)


def _copy_dependencies(pom: Path, target: Path) -> None:
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={target}"]
    said = ""
    for attempt in range(ATTEMPTS_MAX):
        if attempt:
            time.sleep(2**attempt)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=ATTEMPT_SECONDS_MAX, check=False)
        except subprocess.TimeoutExpired:
            said = f"no answer within {ATTEMPT_SECONDS_MAX} s"
            continue
        if done.returncode == 0:
            return
        said = (done.stdout + done.stderr).strip()
    raise JarsUnavailable(f"Maven failed {ATTEMPTS_MAX} times; the last time it said: {said[-500:]}")


def _pom(artifacts: tuple[str, ...]) -> str:
    dependencies = ""
    for artifact in artifacts:
        group, name, version = artifact.split(":")
        dependencies += (
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
            "</dependency>\n"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>\n'
        "<groupId>ottla</groupId><artifactId>kafka-jars</artifactId><version>1</version>\n"
        f"<dependencies>\n{dependencies}</dependencies></project>\n"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fetch Apache Kafka's jars with Maven and print their folder.")
    parser.add_argument("--clients39", action="store_true", help="kafka-clients 3.9.0 instead of Kafka 4.3.1")
    parser.add_argument("--broker39", action="store_true", help="Kafka 3.9.0 and ZooKeeper 3.8.4 instead")
    options = parser.parse_args(arguments)
    wanted = BROKER_39 if options.broker39 else CLIENTS_39 if options.clients39 else KAFKA
    try:
        print(jars(wanted))
    except JarsUnavailable as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
