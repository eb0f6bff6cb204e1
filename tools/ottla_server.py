"""Our own broker as a child process: ``ottla up`` as a person starts it, or ``ottla broker`` over a properties file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from tools.server_process import HOST, ServerProcess, free_port

SOURCES = Path(__file__).resolve().parent.parent / "src"

_ENVIRONMENT = {
    "PYTHONPATH": str(SOURCES),
    # An installed package has its byte code; a checkout shall keep it too, or each start compiles for 0.2 s.
    "PYTHONDONTWRITEBYTECODE": "",
}


def ottla_up(data: Path, *, port: int | None = None) -> ServerProcess:
    """``python -m ottla up`` over ``data``; not yet started."""
    listener = port if port is not None else free_port()
    data.mkdir(parents=True, exist_ok=True)
    return _server(["up", "--port", str(listener), "--data", str(data)], listener, data)


def ottla_broker(data: Path, *, port: int | None = None, properties: Mapping[str, str] | None = None) -> ServerProcess:
    """``python -m ottla broker`` with ``properties`` on top of a listener and ``data/log``; not yet started."""
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
    return _server(["broker", "--config", str(config)], listener, data)


def _server(arguments: list[str], port: int, data: Path) -> ServerProcess:
    # The log stands beside the data and not in it: the broker may refuse a folder with files that it does not know.
    log = data.with_name(data.name + ".out")
    return ServerProcess([sys.executable, "-m", "ottla", *arguments], port=port, log=log, environment=_ENVIRONMENT)
