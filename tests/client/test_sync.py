"""The synchronous face: the same behaviour from plain threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque

import pytest

from ottla.client.errors import (
    BufferExhausted,
    ClientClosed,
    InvalidTopic,
    SerializationFailed,
    UnknownTopicOrPartition,
)
from ottla.client.records import ProducerRecord, RawRecord
from ottla.client.sync import Admin, Consumer, Producer
from ottla.client.sync.producer import HANDED_OVER_MAX, Delivery
from ottla.model import TopicPartition


def read(bootstrap: str, topic: str, count: int) -> list[bytes]:
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(consumer.partitions_for(topic))
        values = []
        while len(values) < count:
            values += [record.value for record in consumer.poll(timeout_ms=10_000)]
        return values


def test_records_there_and_back(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap, value_serializer="str") as producer:
        assert producer.partitions_for(topic) == 1
        first = producer.send(topic, "one", b"k")
        second = producer.send_record(ProducerRecord(topic=topic, value="two", timestamp=5))
        assert (first.result(60).offset, second.result(60).offset) == (0, 1)
        assert second.result().timestamp == 5
        assert first.exception() is None
        assert producer.send_and_wait(topic, "three").offset == 2
    assert read(bootstrap, topic, 3) == [b"one", b"two", b"three"]


def test_leaving_sends_what_is_there(bootstrap: str, topic: str) -> None:
    count = 2 * HANDED_OVER_MAX
    with Producer(bootstrap_servers=bootstrap, linger_ms=1000) as producer:
        deliveries = [producer.send(topic, b"%d" % n) for n in range(count)]
    assert all(delivery.done() for delivery in deliveries)
    assert read(bootstrap, topic, count) == [b"%d" % n for n in range(count)]


def test_flush_and_call_backs(bootstrap: str, topic: str) -> None:
    told: list[Delivery] = []
    with Producer(bootstrap_servers=bootstrap, linger_ms=60_000, delivery_timeout_ms=120_000) as producer:
        deliveries = [producer.send(topic, b"%d" % n, on_delivery=told.append) for n in range(10)]
        assert not deliveries[0].done()
        with pytest.raises(TimeoutError):
            deliveries[0].result(0.01)
        producer.flush()
        assert told == deliveries
        assert [delivery.result().offset for delivery in deliveries] == list(range(10))


def test_threads_share_a_producer(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:

        def work(name: int) -> None:
            for n in range(100):
                producer.send(topic, b"%d %d" % (name, n))

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    values = [tuple(map(int, value.split())) for value in read(bootstrap, topic, 400)]
    for name in range(4):
        assert [n for who, n in values if who == name] == list(range(100))


def test_faults_are_told(bootstrap: str, topic: str) -> None:
    told: list[Delivery] = []
    producer = Producer(bootstrap_servers=bootstrap, max_block_ms=2000)
    with pytest.raises(SerializationFailed):
        producer.send(topic, "text")
    delivery = producer.send("bad/name", b"x", on_delivery=told.append)
    with pytest.raises(InvalidTopic):
        delivery.result(60)
    assert isinstance(delivery.exception(), InvalidTopic)
    assert told == [delivery]
    producer.close()
    producer.close()
    with pytest.raises(ClientClosed):
        producer.send(topic, b"x")


def test_a_topic_that_is_not_there_holds_up_nobody_elses_records(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap, max_block_ms=60_000) as producer:
        producer._inner.cluster.auto_create = False
        missing = [producer.send(topic + "-typo", b"x") for _ in range(20)]
        assert producer.send(topic, b"there").result(30).offset == 0
        assert not any(one.done() for one in missing)
        producer.close(timeout_ms=0)
        assert all(isinstance(one.exception(), ClientClosed) for one in missing)


def test_what_is_held_has_an_end_when_the_loop_ends_before_its_turn(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.partitions_for(topic)
        held = [Delivery(producer, RawRecord("elsewhere", b"x", None, None, None, ()), None) for _ in range(3)]
        producer._held["elsewhere"] = deque(held)
    assert all(isinstance(one.exception(), ClientClosed) for one in held)


def test_all_records_of_a_topic_that_does_not_come_have_their_outcome_at_once(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap, max_block_ms=100) as producer:
        producer._inner.cluster.auto_create = False
        missing = [producer.send(topic + "-typo", b"x") for _ in range(1000)]
        producer.flush(50)
        assert all(isinstance(one.exception(), UnknownTopicOrPartition) for one in missing)


def test_a_record_for_a_partition_that_is_not_there_fails_alone(bootstrap: str, topic: str) -> None:
    """Though it is the first one of its topic, and others wait behind it until that is known."""
    with Producer(bootstrap_servers=bootstrap) as producer:
        nowhere, here = producer.send(topic, b"x", partition=99), producer.send(topic, b"y")
        assert isinstance(nowhere.exception(60), UnknownTopicOrPartition)
        assert here.result(60).offset == 0


def test_what_is_handed_over_has_a_bound_in_bytes_and_in_time(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Producer(bootstrap_servers=bootstrap, buffer_memory=100_000, max_block_ms=50) as producer:
        while producer.send(topic, b"first").exception() is not None:
            pass  # a busy machine may need longer than that to ask where the topic is
        with monkeypatch.context() as patch:
            patch.setattr(producer, "_take", lambda: None)  # the loop's thread comes to nothing
            given = [producer.send(topic, bytes(10_000)) for _ in range(9)]
            with pytest.raises(BufferExhausted):
                producer.send(topic, bytes(10_000))
            with pytest.raises(BufferExhausted):  # it would wait for itself
                producer._thread.call(lambda: producer.send(topic, bytes(10_000)))
            many = producer.send_many(ProducerRecord(topic=topic, value=bytes(40_000 * n)) for n in range(3))
            assert [one.done() for one in many] == [False, True, True]
            assert isinstance(many[1].exception(), BufferExhausted)
        producer.flush()
        assert [one.result(0).offset for one in [*given, many[0]]] == list(range(1, 11))
        assert (producer._count, producer._bytes) == (0, 0)


def test_the_consumers_verbs(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for n in range(10):
            producer.send(topic, b"%d" % n, timestamp=1000 + n)
    tp = TopicPartition(topic, 0)
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", fetch_max_wait_ms=50) as consumer:
        consumer.assign([tp])
        assert consumer.assignment() == [tp]
        seen = []
        for record in consumer:
            seen.append(record.value)
            if len(seen) == 3:
                break
        assert seen == [b"0", b"1", b"2"]
        assert consumer.position(tp) == 3
        consumer.seek(tp, 8)
        assert [record.value for record in consumer.poll()] == [b"8", b"9"]
        consumer.seek_to_beginning(tp)
        assert consumer.poll(max_records=1)[0].value == b"0"
        consumer.seek_to_end()
        assert consumer.position(tp) == 10
        consumer.pause(tp)
        assert consumer.paused() == [tp]
        consumer.resume(tp)
        assert consumer.beginning_offsets([tp]) == {tp: 0}
        assert consumer.end_offsets([tp]) == {tp: 10}
        found = consumer.offsets_for_times({tp: 1004})[tp]
        assert found is not None
        assert found.offset == 4
        assert consumer.poll(timeout_ms=1) == []
        assert consumer.high_watermark(tp) == 10
    with pytest.raises(ClientClosed):
        consumer.poll()


def test_admin(bootstrap: str, new_name: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        assert admin.create_topic(new_name, 2, 1).partitions == 2
        assert new_name in admin.list_topics()
        assert len(admin.describe_topic(new_name).partitions) == 2
        assert admin.describe_cluster().brokers
        admin.delete_topic(new_name)
        with pytest.raises(UnknownTopicOrPartition):
            admin.describe_topic(new_name)


def test_no_thread_is_left_behind(bootstrap: str, topic: str) -> None:
    def running() -> set[str]:
        return {thread.name for thread in threading.enumerate() if thread.name.startswith("ottla-")}

    before = running()
    with Producer(bootstrap_servers=bootstrap) as producer, Consumer(bootstrap_servers=bootstrap) as consumer:
        producer.send(topic, b"x")
        consumer.assign([TopicPartition(topic, 0)])
        assert "ottla-producer" in running()
    assert running() == before


def test_an_interrupt_while_a_record_is_handed_over_stops_no_later_one(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    delivered = threading.Event()
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.partitions_for(topic)
        with monkeypatch.context() as context:
            context.setattr(producer._thread.loop, "call_soon_threadsafe", interrupted)
            with pytest.raises(KeyboardInterrupt):
                producer.send(topic, b"x")
        producer.send(topic, b"y", on_delivery=lambda _: delivered.set())
        assert delivered.wait(60)


FORKS = """
import os, sys

from ottla.client.errors import ClientClosed
from ottla.client.sync import Admin, Consumer, Producer

address, topic = sys.argv[1:]
producer = Producer(bootstrap_servers=address, linger_ms=60_000)  # what is sent stays open beyond the fork
admin = Admin(bootstrap_servers=address)
consumer = Consumer(bootstrap_servers=address, auto_offset_reset="earliest")
unused = Producer(bootstrap_servers=address)
delivery = producer.send(topic, b"before")
admin.list_topics()
consumer.assign(consumer.partitions_for(topic))
child = os.fork()
if not child:
    calls = {
        "send": lambda: producer.send(topic, b"lost"), "flush": producer.flush, "result": delivery.result,
        "list": admin.list_topics, "poll": lambda: consumer.poll(timeout_ms=1), "admin": admin.close,
    }
    for name, call in calls.items():
        try:
            call()
            print(name, "nothing", flush=True)
        except ClientClosed as error:
            print(name, "forked" in str(error), flush=True)
    producer.close()
    print("unused", unused.send_and_wait(topic, b"child", timeout=30).offset >= 0, flush=True)
    unused.close()
    os._exit(0)
os.waitpid(child, 0)
producer.send(topic, b"after")
producer.close()
found = []
while len(found) < 3:
    found += [record.value.decode() for record in consumer.poll(timeout_ms=5000)]
print(*sorted(found))
consumer.close()
admin.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_client_stays_in_the_process_that_it_was_used_in(bootstrap: str, topic: str) -> None:
    # Since 3.12 Python itself says of a fork beside threads what may come of it.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS, bootstrap, topic]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    names = ("send", "flush", "result", "list", "poll", "admin", "unused")
    expected = "".join(f"{name} True\n" for name in names) + "after before child\n"
    assert (done.stdout, done.returncode) == (expected, 0), done.stderr
    assert not done.stderr


OUTLIVES_THE_MAIN_THREAD = """
import sys, threading

from ottla.client.sync import Producer

def work():
    threading.main_thread().join()
    with Producer(bootstrap_servers=sys.argv[1]) as producer:
        print(producer.send_and_wait(sys.argv[2], b"late", timeout=30).offset)

threading.Thread(target=work).start()
"""


def test_a_client_is_made_when_the_main_thread_has_ended(bootstrap: str, topic: str) -> None:
    """A name is looked up then, which Python's own threads for such work refuse."""
    address = bootstrap.replace("127.0.0.1", "localhost")
    command = [sys.executable, "-c", OUTLIVES_THE_MAIN_THREAD, address, topic]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr
