"""Consume, transform, produce in a group, on three brokers: SIGKILL of the application, of a broker, or of both,
between every two steps of a transaction. librdkafka speaks the
classic generation, our own client version 2 (KIP-890)."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

import ottla.testing
from ottla.testing.processes import Cluster
from tests.interop.test_transforming_through_kills import (
    PARTITIONS,
    RECORDS_A_ROUND,
    SOURCE,
    STEPS_A_ROUND,
    TARGET,
    Application,
    committed,
    position,
    write,
)
from tests.interop.transforming import STEPS, transformed
from tests.interop.transforming_in_a_group import CLIENTS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

BROKERS = 3
ROUNDS = int(os.environ.get("OTTLA_ROUNDS", "20"))
VICTIMS = ("application", "broker", "both")


def kill_again_and_again(cluster: Cluster, application: Application) -> Counter[str]:
    """How often each of them died."""
    chance = random.Random(ROUNDS)
    deaths: Counter[str] = Counter()
    for number in range(ROUNDS):
        write(cluster.bootstrap, range(number * RECORDS_A_ROUND, (number + 1) * RECORDS_A_ROUND))
        for _ in range(chance.randrange(STEPS_A_ROUND)):
            application.next_step()
        application.until(STEPS[number % len(STEPS)])
        victim = VICTIMS[number % len(VICTIMS)]
        if victim != "application":
            cluster.until(lambda: all(map(cluster.is_serving, cluster.addresses)))
            cluster.kill(1 + chance.randrange(BROKERS))  # and it is started again
        if victim != "broker":
            application.kill()
            application.start()
        deaths[victim] += 1
    return deaths


@pytest.mark.parametrize("client", CLIENTS)
def test_every_record_is_there_once(client: str) -> None:
    properties = {"group.min.session.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "0"}
    with ottla.testing.cluster(BROKERS, properties=properties) as cluster:
        for topic in (SOURCE, TARGET):
            cluster.create_topic(topic, partitions=PARTITIONS, replication_factor=BROKERS)
        application = Application(cluster.bootstrap, "tests.interop.transforming_in_a_group", client)
        application.start()
        try:
            deaths = kill_again_and_again(cluster, application)
            while position(cluster.bootstrap) < ROUNDS * RECORDS_A_ROUND:
                application.next_step()
        finally:
            application.kill()
        expected = Counter(transformed(b"%d" % number) for number in range(ROUNDS * RECORDS_A_ROUND))
        assert Counter(committed(cluster.bootstrap)) == expected
        assert position(cluster.bootstrap) == ROUNDS * RECORDS_A_ROUND
    print(f"{client}: {ROUNDS} rounds, {ROUNDS * RECORDS_A_ROUND} records, each there once; killed: {dict(deaths)}")
