"""SIGKILL under load: what was acknowledged is there after the restart, once and in order.

An idempotent producer writes to several partitions without a pause while the broker is killed and started again, over
and over, on the same port and the same data. It is never told: its own retries must carry it through.
"""

from __future__ import annotations

import random
import threading
import time

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.broker import Broker
from tests.interop.clients import SECONDS_MAX, confluent_producer, read_confluent
from tests.interop.conftest import create_topic

TOPIC = "sigkill"
PARTITIONS = 4
#: Records between which the broker is killed: below the first nothing was at risk, the second only bounds the wait.
ACKED_A_ROUND = (200, 2000)


class Load:
    """Writes the numbers 0, 1, 2, ... to each partition and keeps what was acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]
        self.written = [0] * PARTITIONS
        self.errors: list[str] = []
        self._stopping = threading.Event()
        self._producer = confluent_producer(
            bootstrap,
            enable_idempotence=True,
            linger_ms=1,
            batch_num_messages=50,
            queue_buffering_max_messages=2000,
            message_timeout_ms=120_000,
            retry_backoff_ms=20,
            retry_backoff_max_ms=100,
            reconnect_backoff_ms=10,
            reconnect_backoff_max_ms=50,
            error_cb=self._on_error,
            log_level=0,  # every refused connection, ten times a second
        )
        self._thread = threading.Thread(target=self._write, name="load")

    def _on_error(self, error: confluent_kafka.KafkaError) -> None:
        if error.fatal():
            self.errors.append(f"fatal: {error}")

    def _on_delivery(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.errors.append(f"{message.value()!r}: {error}")
            return
        self.acknowledged[message.partition()][int(message.value())] = message.offset()

    @property
    def acknowledged_count(self) -> int:
        return sum(map(len, self.acknowledged))

    def start(self) -> None:
        self._thread.start()

    def _write(self) -> None:
        while not self._stopping.is_set() and not self.errors:
            for partition in range(PARTITIONS):
                try:
                    self._producer.produce(
                        TOPIC, b"%d" % self.written[partition], partition=partition, on_delivery=self._on_delivery
                    )
                except BufferError:  # the broker is away and the queue is full
                    self._producer.poll(0.01)
                    continue
                except confluent_kafka.KafkaException as fatal:  # its sequence of records broke: something is missing
                    self.errors.append(f"produce: {fatal}")
                    return
                self.written[partition] += 1
            self._producer.poll(0)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        if not self.errors:
            left = self._producer.flush(60)
            assert left == 0, f"{left} records were never acknowledged"

    def wait_for_acks(self, more: int) -> None:
        wanted = self.acknowledged_count + more
        deadline = time.monotonic() + 60
        while self.acknowledged_count < wanted:
            assert not self.errors, self.errors[:5]
            assert time.monotonic() < deadline, f"acks stand at {self.acknowledged_count}, {wanted} awaited"
            time.sleep(0.001)


def kill_again_and_again(broker: Broker, rounds: int, seed: int) -> Load:
    chance = random.Random(seed)
    broker.server.start()
    create_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), TOPIC, partitions=PARTITIONS)
    load = Load(broker.bootstrap)
    load.start()
    try:
        for _ in range(rounds):
            load.wait_for_acks(chance.randint(*ACKED_A_ROUND))
            broker.server.kill()
            broker.server.start()
        load.wait_for_acks(ACKED_A_ROUND[0])
    finally:
        load.stop()
    assert not load.errors, load.errors[:5]
    return load


def assert_kept(broker: Broker, load: Load) -> int:
    """Reads all partitions from the start and compares; returns the number of records."""
    total = 0
    for partition in range(PARTITIONS):
        acknowledged = load.acknowledged[partition]
        found = read_confluent(broker.bootstrap, TOPIC, load.written[partition], partition=partition)
        values = [int(record.row.value or b"-1") for record in found]
        at = {value: record.offset for value, record in zip(values, found, strict=True)}
        assert len(at) == len(values), f"partition {partition}: a record is there twice"
        assert values == sorted(values), f"partition {partition}: records out of order"
        missing = acknowledged.keys() - at.keys()
        assert not missing, (
            f"partition {partition}: {len(missing)} acknowledged records are gone: {sorted(missing)[:5]}"
        )
        moved = {value for value, offset in acknowledged.items() if at[value] != offset}
        assert not moved, f"partition {partition}: acknowledged at another offset: {sorted(moved)[:5]}"
        total += len(values)
    return total


def check(broker: Broker, rounds: int, seed: int) -> None:
    began = time.monotonic()
    load = kill_again_and_again(broker, rounds, seed)
    total = assert_kept(broker, load)
    broker.server.stop(SECONDS_MAX)
    print(
        f"\nSIGKILL under load: {rounds} rounds, seed {seed}, {total} records in {PARTITIONS} partitions, "
        f"{load.acknowledged_count} acknowledged: none lost, doubled or moved; {time.monotonic() - began:.0f} s"
    )


def test_what_was_acknowledged_survives_a_few_kills(own_broker: Broker) -> None:
    check(own_broker, rounds=3, seed=random.randrange(1 << 32))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_what_was_acknowledged_survives_a_hundred_kills(own_broker: Broker) -> None:
    check(own_broker, rounds=100, seed=random.randrange(1 << 32))
