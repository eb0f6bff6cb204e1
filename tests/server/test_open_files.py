"""A broker of its own process whose limit on open files is low: connections never take what storage needs."""

from __future__ import annotations

import resource
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from tests.cli.test_starting import Started, started_as

from ottla.client.admin.results import NewTopic
from ottla.client.sync import Admin, Producer

HARD = 600
CROWD = 800
TOPICS = 20


@contextmanager
def limited(data: Path, soft: int, hard: int) -> Iterator[Started]:
    limits = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))"
    command = f"{limits}; from ottla.cli.main import main; main(['up', '--port', '0', '--data', {str(data)!r}])"
    with started_as([sys.executable, "-c", command]) as up:
        yield up


def crowd(stack: ExitStack, port: int, count: int) -> None:
    for _ in range(count):
        with suppress(OSError):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))


def descriptors(up: Started) -> int:
    return len(list(Path(f"/proc/{up.child.pid}/fd").iterdir()))


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
def test_a_crowd_of_idle_connections_leaves_storage_its_files(tmp_path: Path) -> None:
    ours, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert ours > CROWD + 100, "this test opens a crowd of connections"
    with limited(tmp_path, 100, HARD) as up, ExitStack() as stack:
        address = f"127.0.0.1:{up.port}"
        admin = stack.enter_context(Admin(bootstrap_servers=address))
        producer = stack.enter_context(Producer(bootstrap_servers=address))
        # Who came before the crowd is served on.
        admin.create_topic("first")
        producer.send_and_wait("first", b"x")
        crowd(stack, up.port, CROWD)
        admin.create_topics([NewTopic(f"t{number}", partitions=4) for number in range(TOPICS)])
        for number in range(TOPICS):
            for partition in range(4):
                producer.send_and_wait(f"t{number}", b"x", partition=partition)
        # The soft limit of 100 would be far below this, and half of the hard one is kept back.
        assert HARD // 2 < descriptors(up) < HARD
        stack.close()
        deadline = time.monotonic() + 60
        while descriptors(up) > HARD // 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        with Producer(bootstrap_servers=address) as late:
            late.send_and_wait("t0", b"y")
        code, _, err = up.stop()
    assert code == 0
    assert "the limit on open files is raised files=600 before=100" in err
    assert "refusing a connection: what is left of the limit on open files is kept back for storage" in err
    assert "ERROR" not in err
