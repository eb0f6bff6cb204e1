"""`ottla mirror` as a process, which a test may kill or stop for a while."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.cli.conftest import environment


class MirrorProcess:
    def __init__(self, folder: Path, properties: Mapping[str, str], *options: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "mm2.properties"
        config.write_text("".join(f"{name} = {value}\n" for name, value in properties.items()))
        self.log = folder / "mirror.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ottla", "mirror", "--config", str(config), *options],
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(),
            )

    def started(self) -> str:
        """The line that says that it copies."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        assert line, self.log.read_text()
        return line

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.signal(signal.SIGKILL)
        self.wait()

    def wait(self) -> int:
        code = self.process.wait(60)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


@contextlib.contextmanager
def mirror_process(folder: Path, properties: Mapping[str, str], *options: str) -> Iterator[MirrorProcess]:
    running = MirrorProcess(folder, properties, *options)
    try:
        yield running
    finally:
        running.kill()
