"""Feature levels of a cluster: set through any broker, heard of by all, kept through restarts."""

from __future__ import annotations

import pytest
from tests.broker.simulated_cluster import SimulatedCluster, until

from ottla.coordination.znode_json import DamagedZnode
from ottla.coordination.znodes import FEATURE, FEATURE_DATA, decode_features, encode_features
from ottla.metadata.features import TRANSACTION_VERSION, UnknownLevel, transaction_level
from ottla.model import ErrorCode
from ottla.protocol.generated.api_versions import ApiVersionsRequest
from ottla.protocol.generated.update_features import FeatureUpdateKey, UpdateFeaturesRequest

UP, DOWN = 1, 2


async def update(cluster: SimulatedCluster, number: int, level: int, kind: int, *, validate_only: bool = False) -> int:
    asked = FeatureUpdateKey(feature=TRANSACTION_VERSION, max_version_level=level, upgrade_type=kind)
    request = UpdateFeaturesRequest(feature_updates=[asked], validate_only=validate_only, timeout_ms=5_000)
    answer = await cluster.client(number).ask(request, 2)
    if answer.error_code == ErrorCode.INVALID_UPDATE_VERSION:
        # Once, also where another broker is the controller.
        assert answer.error_message.count("The update failed") == 1
    return int(answer.error_code)


async def finalized(cluster: SimulatedCluster, number: int) -> tuple[int | None, int]:
    """As clients of this broker see it: the level, and the epoch."""
    request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    answer = await cluster.client(number).ask(request, 4)
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    return levels.get(TRANSACTION_VERSION), answer.finalized_features_epoch


def levels(cluster: SimulatedCluster) -> set[int]:
    return {cluster.broker(number).services.features.transaction_version for number in cluster.brokers}


def stored(cluster: SimulatedCluster) -> bytes:
    return bytes(cluster.tree.server.store._tree.nodes[FEATURE].data)


def test_a_level_is_heard_of_by_all_and_kept() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        (controller,) = cluster.controllers
        other = next(number for number in cluster.brokers if number != controller)
        assert await finalized(cluster, other) == (2, 0)
        for number in (controller, other):
            assert await update(cluster, number, 1, UP) == ErrorCode.INVALID_UPDATE_VERSION
        assert await update(cluster, other, 1, DOWN, validate_only=True) == ErrorCode.NONE
        assert stored(cluster) == FEATURE_DATA
        # By a broker that is not the controller, and by the controller.
        assert await update(cluster, other, 1, DOWN) == ErrorCode.NONE
        await until(lambda: levels(cluster) == {1})
        assert await finalized(cluster, controller) == (1, 1)
        assert await update(cluster, controller, 0, DOWN) == ErrorCode.NONE
        await until(lambda: levels(cluster) == {0})
        assert await finalized(cluster, other) == (None, 2)
        # A restart of both, and a new controller.
        for number in (controller, other):
            await cluster.leave(number, "kill")
            await until(lambda number=number: cluster.epoch_or_none(number) is None)  # type: ignore[misc]
            await cluster.brokers[number].started()
        assert levels(cluster) == {0}
        await until(lambda: len(cluster.controllers) == 1)
        assert await update(cluster, other, 2, UP) == ErrorCode.NONE
        await until(lambda: levels(cluster) == {2})
        assert await finalized(cluster, controller) == (2, 3)

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


def test_a_level_that_nobody_knows_is_left_alone() -> None:
    """Somebody with a shell at the tree, or a newer program."""

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        tree = cluster.broker(1)._parts.membership.tree
        await tree.set(FEATURE, encode_features({TRANSACTION_VERSION: 3, "other": 7}))
        await until(lambda: bool(cluster.said("feature levels are left as they were")))
        assert levels(cluster) == {2}
        assert await update(cluster, 1, 1, DOWN) == ErrorCode.FEATURE_UPDATE_FAILED
        await tree.set(FEATURE, encode_features({TRANSACTION_VERSION: 1, "other": 7}))
        await until(lambda: levels(cluster) == {1})
        assert await update(cluster, 1, 2, UP) == ErrorCode.NONE
        assert decode_features(FEATURE, stored(cluster)) == {TRANSACTION_VERSION: 2, "other": 7}
        await tree.set(FEATURE, b"{")
        assert await update(cluster, 1, 1, DOWN) != ErrorCode.NONE
        assert stored(cluster) == b"{"

    with SimulatedCluster(1) as cluster:
        cluster.run(scenario(cluster))


def test_levels_as_the_tree_has_them() -> None:
    assert decode_features(FEATURE, FEATURE_DATA) == {}
    assert transaction_level({}) == 2
    ranged = b'{"features":{"x":{"min_version_level":1,"max_version_level":3}},"version":1,"status":1}'
    assert decode_features(FEATURE, ranged) == {"x": 3}
    assert decode_features(FEATURE, b'{"features":{"x":3},"version":2,"status":0}') == {}
    for level in (-1, 3):
        with pytest.raises(UnknownLevel):
            transaction_level({TRANSACTION_VERSION: level})


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b'{"status":1,"version":2,"features":{"x":"1"}}', b'{"status":1,"version":2,"features":4}'],
)
def test_damage_is_named(data: bytes) -> None:
    with pytest.raises(DamagedZnode):
        decode_features(FEATURE, data)
