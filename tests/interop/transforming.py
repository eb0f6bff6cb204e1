"""An application that consumes, transforms and produces in transactions: ``python -m tests.interop.transforming``.

It is told what it does on its command line: bootstrap servers, the topic that it reads and the one that it writes. Each
step of a transaction is a line of its output. After a fault that it cannot repeat it ends, and is to be started again:
what it left open is aborted by the next one, which has the same transactional id.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

GROUP: Final = "transforming"
#: Its steps, in this order; it waits for nobody.
BEGUN, PRODUCED, SENT, COMMITTED = "begun", "produced", "sent", "committed"
STEPS: Final = (BEGUN, PRODUCED, SENT, COMMITTED)
RECORDS_A_TRANSACTION: Final = 20
WAIT_S: Final = 60.0
#: Then it is ended by the signal.
OFFSETS_WAIT_S: Final = 3


def transformed(value: bytes) -> bytes:
    return b"%d" % (int(value) * 7)


def main(bootstrap: str, source: str, target: str) -> None:
    quick = {"log_level": 0, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50, "retry.backoff.ms": 20}
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": GROUP, "linger.ms": 0, **quick})
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **quick,
        }
    )
    # Before it asks where it stands: offsets of a transaction that was left open would be taken for the last ones.
    repeated(producer.init_transactions)
    known = consumer.list_topics(source, WAIT_S).topics[source].partitions
    partitions = [TopicPartition(source, number) for number in known]
    # By hand, as after the death of a member nobody has its partitions until its session is over.
    starts = consumer.committed(partitions, WAIT_S)
    consumer.assign([TopicPartition(each.topic, each.partition, max(each.offset, 0)) for each in starts])
    print("assigned", flush=True)
    while True:
        taken = [message for message in consumer.consume(RECORDS_A_TRANSACTION, 0.2) if message.error() is None]
        if not taken:
            print("idle", flush=True)
            continue
        producer.begin_transaction()
        print(BEGUN, flush=True)
        for message in taken:
            producer.produce(target, transformed(message.value()), partition=message.partition())
        print(PRODUCED, flush=True)
        positions = consumer.position(partitions)
        metadata = consumer.consumer_group_metadata()
        # After a restart of the group's coordinator librdkafka 2.x waits for a change of that broker's state that was
        # there already, and looks at no time-out (its issues 5511 and 5456): AddOffsetsToTxn was answered without an
        # error, its connections are served, and no TxnOffsetCommit is sent. With Apache Kafka 4.3.1 it does the same.
        signal.alarm(OFFSETS_WAIT_S)
        producer.send_offsets_to_transaction(positions, metadata, WAIT_S)
        signal.alarm(0)
        print(SENT, flush=True)
        repeated(producer.commit_transaction)
        print(COMMITTED, flush=True)


def repeated(call: Callable[[float], object]) -> None:
    while True:
        try:
            call(WAIT_S)
        except KafkaException as fault:
            if not fault.args[0].retriable():
                raise
        else:
            return


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KafkaException:
        os._exit(1)  # librdkafka would wait for what it does not send
