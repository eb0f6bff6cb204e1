"""What `ottla up` and `ottla.testing` set for a cluster of a few brokers on one host, and Kafka's defaults do not."""

from __future__ import annotations


def up_defaults(brokers: int) -> dict[str, str]:
    """Replication of internal and new topics: as many copies as there are brokers, at most three.

    A write needs two copies only where there are three: with two brokers the loss of one would stop all writing.

    A new group is not made to wait for more members, as in Kafka's images and its own sample file: three seconds are
    much for somebody who looks. A new broker is number 1, as there.

    As a rule all of them stop together. A broker whose partitions nobody can take over any more tries that three times,
    and its pause between two tries is short.
    """
    assert brokers >= 1
    copies = str(min(3, brokers))
    needed = "2" if brokers >= 3 else "1"
    return {
        "default.replication.factor": copies,
        "min.insync.replicas": needed,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": needed,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": needed,
        "group.initial.rebalance.delay.ms": "0",
        "controlled.shutdown.retry.backoff.ms": "500",
        "ottla.new.broker.id": "1",
    }
