"""What a rebalance costs those who are not concerned by it: records a second of each member, as a plot.

    python -m bench.group_plot        writes docs/groups-rebalance.svg; takes a minute and a half

Two members of librdkafka read six partitions under an even load; a third one comes and goes. Once by the classic
protocol with the range assignor, where everybody stops until everybody is back, and once with
``group.protocol=consumer``, where partitions move one by one. A member hears of a rebalance with its next heartbeat: by
the new protocol the broker has them five seconds apart. By the classic one it is each member's own affair, and
here they are not quite alike, as in groups whose members are busy; with one beat for all, nobody would wait for long.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from tools.ottla_server import ottla_broker

from bench.svg_lines import Panel, draw

OUTPUT = Path(__file__).resolve().parent.parent / "docs" / "groups-rebalance.svg"
PARTITIONS = 6
RECORDS_A_SECOND = 3000
STEP_S = 0.25
#: Of the plot; a member that catches up after a stop reads faster than that.
TOP = 4000.0
#: Of a run: when the third member comes, when it leaves, and the end.
COMES_S, LEAVES_S, ENDS_S = 8.0, 22.0, 36.0
WAIT_S_MAX = 60.0

PROTOCOLS: Mapping[str, Mapping[str, str]] = {
    "group.protocol=classic, range": {"partition.assignment.strategy": "range"},
    "group.protocol=consumer, uniform": {"group.protocol": "consumer"},
}


class Member:
    """Reads on a thread of its own and notes how many records came when."""

    def __init__(self, bootstrap: str, group: str, topic: str, settings: Mapping[str, str]) -> None:
        self.arrivals: list[tuple[float, int]] = []
        self.partitions: set[int] = set()
        self._ending = threading.Event()
        self._consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "latest", **settings}
        )
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _assigned(self, _: confluent_kafka.Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        self.partitions |= {each.partition for each in partitions}

    def _revoked(self, _: confluent_kafka.Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        self.partitions -= {each.partition for each in partitions}

    def _read(self) -> None:
        while not self._ending.is_set():
            found = self._consumer.consume(500, 0.02)
            if found:
                self.arrivals.append((time.monotonic(), sum(message.error() is None for message in found)))
        self._consumer.close()

    def leave(self) -> None:
        self._ending.set()
        self._thread.join()

    def rates(self, began: float) -> list[float]:
        """Records a second, for each step of the run."""
        steps = [0.0] * round(ENDS_S / STEP_S)
        for at, count in self.arrivals:
            step = int((at - began) / STEP_S)
            if 0 <= step < len(steps):
                steps[step] += count / STEP_S
        return steps


class Load:
    """The same number of records a second to each partition, until the block ends."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._ending = threading.Event()
        self._producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self._thread = threading.Thread(target=self._write, daemon=True)

    def _write(self) -> None:
        due = time.monotonic()
        while not self._ending.is_set():
            for partition in range(PARTITIONS):
                self._producer.produce(self._topic, b"x" * 100, partition=partition)
            self._producer.poll(0)
            due += PARTITIONS / RECORDS_A_SECOND
            time.sleep(max(0.0, due - time.monotonic()))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        self._producer.flush(WAIT_S_MAX)


def measure(bootstrap: str, title: str, topic: str, settings: Mapping[str, str]) -> Panel:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(WAIT_S_MAX)
    members = [Member(bootstrap, topic, topic, {**settings, **own}) for own in heartbeats(settings)]
    _wait_for_halves(members)
    with Load(bootstrap, topic):
        began = time.monotonic() + 1.0
        _sleep_until(began + COMES_S)
        comer = Member(bootstrap, topic, topic, settings)
        _sleep_until(began + LEAVES_S)
        if not comer.partitions:
            raise SystemExit(f"{title}: the third member got nothing in {LEAVES_S - COMES_S} s")
        comer.leave()
        _sleep_until(began + ENDS_S)
    for member in members:
        member.leave()
    names = ("stays", "stays too", "comes and goes")
    lines = {name: member.rates(began) for name, member in zip(names, [*members, comer], strict=True)}
    return Panel(title=title, lines=lines, events=[(COMES_S, "a third member comes"), (LEAVES_S, "it leaves")])


def heartbeats(settings: Mapping[str, str]) -> Sequence[Mapping[str, str]]:
    if "group.protocol" in settings:
        return [{}, {}]
    return [{"heartbeat.interval.ms": interval} for interval in ("3000", "2200")]


def _wait_for_halves(members: Sequence[Member]) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while sorted(len(member.partitions) for member in members) != [PARTITIONS // 2] * 2:
        if time.monotonic() > deadline:
            raise SystemExit("the first two members do not share the partitions")
        time.sleep(0.05)


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def _longest_stop(values: Sequence[float]) -> float:
    """Seconds without a record."""
    longest = current = 0
    for value in values:
        current = 0 if value else current + 1
        longest = max(longest, current)
    return longest * STEP_S


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Plot what a rebalance costs the members that stay.")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args(arguments)
    panels = []
    with tempfile.TemporaryDirectory() as folder:
        properties = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.replication.factor": "1"}
        with ottla_broker(Path(folder) / "data", properties=properties) as server:
            for number, (title, settings) in enumerate(PROTOCOLS.items()):
                panels.append(measure(server.bootstrap, title, f"plot-{number}", settings))
    for panel in panels:
        stays = ", ".join(f"{_longest_stop(panel.lines[name]):.2f} s" for name in ("stays", "stays too"))
        print(f"{panel.title}: longest stop of those who stay: {stays}")
    title = f"A member joins and leaves: {RECORDS_A_SECOND:,} records a second over {PARTITIONS} partitions"
    options.output.write_text(draw(title, "records a second", TOP, STEP_S, panels))
    print(f"wrote {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
