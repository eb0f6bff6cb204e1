"""A leader that is cut off from the others and the tree, and not from its clients: these go on elsewhere meanwhile."""

from __future__ import annotations

import ottla.testing
from ottla.client.sync import Consumer, Producer
from ottla.testing.processes import TREE

TOPIC = "cut"


def test_clients_of_a_leader_that_is_cut_off_go_on_elsewhere() -> None:
    with ottla.testing.cluster(3) as cluster:
        cluster.create_topic(TOPIC)
        led = cluster.until_led(TOPIC)
        # By this broker alone they know the cluster at first.
        address = cluster.addresses[led]
        with Producer(bootstrap_servers=address, delivery_timeout_ms=120_000) as producer:
            producer.send(TOPIC, b"before").result()
            for other in (TREE, *(broker for broker in cluster.addresses if broker != led)):
                cluster.cut(led, other)
            # As long as the cut lasts: that has no end before this is acknowledged.
            offset = producer.send(TOPIC, b"meanwhile").result().offset
        cluster.heal()
        cluster.until_in_sync(TOPIC)
        with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([(TOPIC, 0)])
            found: list[bytes | None] = []
            while consumer.position((TOPIC, 0)) <= offset:
                found += [record.value for record in consumer.poll(timeout_ms=60_000)]
        assert found == [b"before", b"meanwhile"]
