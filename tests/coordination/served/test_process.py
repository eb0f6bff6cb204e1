"""A served tree as a process of its own: how it starts and ends, and what its clients see of that."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.coordination.served.wire import Ended, WireClient
from tests.searches import some
from tools.ottla_server import TreeProcess, ottla_tree
from tools.zookeeper_server import four_letters

from ottla.coordination.zookeeper.codes import OpCode
from ottla.coordination.zookeeper.messages import OPEN_TO_ALL, CreateRequest, NodeRequest, PathRequest, SetDataRequest

REPOSITORY = Path(__file__).resolve().parents[3]


def told(port: int, word: str) -> str:
    """What the tree says to a word; nothing only where it says nothing, however long it takes."""
    return four_letters(port, word, 60)


def create(client: WireClient, path: str, data: bytes = b"", flags: int = 0) -> None:
    assert client.call(OpCode.CREATE, CreateRequest(path, data, OPEN_TO_ALL, flags)).header.error == 0


def exists(client: WireClient, path: str) -> bool:
    return client.call(OpCode.EXISTS, NodeRequest(path, watch=False)).header.error == 0


def run_tree(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    command = [sys.executable, "-m", "ottla", "tree", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)


@pytest.mark.parametrize("number", some([signal.SIGTERM, signal.SIGINT, signal.SIGHUP], signal.SIGHUP))
def test_a_signal_ends_it_cleanly(own_process: TreeProcess, number: signal.Signals) -> None:
    own_process.start()
    with WireClient(own_process.port) as client:
        create(client, "/kept", b"data")
        os.kill(own_process.pid, number)
        assert own_process.wait() == 0
    assert f"Ottla's tree is listening on {own_process.bootstrap}" in own_process.log_tail()
    own_process.start()
    with WireClient(own_process.port) as client:
        assert client.call(OpCode.GET_DATA, NodeRequest("/kept", watch=False)).fields.data == b"data"


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_tree("--dir", str(tmp_path / "tree"), "--listen", f"127.0.0.1:{port}")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last == f"ottla: cannot listen on 127.0.0.1:{port}: Address already in use; choose another with --listen"
    assert done.stdout == ""


def test_a_folder_that_is_in_use_is_one_line(own_process: TreeProcess, tmp_path: Path) -> None:
    own_process.start()
    done = run_tree("--dir", str(tmp_path / "tree"), "--listen", "127.0.0.1:0")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"ottla: {tmp_path}/tree is in use by another process"


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run_tree("--dir", str(tmp_path / "file" / "tree"), "--listen", "127.0.0.1:0")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"ottla: the tree cannot use {tmp_path}/file")
    assert "Traceback" not in done.stderr


def test_a_damaged_tree_is_one_line(own_process: TreeProcess, tmp_path: Path) -> None:
    own_process.start()
    with WireClient(own_process.port) as client:
        for number in range(3):
            create(client, f"/n{number}", bytes(100))
    own_process.kill()
    (journal,) = (tmp_path / "tree").glob("journal.*")
    data = bytearray(journal.read_bytes())
    data[60] ^= 1
    journal.write_bytes(data)
    done = run_tree("--dir", str(tmp_path / "tree"), "--listen", "127.0.0.1:0")
    assert done.returncode == 1
    assert f"{journal} is damaged at byte" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("listen", "why"),
    [
        ("2181", "it is HOST:PORT"),
        (":2181", "it is HOST:PORT"),
        ("127.0.0.1:x", "'x' is not a whole number"),
        ("127.0.0.1:70000", "not between"),
    ],
)
def test_an_address_that_is_none_is_one_line(tmp_path: Path, listen: str, why: str) -> None:
    done = run_tree("--dir", str(tmp_path / "tree"), "--listen", listen)
    assert done.returncode == 2
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_time_outs_have_the_bounds_that_were_given(tmp_path: Path) -> None:
    options = ["--min-session-timeout", "3000", "--max-session-timeout", "5000", "--json-logs"]
    process = ottla_tree(tmp_path / "tree", *options)
    with process:
        for asked, given in ((1, 3000), (4000, 4000), (9000, 5000)):
            with WireClient(process.port, timeout_ms=asked) as client:
                assert client.session.timeout_ms == given
        lines = [json.loads(line) for line in process.log_tail().splitlines() if line.startswith("{")]
        assert any(line["event"] == "the tree is served" for line in lines)
    done = run_tree("--dir", str(tmp_path / "t"), "--min-session-timeout", "9", "--max-session-timeout", "8")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_four_letter_words_over_a_plain_socket(own_process: TreeProcess) -> None:
    own_process.start()
    port = own_process.port
    assert told(port, "ruok") == "imok"
    with WireClient(port) as client:
        create(client, "/e", b"12345", flags=1)
        client.call(OpCode.EXISTS, NodeRequest("/later", watch=True))
        served = dict(line.split(": ") for line in told(port, "srvr").splitlines())
        assert list(served) == [
            "Zookeeper version",
            "Latency min/avg/max",
            "Received",
            "Sent",
            "Connections",
            "Outstanding",
            "Zxid",
            "Mode",
            "Node count",
        ]
        assert served["Zookeeper version"].startswith("3.8.")
        assert (served["Mode"], served["Node count"], served["Zxid"]) == ("standalone", "2", "0x2")
        figures = dict(line.split("\t") for line in told(port, "mntr\n").splitlines())
        assert figures["zk_server_state"] == "standalone"
        assert (figures["zk_znode_count"], figures["zk_ephemerals_count"], figures["zk_watch_count"]) == ("2", "1", "1")
        assert (figures["zk_global_sessions"], figures["zk_num_alive_connections"]) == ("1", "2")
        assert figures["zk_approximate_data_size"] == str(len("/") + len("/e") + 5)
        assert int(figures["zk_open_file_descriptor_count"]) > 5
    for word in ("conf", "stat", "dump", "isro", "wchs"):
        assert told(port, word) == f"{word} is not executed because it is not in the whitelist.\n"
    assert told(port, "abcd") == ""


# Lives.


def test_a_restart_keeps_sessions(own_process: TreeProcess) -> None:
    own_process.start()
    clients = [WireClient(own_process.port, timeout_ms=60_000) for _ in range(10)]
    for number, client in enumerate(clients):
        create(client, f"/e{number}", flags=1)
    own_process.stop()
    with pytest.raises((Ended, OSError)):
        clients[0].call(OpCode.SYNC, PathRequest("/"))
    for client in clients:
        client.close()
    own_process.start()
    again = [WireClient(own_process.port, session=client.session, timeout_ms=60_000) for client in clients]
    for number, client in enumerate(again):
        assert client.session == clients[number].session
        assert exists(client, f"/e{number}")
        client.close()


def test_nothing_acknowledged_is_lost_over_sigkills(own_process: TreeProcess) -> None:
    acknowledged: set[str] = set()
    asked = 0
    for life in range(4):
        own_process.start()
        # With twenty under way: what was acknowledged decides when, and no clock.
        enough = len(acknowledged) + 40 * (life + 1)
        waiting: list[str] = []
        with WireClient(own_process.port) as client, suppress(Ended, OSError):
            while True:
                while len(waiting) < 20:
                    asked += 1
                    waiting.append(f"/n{asked}")
                    client.ask(OpCode.CREATE, CreateRequest(waiting[-1], b"x"))
                assert client.answer().header.error == 0
                acknowledged.add(waiting.pop(0))
                if len(acknowledged) == enough:
                    own_process.kill()
    own_process.start()
    with WireClient(own_process.port) as client:
        names = {f"/{name}" for name in client.call(OpCode.GET_CHILDREN, NodeRequest("/", watch=False)).fields.names}
    assert len(acknowledged) >= 400
    assert acknowledged <= names
    assert len(names) <= asked


def test_a_paused_process_ends_no_session(own_process: TreeProcess) -> None:
    own_process.start()
    # A disk may take a second or two for the first of these: the time-out is longer, and the pause longer than that.
    with WireClient(own_process.port, timeout_ms=4000) as client, WireClient(own_process.port) as other:
        create(client, "/e", flags=1)
        client.call(OpCode.PING)
        os.kill(own_process.pid, signal.SIGSTOP)
        time.sleep(5.5)
        # As a client does that waits for its answer. It had asked before the others woke.
        client.ask(OpCode.PING, xid=-2)
        os.kill(own_process.pid, signal.SIGCONT)
        client.answer()
        assert exists(other, "/e")


OWNER = """
import sys, time
from tests.coordination.served.wire import WireClient
from ottla.coordination.zookeeper.codes import OpCode
from ottla.coordination.zookeeper.messages import OPEN_TO_ALL, CreateRequest, EndWithConnectionRequest
client = WireClient(int(sys.argv[1]), timeout_ms=30_000)
client.call(OpCode.END_WITH_CONNECTION, EndWithConnectionRequest(250))
client.call(OpCode.CREATE, CreateRequest("/owned", b"", OPEN_TO_ALL, 1))
print("here", flush=True)
time.sleep(60)
"""


def test_what_a_killed_process_owned_is_gone_soon_if_it_asked_for_that(own_process: TreeProcess) -> None:
    own_process.start()
    environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"}
    with (
        WireClient(own_process.port, timeout_ms=30_000) as other,
        subprocess.Popen(
            [sys.executable, "-c", OWNER, str(own_process.port)], stdout=subprocess.PIPE, env=environment
        ) as owner,
    ):
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"here\n"
        assert other.call(OpCode.EXISTS, NodeRequest("/owned", watch=True)).header.error == 0
        owner.kill()
        began = time.monotonic()
        while not other.events:
            other.call(OpCode.SYNC, PathRequest("/"))
            assert time.monotonic() - began < 25, "its time-out is 30 s, and it asked for 250 ms"


def test_a_thousand_sessions(own_process: TreeProcess) -> None:
    own_process.start()
    clients = [WireClient(own_process.port, timeout_ms=60_000) for _ in range(1_000)]
    for number, client in enumerate(clients):
        client.ask(OpCode.CREATE, CreateRequest(f"/e{number}", b"", OPEN_TO_ALL, 1))
    assert all(client.answer().header.error == 0 for client in clients)
    for client in clients:
        client.ask(OpCode.GET_DATA, NodeRequest("/e0", watch=True))
    assert all(client.answer().header.error == 0 for client in clients)
    assert clients[1].call(OpCode.SET_DATA, SetDataRequest("/e0", b"1", -1)).header.error == 0
    for client in clients:
        client.ask(OpCode.SYNC, PathRequest("/"))
    for client in clients:
        client.answer()
        assert [event.path for event in client.events] == ["/e0"]
    figures = dict(line.split("\t") for line in told(own_process.port, "mntr").splitlines())
    assert figures["zk_global_sessions"] == "1000"
    for client in clients[1:]:
        client.ask(OpCode.CLOSE_SESSION)
    for client in clients[1:]:
        assert client.answer().header.error == 0
        client.close()
    assert clients[0].call(OpCode.GET_CHILDREN, NodeRequest("/", watch=False)).fields.names == ["e0"]
    clients[0].close()


def test_a_thousand_connections_that_say_one_byte_hold_nobody_up(own_process: TreeProcess) -> None:
    own_process.start()
    idle = [socket.create_connection(("127.0.0.1", own_process.port)) for _ in range(1_000)]
    for connection in idle:
        connection.sendall(b"\0")
    with WireClient(own_process.port) as client:
        create(client, "/good")
        assert exists(client, "/good")
    for connection in idle:
        connection.close()
