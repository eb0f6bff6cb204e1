"""UpdateFeatures, word by word, as Apache Kafka 4.3 answers it, and the levels that clients see afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ottla.client import Admin, Producer
from ottla.client.admin.results import FeatureChange
from ottla.model import ErrorCode
from ottla.protocol.generated.api_versions import ApiVersionsRequest
from ottla.protocol.generated.describe_cluster import DescribeClusterRequest
from ottla.protocol.generated.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.interop.broker import Broker
from tests.interop.clients import eventually
from tests.interop.conftest import TARGET
from tests.interop.group_wire import Peer

TRANSACTIONS = "transaction.version"
UPGRADE, SAFE, UNSAFE = 1, 2, 3
FAILED = "The update failed for all features since the following feature had an error: Invalid update version "
NO_TYPE = "The controller does not support the given upgrade type."
DOWN = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)
Answer = tuple[int, str | None, list[tuple[str, int, str]]]


@pytest.fixture
def peer(own_broker: Broker) -> Iterator[Peer]:
    with own_broker.server:
        client = Peer(own_broker.bootstrap, "levels")
        yield client
        client.close()


def update(peer: Peer, version: int, *asked: tuple[str, int, int], validate_only: bool = False) -> Answer:
    keys = [FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in asked]
    answer = peer.ask(UpdateFeaturesRequest(feature_updates=keys, validate_only=validate_only), version)
    results = [(each.feature, each.error_code, each.error_message) for each in answer.results]
    return answer.error_code, answer.error_message, results


def refused(level: int, feature: str, why: str) -> Answer:
    return ErrorCode.INVALID_UPDATE_VERSION, f"{FAILED}{level} for feature {feature}. {why}", []


def finalized(peer: Peer) -> dict[str, int]:
    answer = peer.ask(ApiVersionsRequest(client_software_name="c", client_software_version="1"), 4)
    return {each.name: each.max_version_level for each in answer.finalized_features}


def level_is(peer: Peer, level: int | None) -> None:
    eventually(lambda: finalized(peer).get(TRANSACTIONS) == level)


def test_what_is_refused(peer: Peer) -> None:
    controller = f"Local controller {peer.ask(DescribeClusterRequest(), 0).controller_id}"
    cases = {
        ("nope", 1, UPGRADE): f"{controller} does not support this feature.",
        ("", 1, UPGRADE): f"{controller} does not support this feature.",
        ("nope", 0, SAFE): "Feature nope not found.",
        (TRANSACTIONS, 3, UPGRADE): f"{controller} only supports versions 0-2",
        (TRANSACTIONS, -1, SAFE): "A feature version cannot be less than 0.",
        (TRANSACTIONS, 1, UPGRADE): DOWN,
        (TRANSACTIONS, 1, 0): NO_TYPE,
        (TRANSACTIONS, 1, 7): NO_TYPE,
    }
    for (name, level, kind), why in cases.items():
        for version in (1, 2):
            assert update(peer, version, (name, level, kind)) == refused(level, name, why)
    # One that is refused is the end of all.
    both = ((TRANSACTIONS, 1, SAFE), ("nope", 1, UPGRADE))
    assert update(peer, 1, *both) == refused(1, "nope", f"{controller} does not support this feature.")
    # Before version 1 nobody can say that a level shall go down.
    old = FeatureUpdateKey(feature=TRANSACTIONS, max_version_level=1, allow_downgrade=True)
    answer = peer.ask(UpdateFeaturesRequest(feature_updates=[old]), 0)
    assert (answer.error_code, answer.error_message, answer.results) == refused(1, TRANSACTIONS, DOWN)
    assert finalized(peer)[TRANSACTIONS] == 2


def test_down_and_up_again(peer: Peer) -> None:
    taken: Answer = (0, None, [(TRANSACTIONS, 0, "NONE")])
    assert update(peer, 1) == update(peer, 2) == (0, None, [])
    assert update(peer, 2, (TRANSACTIONS, 1, SAFE), validate_only=True) == (0, None, [])
    assert finalized(peer)[TRANSACTIONS] == 2
    assert update(peer, 1, (TRANSACTIONS, 1, SAFE)) == taken
    level_is(peer, 1)
    assert update(peer, 1, (TRANSACTIONS, 1, SAFE)) == taken
    assert update(peer, 1, (TRANSACTIONS, 2, UNSAFE)) == refused(2, TRANSACTIONS, "Can't downgrade to a newer version.")
    assert update(peer, 2, (TRANSACTIONS, 0, UNSAFE)) == (0, None, [])
    level_is(peer, None)
    assert update(peer, 1, (TRANSACTIONS, 1, UPGRADE), (TRANSACTIONS, 2, UPGRADE)) == (0, None, taken[2] * 2)
    level_is(peer, 2)


@pytest.mark.skipif(TARGET == "kafka", reason="Kafka answers UNSUPPORTED_VERSION to the end of such a transaction")
def test_a_transaction_ends_as_it_began(own_broker: Broker) -> None:
    """Its epoch is raised at the end where it began at level 2, and stays at level 0."""

    async def epoch(admin: Admin, transactional_id: str) -> int:
        return (await admin.describe_transactions([transactional_id]))[transactional_id].producer_epoch

    async def scenario() -> None:
        async with Admin(bootstrap_servers=own_broker.bootstrap) as admin:
            await admin.create_topic("levels", 1)
            async with Producer(bootstrap_servers=own_broker.bootstrap, transactional_id="before") as producer:
                await producer.begin()
                await producer.send("levels", value=b"open")
                await producer.flush()
                await admin.update_features({TRANSACTIONS: 0}, FeatureChange.SAFE_DOWNGRADE)
                while (await admin.describe_features())[TRANSACTIONS].level != 0:
                    pass
                await producer.commit()
            async with Producer(bootstrap_servers=own_broker.bootstrap, transactional_id="after") as producer:
                await producer.begin()
                await producer.send("levels", value=b"later")
                await producer.commit()
            assert (await epoch(admin, "before"), await epoch(admin, "after")) == (1, 0)

    with own_broker.server:
        asyncio.run(scenario())
