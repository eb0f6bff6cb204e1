"""Our own broker as a child process: ``ottla up`` as a person starts it, or ``ottla broker`` over a properties file."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tools.server_process import HOST, ServerFailed, ServerProcess, free_port, pause_after
from tools.zookeeper_server import four_letters

SOURCES = Path(__file__).resolve().parent.parent / "src"


def _environment(sources: Path = SOURCES) -> dict[str, str]:
    return {
        "PYTHONPATH": str(sources),
        # An installed package has its byte code; a checkout shall keep it too, or each start compiles for 0.2 s.
        "PYTHONDONTWRITEBYTECODE": "",
    }


def ottla_up(data: Path, *, port: int | None = None) -> ServerProcess:
    """``python -m ottla up`` over ``data``; not yet started."""
    listener = port if port is not None else free_port()
    data.mkdir(parents=True, exist_ok=True)
    return _server(["up", "--port", str(listener), "--data", str(data)], listener, data)


def ottla_broker(
    data: Path, *, port: int | None = None, properties: Mapping[str, str] | None = None, sources: Path = SOURCES
) -> ServerProcess:
    """``python -m ottla broker`` with ``properties`` on top of a listener and ``data/log``; not yet started.

    `sources`: those of another checkout, to be compared with this one.
    """
    listener = port if port is not None else free_port()
    data.mkdir(parents=True, exist_ok=True)
    config = data / "server.properties"
    named = {
        "broker.id": "1",
        "listeners": f"PLAINTEXT://{HOST}:{listener}",
        "log.dirs": str(data / "log"),
        **(properties or {}),
    }
    config.write_text("".join(f"{name}={value}\n" for name, value in named.items()))
    return _server(["broker", "--config", str(config)], listener, data, sources)


class TreeProcess(ServerProcess):
    """A served tree: it answers once it says `imok`."""

    def wait_until_answering(self, deadline: float) -> None:
        began = time.monotonic()
        while four_letters(self.port, "ruok") != "imok":
            if not self.running:
                raise ServerFailed(f"ottla tree ended with {self.exit_code()}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"ottla tree does not answer on {self.bootstrap}:\n{self.log_tail()}")
            time.sleep(pause_after(time.monotonic() - began))


def ottla_tree(data: Path, *options: str, port: int | None = None) -> TreeProcess:
    """``python -m ottla tree`` over ``data``; not yet started."""
    listener = port if port is not None else free_port()
    log = data.with_name(data.name + ".out")
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "ottla", "tree", "--dir", str(data), "--listen", f"{HOST}:{listener}", *options]
    return TreeProcess(command, port=listener, log=log, environment=_environment())


def _server(arguments: list[str], port: int, data: Path, sources: Path = SOURCES) -> ServerProcess:
    # The log stands beside the data and not in it: the broker may refuse a folder with files that it does not know.
    log = data.with_name(data.name + ".out")
    command = [sys.executable, "-m", "ottla", *arguments]
    return ServerProcess(command, port=port, log=log, environment=_environment(sources))
