"""Apache ZooKeeper 3.8: an ensemble of real servers on 127.0.0.1, each a process of its own.

python -m tools.zookeeper_server --data /tmp/zookeeper    # three servers, in the foreground until Ctrl-C
"""

from __future__ import annotations

import argparse
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.java import java_command
from tools.kafka_jars import BROKER_39, JarsUnavailable, classpath, jars
from tools.server_process import HOST, ServerFailed, ServerProcess, free_port

#: Enough for a tree of some megabytes; three of them start side by side with a test run.
JVM_FLAGS = ("-Xmx128m",)
#: Short, so that sessions of a second can be asked for and end in time.
TICK_MS = 200
START_SECONDS_MAX = 180.0


def four_letters(port: int, word: str, seconds: float = 2.0) -> str:
    """What a server answers to one of its four-letter words; nothing where it does not answer."""
    try:
        with socket.create_connection((HOST, port), timeout=seconds) as connection:
            connection.sendall(word.encode())
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
    except OSError:
        return ""
    return answer.decode("utf-8", "replace")


class ZooKeeperServer(ServerProcess):
    def mode(self) -> str | None:
        """leader, follower or standalone; None while it serves nobody."""
        for line in four_letters(self.port, "srvr").splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ")
        return None


class ZooKeeperEnsemble:
    """Servers with one tree. Each may be stopped, killed, paused and launched again by itself."""

    def __init__(self, data: Path, count: int = 3, *, tick_ms: int = TICK_MS) -> None:
        folder = jars(BROKER_39)
        ports = [(free_port(), free_port(), free_port()) for _ in range(count)]
        self.servers = [
            ZooKeeperServer(
                java_command(
                    classpath(folder),
                    "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                    str(self._configure(data / str(number), number, ports, tick_ms)),
                    flags=JVM_FLAGS,
                ),
                port=ports[number - 1][0],
                log=data / f"{number}.out",
            )
            for number in range(1, count + 1)
        ]

    @staticmethod
    def _configure(data: Path, number: int, ports: Sequence[tuple[int, int, int]], tick_ms: int) -> Path:
        data.mkdir(parents=True, exist_ok=True)
        (data / "myid").write_text(f"{number}\n")
        properties = {
            "dataDir": data,
            "clientPort": ports[number - 1][0],
            "clientPortAddress": HOST,
            "admin.enableServer": "false",
            "tickTime": tick_ms,
            # An election that went wrong is given up after so many ticks: five seconds.
            "initLimit": 25,
            "syncLimit": 25,
            "maxSessionTimeout": 60_000,
            "maxClientCnxns": 0,
            "4lw.commands.whitelist": "ruok,srvr,mntr,wchs",
        }
        if len(ports) > 1:
            for other, (_, quorum, election) in enumerate(ports, 1):
                properties[f"server.{other}"] = f"{HOST}:{quorum}:{election}"
        config = data / "zoo.cfg"
        config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        return config

    @property
    def connect(self) -> str:
        """As `zookeeper.connect` has it."""
        return ",".join(server.bootstrap for server in self.servers)

    def leader(self, seconds: float = START_SECONDS_MAX) -> ZooKeeperServer:
        """Waited for: a server on a busy machine may not say in time what it is."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for server in self.servers:
                if server.mode() in {"leader", "standalone"}:
                    return server
            time.sleep(0.05)
        raise ServerFailed(f"no server of {self.connect} leads")

    def serving(self, address: str) -> ZooKeeperServer:
        """The server of an address."""
        return next(server for server in self.servers if server.bootstrap == address)

    def start(self, seconds: float = START_SECONDS_MAX) -> None:
        """Launches those that do not run, and waits until all serve."""
        for server in self.servers:
            if not server.running:
                server.launch()
        deadline = time.monotonic() + seconds
        for server in self.servers:
            while server.mode() is None:
                if not server.running or time.monotonic() > deadline:
                    raise ServerFailed(f"ZooKeeper on {server.bootstrap} does not serve:\n{server.log_tail()}")
                time.sleep(0.05)

    def stop(self) -> None:
        for server in self.servers:
            server.kill()  # it writes before it answers: there is nothing that a slower end would save

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def shell(address: str, *commands: str, seconds: float = 180.0) -> str:
    """What ZooKeeper's own command line client prints for these commands, one after the other."""
    words = ("org.apache.zookeeper.ZooKeeperMain", "-server", address)
    client = java_command(classpath(jars(BROKER_39)), *words, flags=JVM_FLAGS)
    done = subprocess.run(
        client,
        input="".join(f"{command}\n" for command in commands),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
    return done.stdout


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run an ensemble of Apache ZooKeeper on 127.0.0.1 until interrupted.")
    parser.add_argument("--data", type=Path, required=True, help="folder for its files")
    parser.add_argument("--servers", type=int, default=3)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with ZooKeeperEnsemble(options.data, options.servers) as ensemble:
            print(f"Apache ZooKeeper on {ensemble.connect}; Ctrl-C stops it", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        return 0
    except (JarsUnavailable, ServerFailed) as failed:
        print(failed, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
