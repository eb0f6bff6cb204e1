"""Apache Kafka's own producer as a writer: its VerifiableProducer, which prints a line for each acknowledgement.

Its settings are the client's defaults, but that the tool tries nothing again: that is set back to what the client does.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

from tools.java import java_command
from tools.kafka_jars import KAFKA, classpath, jars

_TOOL: Final = "org.apache.kafka.tools.VerifiableProducer"
#: Records a second: one each four milliseconds, as of the other writers.
_THROUGHPUT: Final = 250
#: The client's default.
_PROPERTIES: Final = "retries=2147483647\n"
_STOP_S_MAX: Final = 60


class JavaWriter:
    def __init__(self, bootstrap: str, topic: str) -> None:
        self._properties = tempfile.NamedTemporaryFile("w", suffix=".properties")  # noqa: SIM115 - closed by `stop`
        self._properties.write(_PROPERTIES)
        self._properties.flush()
        words = ("--bootstrap-server", bootstrap, "--topic", topic, "--acks", "-1", "--throughput", str(_THROUGHPUT))
        self._command = java_command(
            classpath(jars(KAFKA)), _TOOL, *words, "--command-config", self._properties.name, flags=("-Xmx96m",)
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._process: subprocess.Popen[str] | None = None
        #: When the line of each acknowledgement came, by the monotonic clock.
        self.acknowledged_at: list[float] = []
        #: What became of records that were given up, by the exception. Not of those that the tool hands to its producer
        #: behind this one's end, in another thread.
        self.errors: dict[str, int] = {}
        self._stopping = False

    def start(self) -> None:
        log = Path(self._properties.name).with_suffix(".log")
        with log.open("w") as errors:
            self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=errors, text=True)
        log.unlink()
        self._thread.start()

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line) if line.startswith("{") else {}
            if said.get("name") == "producer_send_success":
                self.acknowledged_at.append(time.monotonic())
            elif said.get("name") == "producer_send_error" and not self._stopping:
                error = f"{str(said.get('exception', '')).rpartition('.')[2]}: {said.get('message')}"
                self.errors[error] = self.errors.get(error, 0) + 1

    def stop(self) -> None:
        assert self._process is not None
        self._stopping = True
        self._process.terminate()
        try:
            self._process.wait(_STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.join()
        self._properties.close()
