"""A broker that goes away: it is said, and work that has an end ends with exit code 4."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tools.server_process import free_port

from ottla.cli import connecting, faults
from ottla.cli.faults import CommandFault
from ottla.cli.reachability import BrokerWatch
from ottla.client.settings import AdminSettings, parse_settings
from ottla.client.sync import Producer
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.metadata import Partition, Topic
from ottla.model import ErrorCode
from ottla.ports.memory import memory_ports
from ottla.protocol.apis import ApiKey
from ottla.testing import InProcessBroker
from tests.cli.conftest import Command, Ran, environment, run_process
from tests.cli.watched_command import first_line, watched
from tests.client.proxy import Action, Cut, Pass, Proxy, Request, Silence
from tests.records.test_old_messages import message
from tests.searches import some


class ServedBroker:
    """`ottla up` in a process of its own, which can be killed and started again at the same address."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._child: subprocess.Popen[bytes] | None = None
        self.port = free_port()  # nobody else is given it while the broker is away
        self.start()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "ottla", "up", "--port", str(self.port), "--data", str(self._data)]
        self._child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(OTTLA_PROFILES="/nonexistent")
        )
        assert self._child.stdout is not None
        assert self._child.stdout.readline() == b"Ottla is listening on 127.0.0.1:%d\n" % self.port

    def pause(self) -> None:
        assert self._child is not None
        self._child.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None

    def run(self, *words: str, stdin: bytes = b"") -> Ran:
        return run_process(words, stdin, {"OTTLA_BOOTSTRAP_SERVER": self.bootstrap})


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ServedBroker]:
    served = ServedBroker(tmp_path)
    assert served.run("topic", "create", "orders", "--config", "retention.ms=-1").code == 0
    try:
        yield served
    finally:
        served.kill()


@contextmanager
def fed(bootstrap: str) -> Iterator[None]:
    """Records come all the time."""
    over = threading.Event()

    def feed() -> None:
        with Producer(bootstrap_servers=bootstrap) as producer:
            while not over.wait(0.2):
                producer.send_and_wait("orders", b"more")

    feeding = threading.Thread(target=feed)
    feeding.start()
    try:
        yield
    finally:
        over.set()
        feeding.join()


@pytest.mark.in_turns
@pytest.mark.parametrize("shared", [[], ["--group", "g"]], ids=["alone", "in a group"])
@pytest.mark.parametrize("end", [["-c", "3"], ["--timeout-ms", "60000"]], ids=["-c", "--timeout-ms"])
def test_reading_to_an_end_is_given_up(broker: ServedBroker, shared: list[str], end: list[str]) -> None:
    assert broker.run("produce", "orders", stdin=b"one\n").code == 0
    words = ("consume", "orders", "--from-beginning", "--give-up-ms", "1000", *end, *shared)
    with watched(broker.bootstrap, *words) as command:
        assert first_line(command) == "one"
        broker.kill()
        command.says(rf"^ottla: {broker.bootstrap} is away \(Connection refused\); trying again\n")
        assert command.ends() == faults.UNREACHABLE
        last = command.said.splitlines()[-1]
    assert re.fullmatch(
        rf"ottla: {broker.bootstrap} has been away for \d+ s \(Connection refused\): given up before the end", last
    ), command.said


@pytest.mark.parametrize("shared", [[], ["--group", "g"]], ids=["alone", "in a group"])
def test_reading_to_the_present_end_is_given_up(broker: ServedBroker, shared: list[str]) -> None:
    """Killed in the middle: the command is held up by whoever reads its output, far from the end."""
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for delivery in [producer.send("orders", b"x" * 100_000) for _ in range(400)]:
            delivery.result(60)
    words = ("consume", "orders", "--from-beginning", "--exit-at-end", "--give-up-ms", "1000", *shared)
    with watched(broker.bootstrap, *words) as command:
        assert len(first_line(command)) == 100_000
        broker.kill()
        assert command.ends() == faults.UNREACHABLE
    assert "(Connection refused): given up before the end\n" in command.said


def test_silence_of_a_broker_that_is_away_is_no_end(broker: ServedBroker) -> None:
    assert broker.run("produce", "orders", stdin=b"one\n").code == 0
    with watched(broker.bootstrap, "consume", "orders", "--from-beginning", "--timeout-ms", "2000") as command:
        assert first_line(command) == "one"
        broker.kill()
        command.says("is away")
        assert command.ends() == faults.UNREACHABLE


def test_silence_of_a_broker_that_hangs_is_no_end(broker: ServedBroker) -> None:
    """It keeps its connections, as a process does that is stopped, and is not away before `request.timeout.ms`."""
    assert broker.run("produce", "orders", stdin=b"one\n").code == 0
    alone = ("consume", "orders", "--from-beginning", "--timeout-ms", "5000")
    with watched(broker.bootstrap, *alone) as one, watched(broker.bootstrap, *alone, "-g", "g") as two:
        with fed(broker.bootstrap):  # one of them may begin long before the other, and must not end meanwhile
            assert [first_line(each) for each in (one, two)] == ["one", "one"]
        broker.pause()
        for each in (one, two):
            assert each.ends() == faults.UNREACHABLE, each.said
            assert each.said == (
                "ottla: nothing came for 5000 ms, and the brokers did not answer within 3000 ms either: nobody can "
                "tell whether there is more; `ottla cluster health` names those that hang\n"
            )


def test_silence_while_reading_is_measured_is_no_end_either(broker: ServedBroker) -> None:
    assert broker.run("produce", "orders", stdin=b"one\n").code == 0

    async def measured() -> Ran:
        hangs = False

        def answers_one_fetch(request: Request) -> Action:
            nonlocal hangs
            was, hangs = hangs, hangs or request.key == ApiKey.FETCH
            return Silence() if was else Pass()

        async with Proxy(broker.bootstrap, answers_one_fetch) as proxy:
            words = ("perf", "consume", "orders", "--messages", "2", "--timeout", "1000", "-b", proxy.bootstrap)
            return await asyncio.to_thread(run_process, words, b"", {})

    ran = asyncio.run(measured())
    assert ran.code == faults.UNREACHABLE, ran.err
    assert "nothing came for 1000 ms, and the brokers did not answer within 3000 ms either" in ran.err


@pytest.mark.parametrize("verb", ["alone", "in a group", "perf"])
def test_what_is_there_and_comes_late_is_no_end(ottla_broker: InProcessBroker, topic: str, verb: str) -> None:
    with Producer(bootstrap_servers=ottla_broker.bootstrap) as producer:
        producer.send_and_wait(topic, b"late")
    words = {
        "alone": ["consume", topic, "--from-beginning", "--timeout-ms", "300"],
        "in a group": ["consume", topic, "--from-beginning", "--timeout-ms", "300", "--group", topic],
        "perf": ["perf", "consume", topic, "--messages", "1", "--timeout", "300"],
    }[verb]

    async def read() -> Ran:
        comes, looks = asyncio.Event(), 0
        fetched = False

        def holds_records_back(request: Request) -> Action:
            """Until the command has looked twice whether there is more."""
            nonlocal fetched, looks
            if request.key == ApiKey.FETCH:
                fetched = True
                return Pass(until=comes)
            looks += fetched and request.key == ApiKey.LIST_OFFSETS
            if looks == 2:
                comes.set()
            return Pass()

        async with Proxy(ottla_broker.bootstrap, holds_records_back) as proxy:
            return await asyncio.to_thread(run_process, (*words, "-b", proxy.bootstrap), b"", {})

    ran = asyncio.run(read())
    assert ran.code == 0, ran.err
    assert verb == "perf" or ran.out == "late\n"


@pytest.mark.parametrize("shared", some([[], ["--group", "g"]], ["--group", "g"]), ids=["alone", "in a group"])
def test_reading_goes_on_when_the_broker_is_back(broker: ServedBroker, shared: list[str]) -> None:
    assert broker.run("produce", "orders", stdin=b"one\n").code == 0
    with watched(broker.bootstrap, "consume", "orders", "--from-beginning", *shared) as command:
        assert first_line(command) == "one"
        broker.kill()
        command.says("is away")
        broker.start()
        command.says(rf"ottla: {broker.bootstrap} is back\n")
        assert broker.run("produce", "orders", stdin=b"two\n").code == 0
        assert first_line(command) == "two"
        command.child.send_signal(signal.SIGINT)
        assert command.ends() == faults.INTERRUPTED
        assert command.said.count("\n") == 2, command.said


def test_waiting_for_health_says_what_for(broker: ServedBroker) -> None:
    broker.kill()
    with watched(broker.bootstrap, "cluster", "health", "-e", "--interval", "0.05") as command:
        command.says(
            rf"^ottla: not healthy yet \(no broker was reached: {broker.bootstrap}: Connection refused\); waiting\n"
        )
        broker.start()
        assert command.ends() == 0
        assert command.said.count("Connection refused") == 1, command.said


def test_sending_says_it_and_goes_on(broker: ServedBroker) -> None:
    with watched(broker.bootstrap, "produce", "orders") as command:
        assert command.child.stdin is not None
        command.child.stdin.write(b"one\n")
        command.child.stdin.flush()
        assert broker.run("consume", "orders", "--from-beginning", "-c", "1").lines == ["one"]
        broker.kill()
        command.says("is away")
        command.child.stdin.write(b"two\n")
        command.child.stdin.flush()
        broker.start()
        command.says("is back")
        assert command.ends() == 0
    assert broker.run("consume", "orders", "--from-beginning", "-e").lines == ["one", "two"]


def test_records_that_no_broker_took_are_exit_code_4(broker: ServedBroker) -> None:
    # Enough for the first record too, which comes with the connection and all that it needs.
    settings = ("--producer-property", "delivery.timeout.ms=5000", "--producer-property", "request.timeout.ms=2000")
    with watched(broker.bootstrap, "produce", "orders", *settings, "--linger-ms", "0") as command:
        assert command.child.stdin is not None
        command.child.stdin.write(b"one\n")
        command.child.stdin.flush()
        assert broker.run("consume", "orders", "--from-beginning", "-c", "1").lines == ["one"]
        broker.kill()
        command.says("is away")
        command.child.stdin.write(b"two\n")
        assert command.ends() == faults.UNREACHABLE
    assert "1 record was not acknowledged: orders-0: 1 record was not acknowledged within 5000 ms" in command.said


@pytest.mark.parametrize(
    "verb",
    some(["group describe billing", "cluster health", "reassign status"], "group describe billing", "cluster health"),
)
def test_watching_goes_on_when_the_broker_is_back(broker: ServedBroker, verb: str) -> None:
    assert broker.run("group", "reset", "billing", "--topic", "orders", "--to-earliest", "--yes").code == 0
    words = (*verb.split(), "--watch", "--interval", "0.05", "-o", "json")
    with watched(broker.bootstrap, *words) as command:
        assert first_line(command)[:1] in {"[", "{"}
        broker.kill()
        command.says("is away")
        broker.start()
        command.says("is back")
        seen = [first_line(command) for _ in range(20)]
        assert seen[-1][:1] in {"[", "{"}
        command.child.send_signal(signal.SIGINT)
        assert command.ends() == faults.INTERRUPTED


@pytest.mark.parametrize(
    "words", [("topic", "list"), ("consume", "orders"), ("produce", "orders"), ("group", "describe", "g", "--watch")]
)
def test_a_refused_connection_is_said_at_once(
    in_process: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Not after the seconds in which another answer may come: these would be ten minutes here."""
    monkeypatch.setattr(connecting, "REACH_MS_MAX", 600_000)
    ran = in_process(*words, "-b", "127.0.0.1:1")
    assert ran.code == faults.UNREACHABLE
    assert ran.err == (
        "ottla: no broker was reached: 127.0.0.1:1: Connection refused; start one with `ottla up`, or name another "
        "with --bootstrap-server\n"
    )


def test_a_broker_that_says_nothing_is_named(in_process: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the connection, as a process does that is stopped, and answers nobody."""
    monkeypatch.setattr(connecting, "REACH_MS_MAX", 100)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        ran = in_process("topic", "list", "-b", address)
    assert ran.code == faults.UNREACHABLE
    assert ran.err == (
        f"ottla: {address} did not answer within 100 ms: a broker there hangs or is stopping; look at its log, or name "
        "another with --bootstrap-server\n"
    )


def test_a_host_with_several_addresses_and_one_that_nobody_knows(
    in_process: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`localhost` may stand for two addresses, whose faults asyncio puts into one text."""
    monkeypatch.setattr(connecting, "REACH_MS_MAX", 5_000)  # as long as an unknown name is looked up again
    ran = in_process("topic", "list", "-b", "localhost:1")
    assert ran.code == faults.UNREACHABLE
    assert ran.err.startswith("ottla: no broker was reached: localhost:1: Connection refused; start one with")
    ran = in_process("topic", "list", "-b", "no-such-host.invalid")
    assert ran.code == faults.UNREACHABLE
    assert "no-such-host.invalid:9092: the host's name is not known (" in ran.err


def test_partitions_without_a_leader_are_said_and_given_up() -> None:
    said: list[str] = []
    world = memory_ports(1)
    cluster = Cluster(parse_settings(AdminSettings, None, {"bootstrap_servers": "nowhere:1"}), world)
    watch = BrokerWatch(cluster, give_up_ms=30_000)
    watch.say = said.append

    def leaders(*ids: int) -> None:
        partitions = tuple(Partition(number, one, 0, (1,), (1,), (), ErrorCode.NONE) for number, one in enumerate(ids))
        topic = Topic("orders", bytes(16), partitions, internal=False)
        cluster.metadata = cluster.metadata._replace(topics={"orders": topic})
        for call in cluster.on_change:
            call()

    async def work() -> None:
        watch.begin()
        leaders(1, -1, -1)
        leaders(1, -1, -1)
        await asyncio.sleep(29)
        watch.check()
        leaders(1, 1, 1)
        assert not watch.lacks_something()
        leaders(1, -1, 1)
        await asyncio.sleep(31)
        with pytest.raises(CommandFault, match="orders-1 has had no leader for 31 s: given up before the end") as fault:
            watch.check()
        assert fault.value.code == faults.UNREACHABLE

    world.loop.run_until_complete(work())
    assert said == [
        "ottla: orders-1 (one of 2 partitions) has no leader (`ottla cluster health` says why); trying again",
        "ottla: orders-1 (one of 2 partitions) has a leader again",
        "ottla: orders-1 has no leader (`ottla cluster health` says why); trying again",
    ]


@pytest.mark.in_turns
@pytest.mark.parametrize("room", [32 << 20, 20_000], ids=["all fits", "more than fits"])
@pytest.mark.parametrize("how", [Cut, Silence], ids=["goes", "hangs"])
@pytest.mark.parametrize("verb", ["produce", "perf produce", "log import"])
def test_a_broker_that_goes_away_under_a_writer_and_stays_there_is_exit_code_4(
    ottla_broker: InProcessBroker, topic: str, tmp_path: Path, verb: str, how: type[Cut | Silence], room: int
) -> None:
    config = tmp_path / "client.properties"
    config.write_text(
        # `send` waits less for room than records wait for a broker, and long enough for the topic to be known.
        "linger.ms=0\nbatch.size=1000\nmax.request.size=10000\ndelivery.timeout.ms=4000\nrequest.timeout.ms=1000\n"
        f"max.block.ms=2000\nbuffer.memory={room}\n"
    )
    folder = tmp_path / "old-0"
    folder.mkdir()
    (folder / f"{0:020d}.log").write_bytes(b"".join(message(offset=offset, value=b"x" * 1000) for offset in range(40)))
    words = {
        "produce": ["produce", topic],
        "perf produce": ["perf", "produce", topic, "--num-records", "40", "--record-size", "1000"],
        "log import": ["log", "import", str(folder), "-t", topic],
    }[verb]
    stdin = b"%s\n" % (b"x" * 1000) * 40 if verb == "produce" else b""

    async def written() -> Ran:
        gone = False

        def act(request: Request) -> Action:
            nonlocal gone
            gone = gone or request.key == ApiKey.PRODUCE
            return how() if gone else Pass()

        async with Proxy(ottla_broker.bootstrap, act) as proxy:
            all_words = (*words, "-b", proxy.bootstrap, "--command-config", str(config))
            return await asyncio.to_thread(run_process, all_words, stdin, {})

    ran = asyncio.run(written())
    assert ran.code == faults.UNREACHABLE, ran.err
    assert " is away (" in ran.err or how is Silence  # it keeps its connections, and answers none
    assert re.search(r"\d+ records were not acknowledged", ran.err.splitlines()[-1]), ran.err
    assert "Traceback" not in ran.err
