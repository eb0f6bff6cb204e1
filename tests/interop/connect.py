"""A worker of Kafka Connect in distributed mode, as a process, and what its REST interface is asked."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.java import java_command
from tools.kafka_jars import classpath
from tools.server_process import HOST, ServerFailed, ServerProcess, free_port

#: A group of one worker, whose sources are exactly once. Rebalances wait for nobody who has died.
_PROPERTIES = {
    "group.id": "connect",
    "exactly.once.source.support": "enabled",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "2",
    "status.storage.replication.factor": "1",
    "status.storage.partitions": "1",
    "scheduled.rebalance.max.delay.ms": "0",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "500",
    "plugin.discovery": "service_load",
    # A worker that starts reads its sources' offsets to the end, and so waits for a transaction that a killed one has
    # left open there.
    "producer.transaction.timeout.ms": "10000",
    # Its clients look for a broker that comes back more often than each second.
    "reconnect.backoff.max.ms": "200",
    "producer.reconnect.backoff.max.ms": "200",
    "consumer.reconnect.backoff.max.ms": "200",
}
_ANSWER_SECONDS_MAX = 100.0


class ConnectWorker(ServerProcess):
    def __init__(self, folder: Path, jar_folder: Path, bootstrap: str) -> None:
        port = free_port()
        config = folder / "connect.properties"
        named = {**_PROPERTIES, "bootstrap.servers": bootstrap, "listeners": f"http://{HOST}:{port}"}
        config.write_text("".join(f"{name}={value}\n" for name, value in named.items()))
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        command = java_command(classpath(jar_folder), main, str(config), flags=("-Xmx256m",))
        super().__init__(command, port=port, log=folder / "connect.out")

    def wait_until_answering(self, deadline: float) -> None:
        """Until it has joined its group, and has read what that knows."""
        while not self._is_ready():
            if not self.running:
                raise ServerFailed(f"the worker ended with {self.exit_code()}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"the worker does not answer:\n{self.log_tail()}")
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            self._ask("GET", "/connectors")
        except OSError:
            return False
        return True

    def configure(self, connector: str, config: Mapping[str, str]) -> None:
        self._ask("PUT", f"/connectors/{connector}/config", config)

    def status(self, connector: str) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("GET", f"/connectors/{connector}/status")
        return found

    def _ask(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        """Raises OSError, with what it has said for the reason."""
        request = urllib.request.Request(
            f"http://{HOST}:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS_MAX) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            raise OSError(f"{method} {path}: {refusal.code} {refusal.read().decode()}") from refusal
