"""`ottla up` and `ottla broker` as processes: the line that scripts wait for, the clean stop, and faults at start."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tools.server_process import answers_metadata, free_port

from ottla.client.admin.results import ConfigResource
from ottla.client.sync import Admin
from ottla.testing import broker as broker_in_process
from tests.cli.conftest import environment, run_process
from tests.searches import some


class Started:
    """A broker's process, after its line on standard output."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.child = child
        assert child.stdout is not None
        self.line = child.stdout.readline()
        found = re.fullmatch(r"Ottla is listening on (127\.0\.0\.1):(\d+)\n", self.line)
        assert found, (self.line, child.stderr.read() if child.stderr else "")
        self.port = int(found[2])

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """The exit code, and what was written to both outputs since."""
        self.child.send_signal(number)
        out, err = self.child.communicate(timeout=60)
        return self.child.returncode, out, err


@contextmanager
def started(*words: str, **env: str) -> Iterator[Started]:
    with started_as([sys.executable, "-m", "ottla", *words], **env) as broker:
        yield broker


@contextmanager
def started_as(command: Sequence[str], **env: str) -> Iterator[Started]:
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**env),
        start_new_session=True,
    )
    try:
        yield Started(child)
    finally:
        child.kill()
        child.communicate()


def folders(path: Path) -> list[str]:
    return sorted(os.listdir(path))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_serves_and_stops_cleanly(tmp_path: Path, number: int) -> None:
    with started("up", "--port", "0", "--data", str(tmp_path)) as up:
        assert answers_metadata(up.port)
        code, out, err = up.stop(number)
        assert (code, out) == (0, "")
        assert "broker stopped" in err
        assert not answers_metadata(up.port)
    assert ".kafka_cleanshutdown" in folders(tmp_path / "data")


def test_up_takes_the_port_that_it_is_told_and_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    port = free_port()
    with started("up", "--port", str(port), "--data", str(tmp_path / "new" / "deeper")) as up:
        assert up.port == port
    assert folders(tmp_path / "new" / "deeper") == ["data", "data.coordination"]


def test_up_keeps_its_data_in_the_users_state_folder(tmp_path: Path) -> None:
    with started("up", "--port", "0", XDG_STATE_HOME=str(tmp_path / "state")) as up:
        up.stop()
    assert folders(tmp_path / "state" / "ottla") == ["data", "data.coordination"]
    home = tmp_path / "home"
    with started("up", "--port", "0", XDG_STATE_HOME="", HOME=str(home)) as up:
        up.stop()
    assert folders(home / ".local" / "state" / "ottla") == ["data", "data.coordination"]


def test_the_command_line_comes_before_the_environment(tmp_path: Path) -> None:
    taken = free_port()
    surroundings = {"KAFKA_LISTENERS": f"PLAINTEXT://127.0.0.1:{taken}", "KAFKA_BROKER_ID": "7"}
    with started("up", "--port", "0", "--data", str(tmp_path), **surroundings) as up:
        assert up.port != taken
        _, _, err = up.stop()
        assert "broker started id=7 " in err
    with started("up", "--data", str(tmp_path), **surroundings) as up:
        assert up.port == taken


def test_the_line_says_where_it_listens_and_not_what_is_advertised(tmp_path: Path) -> None:
    advertised = {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://elsewhere.example:1"}
    with started("up", "--port", "0", "--data", str(tmp_path), **advertised) as up:
        assert answers_metadata(up.port)
        told = json.loads(
            run_process(("topic", "list", "-o", "json", "--bootstrap-server", f"127.0.0.1:{up.port}")).out or "[]"
        )
        assert told == []
    several = "A://127.0.0.1:0,B://:0"
    file = tmp_path / "server.properties"
    file.write_text(
        f"listeners={several}\n"
        f"inter.broker.listener.name=A\nlistener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT\n"
        f"log.dirs={tmp_path}/two\n"
    )
    command = [sys.executable, "-m", "ottla", "broker", "--config", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as child:
        assert child.stdout is not None
        said = child.stdout.readline()
        found = re.fullmatch(
            rf"Ottla is listening on 127\.0\.0\.1:(\d+),{re.escape(socket.gethostname())}:(\d+)\n", said
        )
        assert found, said
        assert all(answers_metadata(int(port)) for port in found.groups())
        child.terminate()


def test_an_empty_folder_name_is_a_mistake(tmp_path: Path) -> None:
    ran = run_process(("up", "--data", "", "--port", "0"))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "ottla: --data is empty: name a folder, or leave it out for the user's state folder\n"


def test_json_logs_and_metrics(tmp_path: Path) -> None:
    with started("up", "--port", "0", "--data", str(tmp_path), "--json-logs", "--metrics-port", "0") as up:
        assert up.child.stderr is not None
        served = next(event for line in up.child.stderr if (event := json.loads(line))["part"] == "metrics")
        with urllib.request.urlopen(f"http://{served['address']}{served['path']}", timeout=60) as answer:
            assert b"\nkafka_brokers 1\n" in answer.read()
        code, _, err = up.stop()
    assert code == 0
    assert {json.loads(line)["level"] for line in err.splitlines()} == {"INFO"}


def test_broker_reads_a_property_file_and_overrides_come_last(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        f"# for a test\nbroker.id=3\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path}/a,{tmp_path}/b\n"
        "num.network.threads=3\nnum.partition=4\n"
    )
    words = ("broker", "--config", str(file), "--override", "broker.id=5", "--override", "ottla.log.level=WARN")
    with started(*words, KAFKA_BROKER_ID="4") as run:
        code, _, err = run.stop()
    assert code == 0
    assert folders(tmp_path) == ["a", "a.coordination", "b", "server.properties"]
    assert "broker.id=5" in (tmp_path / "b" / "meta.properties").read_text().splitlines()
    assert "num.network.threads" not in err  # which is known: a remark, no warning
    assert "num.partitions" in err  # the nearest name to the unknown one
    assert "INFO" not in err


@pytest.mark.parametrize("form", ["text", "json"])
def test_up_ends_with_a_reason_when_its_only_log_directory_is_gone(tmp_path: Path, form: str) -> None:
    more = ["--json-logs"] if form == "json" else []
    with started("up", "--port", "0", "--data", str(tmp_path), *more) as up:
        shutil.rmtree(tmp_path / "data")
        (tmp_path / "data").write_text("a file in its place")
        run_process(("topic", "create", "orders", "--bootstrap-server", f"127.0.0.1:{up.port}"))
        out, err = up.child.communicate(timeout=60)
    assert (up.child.returncode, out) == (1, "")
    if form == "json":
        (event,) = [
            event for line in err.splitlines() if (event := json.loads(line))["event"].startswith("the broker g")
        ]
        assert event["reason"].startswith(f"no log directory works any more: {tmp_path}/data: ")
        return
    said = [line for line in err.splitlines() if line.startswith("ottla: ")]
    assert len(said) == 1, err
    assert f"the broker had to stop: no log directory works any more: {tmp_path}/data: " in said[0]
    assert "port" not in said[0]
    assert "Traceback" not in err


# What keeps a broker from starting: one line that says what and where, and exit code 1.


def refused(*words: str, before: int = 0, code: int = 1, **env: str) -> str:
    """`before` is how many log lines stand before it."""
    ran = run_process(words, env=env)
    assert ran.code == code, ran
    assert ran.out == ""
    lines = ran.err.splitlines()
    assert len(lines) == 1 + before, ran.err
    assert lines[-1].startswith("ottla: ")
    return lines[-1]


def up_refused(data: Path) -> str:
    return refused("up", "--port", "0", "--data", str(data))


def test_the_port_is_in_use(tmp_path: Path) -> None:
    with broker_in_process() as other:
        said = refused("up", "--port", str(other.port), "--data", str(tmp_path))
    assert f"cannot listen on 127.0.0.1:{other.port}: Address already in use" in said
    assert "--port" in said


def test_the_metrics_port_is_in_use(tmp_path: Path) -> None:
    with broker_in_process() as other:
        words = ("up", "--port", "0", "--data", str(tmp_path), "--metrics-port", str(other.port))
        said = refused(*words)  # before anything of the data is touched
    assert said == f"ottla: ottla.metrics.port: cannot listen on 127.0.0.1:{other.port}: Address already in use"


@pytest.mark.parametrize("source", ["/dev/null", "a file"])
def test_an_input_whose_end_cannot_be_waited_for(tmp_path: Path, source: str) -> None:
    """As a service has it. That is no fault of the broker's files."""
    config = tmp_path / "server.properties"
    config.write_text(f"log.dirs={tmp_path}/data\nlisteners=PLAINTEXT://127.0.0.1:0\n")
    for words in (
        ("broker", "--config", str(config)),
        ("tree", "--dir", f"{tmp_path}/tree", "--listen", "127.0.0.1:0"),
    ):
        with open(config if source == "a file" else source, "rb") as given:
            ran = subprocess.run(
                [sys.executable, "-m", "ottla", *words, "--end-with-input"],
                stdin=given,
                capture_output=True,
                timeout=60,
                check=False,
            )
        said = b"ottla: --end-with-input goes with a pipe or a terminal, and standard input is neither\n"
        assert (ran.returncode, ran.stdout, ran.stderr) == (2, b"", said)
        assert os.listdir(tmp_path) == ["server.properties"]


@pytest.mark.parametrize("host", ["127.0.0..1", "nowhere.invalid", f"{'a' * 64}.example"])
def test_an_address_that_nobody_knows(tmp_path: Path, host: str) -> None:
    said = refused("up", "--port", "0", "--host", host, "--data", str(tmp_path))
    assert f"cannot listen on {host}:0: " in said
    assert "should not have happened" not in said
    words = ("up", "--port", "0", "--data", str(tmp_path), "--metrics-port", "0", "--set", f"ottla.metrics.host={host}")
    said = refused(*words)
    assert said.startswith(f"ottla: ottla.metrics.port: cannot listen on {host}:0: ")
    assert "Unknown error" not in said
    said = refused("tree", "--dir", str(tmp_path / "tree"), "--listen", f"{host}:0")
    assert said.startswith(f"ottla: cannot listen on {host}:0: ")


def test_a_tree_at_an_address_that_no_resolver_can_be_asked_for(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(
        f"log.dirs={tmp_path}/data\nlisteners=PLAINTEXT://127.0.0.1:0\n"
        "zookeeper.connect=127.0.0..1:2181\nzookeeper.connection.timeout.ms=300\n"
    )
    said = refused("broker", "--config", str(config), before=1)
    assert "none of 127.0.0..1:2181 could be connected to within 300 ms (Name or service not known)" in said


def test_with_json_logs_a_failed_start_is_one_event(tmp_path: Path) -> None:
    with broker_in_process() as other:
        words = ("up", "--port", str(other.port), "--data", str(tmp_path), "--json-logs")
        ran = run_process(words)
        mistaken = run_process(words, env={"KAFKA_NUM_PARTITIONS": "x"})
        by_environment = run_process(words[:-1], env={"KAFKA_OTTLA_LOG_JSON": "true"})
    for one, reason in (
        (ran, f"listeners: cannot listen on 127.0.0.1:{other.port}: Address already in use; choose another port"),
        (by_environment, "listeners: cannot listen on"),
        (mistaken, "Invalid value x for configuration num.partitions"),
    ):
        assert (one.code, one.out) == (1, ""), one
        (event,) = [json.loads(line) for line in one.err.splitlines()]
        assert (event["level"], event["event"]) == ("ERROR", "the broker could not start")
        assert event["reason"].startswith(reason)


def test_with_json_logs_running_out_of_descriptors_is_an_event(tmp_path: Path) -> None:
    few = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))"
    command = (
        f"{few}; from ottla.cli.main import main; main(['up','--port','0','--data',{str(tmp_path)!r},'--json-logs'])"
    )
    with started_as([sys.executable, "-c", command]) as up:
        opened = [socket.create_connection(("127.0.0.1", up.port)) for _ in range(100)]
        assert up.child.stderr is not None
        events = (json.loads(line) for line in up.child.stderr)
        event = next(event for event in events if event["event"].startswith("refusing a connection"))
        assert (event["level"], event["part"], event["peer"]) == ("WARN", "server", "127.0.0.1")
        for each in opened:
            each.close()
        code, _, err = up.stop()
    assert code == 0
    assert {json.loads(line)["level"] for line in err.splitlines()} <= {"INFO"}


UNHANDLED = """
import asyncio, sys
from ottla.app import run
from ottla.config import Config

def burn(depth):
    return burn(depth - 1) if depth else 1 / 0

async def fail():
    burn(0)

def started(broker):
    loop = asyncio.get_running_loop()
    loop.call_soon(burn, 2)
    broker.task = loop.create_task(fail())
    loop.call_later(0.01, delattr, broker, "task")  # nobody has asked for its result
    print("Ottla is listening on 127.0.0.1:%d" % broker.endpoints[0].port, flush=True)

run(Config.parse({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": sys.argv[1], "ottla.log.json": "true"}), started)
"""


def test_what_nobody_caught_is_one_event_each(tmp_path: Path) -> None:
    with started_as([sys.executable, "-c", UNHANDLED, str(tmp_path / "data")]) as up:
        assert up.child.stderr is not None
        unhandled = []
        while len(unhandled) < 2:
            event = json.loads(up.child.stderr.readline())
            if event["event"] == "unhandled":
                unhandled.append(event)
        assert answers_metadata(up.port)
        code, _, err = up.stop()
    assert code == 0
    assert all(json.loads(line) for line in err.splitlines())
    for event in unhandled:
        assert (event["level"], event["fault"]) == ("ERROR", "ZeroDivisionError: division by zero")
        assert "burn" in event["where"].split(" < ")[0]
    assert "fail" in unhandled[1]["where"]


SHORT_TURNS = """
import sys
from ottla.app import run
from ottla.config import Config

def started(broker):
    assert sys.getswitchinterval() < 0.001, sys.getswitchinterval()
    print("Ottla is listening on 127.0.0.1:%d" % broker.endpoints[0].port, flush=True)

run(Config.parse({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": sys.argv[1]}), started)
"""


def test_the_loop_and_its_workers_wait_little_for_each_other(tmp_path: Path) -> None:
    """By Python's own 5 ms a worker that imports an API beside a crowd took 17 s for it."""
    with started_as([sys.executable, "-c", SHORT_TURNS, str(tmp_path / "data")]) as up:
        assert answers_metadata(up.port)
        code, _, err = up.stop()
    assert code == 0, err


def test_another_broker_works_in_the_folder(tmp_path: Path) -> None:
    with broker_in_process(data=tmp_path):
        said = up_refused(tmp_path)
    assert str(tmp_path) in said
    assert "in use by another process" in said


def test_another_broker_has_a_log_directory_of_ours(tmp_path: Path) -> None:
    with broker_in_process(data=tmp_path):
        shared = f"log.dirs={tmp_path}/own,{tmp_path}/data"
        file = tmp_path / "server.properties"
        file.write_text(f"listeners=PLAINTEXT://127.0.0.1:0\n{shared}\n")
        said = refused("broker", "--config", str(file))
    assert f"{tmp_path}/data" in said
    assert "another broker is using this directory" in said


@pytest.mark.parametrize("name", ["", "data", "data.coordination"])
def test_a_file_is_in_the_way(tmp_path: Path, name: str) -> None:
    in_the_way = tmp_path / "place" / name if name else tmp_path / "place"
    in_the_way.parent.mkdir(exist_ok=True)
    in_the_way.write_text("")
    said = up_refused(tmp_path / "place")
    assert str(in_the_way) in said


def test_meta_properties_is_damaged(tmp_path: Path) -> None:
    with broker_in_process(data=tmp_path):
        pass
    (tmp_path / "data" / "meta.properties").write_text("broker.id=many\nversion=0\n")
    assert f"{tmp_path}/data/meta.properties" in up_refused(tmp_path)


@pytest.mark.parametrize("loss", some(["empty", "gone", "the folder is gone", "gone from Kafka's folder"], "gone"))
def test_the_identity_is_lost(tmp_path: Path, loss: str) -> None:
    data, log_directory = tmp_path, tmp_path / "data"
    with broker_in_process(data=tmp_path) as broker:
        broker.create_topic("kept")
    file = log_directory / "meta.properties"
    if loss == "gone from Kafka's folder":  # which is the log directory itself
        data = log_directory
    if loss == "empty":
        file.write_text("")
    elif loss == "the folder is gone":
        shutil.rmtree(log_directory)
    else:
        file.unlink()
    said = up_refused(data)
    assert (
        f"{file} {'names no broker' if loss == 'empty' else 'is not there'}; the tree's topics lie on broker " in said
    )
    assert "restore the file" in said
    broker_id = re.search(r"\(KAFKA_BROKER_ID=(\d+) in the environment\)", said)
    assert broker_id, said
    with started("up", "--port", "0", "--data", str(data), KAFKA_BROKER_ID=broker_id[1]) as up:
        ran = run_process(("topic", "describe", "kept", "--bootstrap-server", f"127.0.0.1:{up.port}"))
        assert ran.code == 0, ran
        assert f"{broker_id[1]}  " in ran.out
        assert up.stop()[0] == 0
    assert f"broker.id={broker_id[1]}" in file.read_text().splitlines()


def test_the_folder_is_of_another_broker(tmp_path: Path) -> None:
    with broker_in_process(data=tmp_path, properties={"broker.id": "1"}):
        pass
    said = refused("up", "--port", "0", "--data", str(tmp_path), KAFKA_BROKER_ID="2")
    assert "broker.id" in said


def test_the_journal_of_the_tree_is_damaged(tmp_path: Path) -> None:
    with broker_in_process(data=tmp_path) as broker:
        broker.create_topic("kept")
        for name in folders(tmp_path / "data.coordination"):
            if name.startswith("journal."):
                copied = (tmp_path / "data.coordination" / name).read_bytes()
                journal = name
    # Behind a clean stop there is nothing in the journal any more: this is as SIGKILL would leave it, with one bit off.
    for name in folders(tmp_path / "data.coordination"):
        (tmp_path / "data.coordination" / name).unlink()
    damaged = bytearray(copied)
    damaged[len(damaged) // 3] ^= 0x10
    (tmp_path / "data.coordination" / journal).write_bytes(damaged)
    said = up_refused(tmp_path)
    assert f"{tmp_path}/data.coordination/{journal}" in said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("num.partitions=zwei", "Invalid value zwei for configuration num.partitions"),
        ("listeners=nonsense", "listeners"),
        ("broker.rack=\\u12", "line 1: a \\u is followed by four hexadecimal digits"),
    ],
)
def test_a_property_is_bad(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"{line}\n")
    assert said in refused("broker", "--config", str(file))


def test_the_property_file_is_not_there(tmp_path: Path) -> None:
    said = refused("broker", "--config", str(tmp_path / "none"), code=3)
    assert said == f"ottla: cannot read {tmp_path}/none: No such file or directory"


CLUSTER = "5L6g3nShT-eMCtK--X86sw"


def test_a_fresh_broker_is_number_one_of_the_cluster_that_the_environment_names(tmp_path: Path) -> None:
    with started("up", "--port", "0", "--data", str(tmp_path), CLUSTER_ID=CLUSTER) as up:
        with Admin(bootstrap_servers=f"127.0.0.1:{up.port}") as admin:
            this, name = ConfigResource.broker(1), "group.initial.rebalance.delay.ms"
            assert admin.describe_configs([this], names=[name])[this][name].value == "0", "as in Kafka's images"
        assert f"broker started id=1 cluster={CLUSTER} " in up.stop()[2]
    with started("up", "--port", "0", "--data", str(tmp_path), CLUSTER_ID="MkU3OEVBNTcwNTJENDM2Qk") as up:
        err = up.stop()[2]
    assert f"broker started id=1 cluster={CLUSTER} " in err
    assert f"the cluster keeps the id that it has cluster={CLUSTER} wanted=MkU3OEVBNTcwNTJENDM2Qk" in err


def test_a_cluster_id_that_is_none(tmp_path: Path) -> None:
    said = refused("up", "--port", "0", "--data", str(tmp_path), CLUSTER_ID="production")
    assert "CLUSTER_ID" in said
    assert "does not appear to be a valid UUID" in said
    assert folders(tmp_path) == []


def test_kafkas_sample_file_gives_one_line_about_properties_without_effect(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.bootstrap.servers=localhost:9093\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\ncontroller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\nnum.network.threads=3\n"
        "num.io.threads=8\nsocket.send.buffer.bytes=102400\nsocket.receive.buffer.bytes=102400\n"
        f"num.recovery.threads.per.data.dir=1\nlog.dirs={tmp_path}/logs\n"
    )
    with started("broker", "--config", str(file)) as run:
        err = run.stop()[2]
    assert "WARN" not in err
    (line,) = [line for line in err.splitlines() if "without effect" in line]
    assert " INFO  server  properties without effect here names=" in line
    assert "num.network.threads, socket.receive.buffer.bytes" in line or "num.io.threads, num.network.threads" in line
