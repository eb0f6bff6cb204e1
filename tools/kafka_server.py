"""Apache Kafka: one node that is broker and controller, on 127.0.0.1, with the flags of Kafka's own start script.

python -m tools.kafka_server --data /tmp/kafka --port 9092    # in the foreground until Ctrl-C
"""

from __future__ import annotations

import argparse
import base64
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.java import QUICK_FLAGS, archive_flags, java_command
from tools.kafka_jars import JarsUnavailable, classpath, jars
from tools.server_process import HOST, ServerFailed, ServerProcess, free_port

#: As kafka-server-start sets them; another heap would compare something that nobody runs.
JVM_FLAGS = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)

#: Unlimited retention: benchmark frames are built once, and their timestamps grow old while they are replayed.
UNLIMITED_RETENTION = {"log.retention.ms": "-1", "log.retention.bytes": "-1"}

FORMAT_SECONDS_MAX = 60.0

#: For tests, which look at what Kafka answers and not at how fast.
QUICK_KAFKA_FLAGS = ("-Xmx512m", *QUICK_FLAGS)

#: What formatting leaves in a folder of logs, by the folder of the jars: the same for every server with node id 1.
_formatted: dict[Path, dict[str, bytes]] = {}


def kafka_server(
    data: Path,
    *,
    folder: Path | None = None,
    port: int | None = None,
    properties: Mapping[str, str] | None = None,
    cluster_id: str | None = None,
    flags: Sequence[str] = JVM_FLAGS,
) -> ServerProcess:
    """A server over ``data/log``, formatted when it is new; not yet started. ``properties`` may make it one of several,
    which are then given one ``cluster_id``."""
    jar_folder = folder if folder is not None else jars()
    listener = port if port is not None else free_port()
    data.mkdir(parents=True, exist_ok=True)
    config = data / "server.properties"
    config.write_text(_render(_properties(data, listener, properties or {})))
    if not (data / "log" / "meta.properties").exists():
        if cluster_id is None:
            _format(jar_folder, config)
        else:
            _format_by_tool(jar_folder, config, data / "log", cluster_id)
    path, main = classpath(jar_folder), "kafka.Kafka"
    # What measures a Kafka starts it as Kafka's own script does.
    archived = archive_flags(path, main) if set(QUICK_FLAGS) <= set(flags) else ()
    return ServerProcess(
        ["java", *archived, *flags, "-cp", path, main, str(config)],
        port=listener,
        log=data / "kafka.out",
    )


def _properties(data: Path, port: int, extra: Mapping[str, str]) -> dict[str, str]:
    controller = free_port()
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(data / "log"),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        **extra,
    }


def _render(properties: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def new_cluster_id() -> str:
    # A fixed first byte: a cluster id that begins with a dash would be taken for an option.
    return base64.urlsafe_b64encode(b"O" + os.urandom(15)).rstrip(b"=").decode()


def _format(jar_folder: Path, config: Path) -> None:
    """By Kafka's own tool, once: it costs a second, and what it writes fits every server that is alone."""
    logs = config.parent / "log"
    if jar_folder not in _formatted:
        _formatted[jar_folder] = _format_by_tool(jar_folder, config, logs, new_cluster_id())
    logs.mkdir(exist_ok=True)
    for name, data in _formatted[jar_folder].items():
        (logs / name).write_bytes(data)


def _format_by_tool(jar_folder: Path, config: Path, logs: Path, cluster: str) -> dict[str, bytes]:
    tool = java_command(classpath(jar_folder), "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config))
    done = subprocess.run(tool, capture_output=True, text=True, timeout=FORMAT_SECONDS_MAX, check=False)
    if done.returncode:
        raise ServerFailed(f"Kafka's StorageTool: {done.stdout}{done.stderr}")
    return {path.name: path.read_bytes() for path in logs.iterdir()}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run Apache Kafka on 127.0.0.1 until interrupted.")
    parser.add_argument("--data", type=Path, required=True, help="folder for its configuration and its log")
    parser.add_argument("--port", type=int, default=9092)
    parser.add_argument("--unlimited-retention", action="store_true", help="keep records however old they are")
    options = parser.parse_args(arguments)
    extra = UNLIMITED_RETENTION if options.unlimited_retention else {}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with kafka_server(options.data, port=options.port, properties=extra) as server:
            print(f"Apache Kafka on {server.bootstrap}, pid {server.pid}; Ctrl-C stops it", flush=True)
            server.wait()
    except KeyboardInterrupt:
        return 0
    except (JarsUnavailable, ServerFailed) as failed:
        print(failed, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
