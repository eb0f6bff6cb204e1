"""Every command line of docs/cli.md is run, in the order of the page and against a real broker.

What is a command and its words alone runs in this process, what needs a shell by one; with `--slow` a shell runs all.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tools.ottla_server import TreeProcess, ottla_tree

from ottla.cli import faults
from ottla.client.admin.results import ConfigChange, ConfigResource
from ottla.client.sync import Admin
from ottla.coordination.zookeeper.codes import OpCode
from ottla.coordination.zookeeper.messages import CreateRequest
from tests.cli.conftest import SECONDS_MAX, Command, Ran, environment
from tests.coordination.served.wire import WireClient
from tests.searches import slow
from tests.shell import settings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
LINES = re.findall(r"^    ((?:ottla|echo|eval) .*)$", PAGE.read_text(), re.MULTILINE)
#: What ends otherwise than with 0.
CODES = {
    "only shows the plan": faults.NOT_CONFIRMED,
    "shows all of them": faults.NOT_CONFIRMED,
    "with three brokers": faults.USAGE,  # here is one
    "away from broker 1": faults.NOT_FOUND,
}
#: What `moves.json` says: the one broker has the partition already.
MOVES = '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1]}]}'
#: A record that each of the page's expressions and readers takes.
KEY, VALUE = "alice", '{"amount": 50, "sku": "a-1", "tags": ["urgent"]}'


class Page:
    """The folder in which the commands run, and the broker that they find."""

    def __init__(self, folder: Path, *, by_shell: bool) -> None:
        self.folder = folder
        self.by_shell = by_shell
        self.port = 0
        self._broker: subprocess.Popen[bytes] | None = None
        self._tree: TreeProcess | None = None
        shim = folder / "bin" / "ottla"
        shim.parent.mkdir()
        # No test takes a port that others may want, and none is open to other machines.
        shim.write_text(
            f'#!/bin/bash\ncase "$1 $*" in\n  up*--port*|[!u]*) ;;\n  up*) set -- "$@" --port 0 ;;\nesac\n'
            f'exec "{sys.executable}" -m ottla "${{@/0.0.0.0/127.0.0.1}}"\n'
        )
        shim.chmod(0o755)
        (folder / "server.properties").write_text(f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={folder}/broker\n")

    def environment(self) -> dict[str, str]:
        kept = environment(HOME=str(self.folder), PATH=f"{self.folder}/bin:{os.environ['PATH']}")
        return {name: value for name, value in kept.items() if not name.startswith("XDG_")}

    def start(self, line: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["bash", "-c", f"set -o pipefail; {self.adapted(line)}"],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def adapted(self, line: str) -> str:
        """To this broker and these folders; and where a shell is missing, its line without it."""
        line = line.replace("-b localhost", f"-b 127.0.0.1:{self.port}").replace("/tmp/try", f"{self.folder}/try")
        if "localhost:2181" in line:
            line = line.replace("localhost:2181", self.tree().bootstrap)
        for shell in ("zsh", "fish"):
            found = re.search(rf"ottla completion {shell}", line)
            if found:
                return found[0]
        return line

    def tree(self) -> TreeProcess:
        """The tree that the page's readers of znodes look at."""
        if self._tree is None:
            self._tree = ottla_tree(self.folder / "served-tree")
            self._tree.start()
            with WireClient(self._tree.port) as client:
                client.call(OpCode.CREATE, CreateRequest("/controller", b'{"brokerid":1}'))
        return self._tree

    def begin(self) -> None:
        """The broker that all but the first lines talk to; it keeps its data where the page says."""
        if self._broker is None:
            self._broker = self.start("ottla up")
            assert self._broker.stdout is not None
            self.port = int(self._broker.stdout.readline().decode().rpartition(":")[2])
            (self.folder / "client.properties").write_text(f"bootstrap.servers=127.0.0.1:{self.port}\n")

    def feed(self) -> None:
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{self.port}", "log_level": 0})
        producer.produce("orders", VALUE, KEY, headers=[("source", b"web")])
        assert producer.flush(30) == 0

    def prepare(self, line: str) -> None:
        """What the page takes for granted."""
        if line.startswith("ottla topic confirm"):  # a topic that was taken over without its settings
            with Admin(bootstrap_servers=f"127.0.0.1:{self.port}") as admin:
                change = ConfigChange("cleanup.policy", "")
                admin.incremental_alter_configs({ConfigResource.topic("orders"): [change]})
        if line.startswith("ottla reassign run"):
            (self.folder / "moves.json").write_text(MOVES)
        if "00000000000000000000.log" in line:
            data = self.folder / ".local" / "state" / "ottla" / "data" / "orders-0"
            shutil.copy(data / "00000000000000000000.log", self.folder)

    def end(self) -> None:
        if self._tree is not None:
            self._tree.stop()
        if self._broker is not None:
            os.killpg(self._broker.pid, signal.SIGTERM)
            assert self._broker.communicate(timeout=SECONDS_MAX)[0] == b""
            assert self._broker.returncode == 0


@pytest.fixture(scope="module", params=["here", slow("by a shell")])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    made = Page(tmp_path_factory.mktemp("page"), by_shell=request.param == "by a shell")
    yield made
    made.end()


def goes_on(line: str) -> bool:
    command = line.partition("#")[0]
    if re.match(r"ottla (up|broker|tree(?! dump)) ", f"{command} ") or "--watch" in command:
        return True
    return command.startswith("ottla consume") and not re.search(r" (-e|--exit-at-end|-o :end)\b", command)


def interrupted(page: Page, line: str) -> tuple[int, bytes, bytes]:
    """Of what goes on: something that it has printed, and how it ended after Ctrl-C."""
    child = page.start(line)
    assert child.stdout is not None
    try:
        deadline = time.monotonic() + SECONDS_MAX
        while not select.select([child.stdout], [], [], 0.2)[0]:
            assert time.monotonic() < deadline
            if "consume" in line:
                page.feed()
        out = os.read(child.stdout.fileno(), 65536)
        os.killpg(child.pid, signal.SIGINT)
        _, err = child.communicate(timeout=SECONDS_MAX)
    finally:
        child.kill()
        child.communicate()
    return child.returncode, out, err


def words_of(line: str) -> list[str] | None:
    """Of a line in which a shell has nothing to do but to take quotes away."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    command, *words = lexer
    is_plain = command == "ottla" and not any(set(word) <= set("();<>|&") or word.startswith("~") for word in words)
    return words if is_plain else None


def run(page: Page, line: str, in_process: Command) -> Ran:
    words = None if page.by_shell else words_of(page.adapted(line))
    if words is None:
        child = page.start(line)
        out, err = child.communicate(timeout=SECONDS_MAX)
        return Ran(code=child.returncode, out=out.decode(), err=err.decode())
    with pytest.MonkeyPatch.context() as patch:
        for name in settings("KAFKA_", "OTTLA_", "XDG_"):
            patch.delenv(name)
        patch.setenv("HOME", str(page.folder))
        patch.chdir(page.folder)
        return in_process(*words, stdin=b"")


@pytest.mark.xdist_group("docs/cli.md")
@pytest.mark.parametrize("number", range(len(LINES)), ids=lambda number: LINES[number].partition("  #")[0][:60])
def test_a_line_of_the_page(page: Page, number: int, in_process: Command) -> None:
    line = LINES[number]
    is_broker = re.match(r"ottla (up|broker|tree(?! dump))\b", line) is not None
    if not is_broker:
        page.begin()
    page.prepare(line)
    if goes_on(line):
        code, out, err = interrupted(page, line)
        assert code == (0 if is_broker else faults.INTERRUPTED), err
        assert out
        return
    ran = run(page, line, in_process)
    expected = next((code for remark, code in CODES.items() if remark in line), 0)
    assert ran.code == expected, (line, ran)
    assert "Traceback" not in ran.err
    assert bool(ran.err) == bool(expected), ran.err


def test_what_a_shell_is_needed_for() -> None:
    assert words_of("ottla topic describe -r 'order.*|return.*'     # -r: whole names") == [
        *("topic", "describe", "-r", "order.*|return.*")
    ]
    assert words_of("ottla consume orders -e --where \"key == 'alice'\"") == [
        *("consume", "orders", "-e", "--where", "key == 'alice'")
    ]
    for line in (
        "ottla a > b",
        "ottla a | ottla b",
        "ottla a && echo b",
        "ottla log dump ~/a",
        "echo a",
        'eval "$(a)"',
    ):
        assert words_of(line) is None


def test_the_page_has_lines() -> None:
    assert len(LINES) > 40
