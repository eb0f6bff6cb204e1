"""What topics are called on the other side, and which never go there."""

from __future__ import annotations

import pytest

from ottla.mirror.names import ReplicationPolicy

DEFAULT = ReplicationPolicy("A", "B")


def test_the_default_policy_puts_the_source_before_the_name() -> None:
    assert DEFAULT.remote_topic("orders") == "A.orders"
    assert DEFAULT._replace(separator="_").remote_topic("orders") == "A_orders"


def test_the_identity_policy_keeps_names_but_that_of_heartbeats() -> None:
    policy = DEFAULT._replace(identity=True)
    assert policy.remote_topic("orders") == "orders"
    assert policy.remote_topic("heartbeats") == "A.heartbeats"


@pytest.mark.parametrize(
    ("topic", "circle"),
    [
        ("orders", False),
        ("B.orders", True),
        ("C.orders", False),
        ("C.B.orders", True),
        ("B.", False),
        ("Bx.orders", False),
    ],
)
def test_what_comes_from_the_target_is_not_copied_back(topic: str, circle: bool) -> None:
    assert DEFAULT.comes_from_target(topic) is circle


@pytest.mark.parametrize(
    ("topic", "internal"),
    [
        ("__consumer_offsets", True),
        (".hidden", True),
        ("mm2-offset-syncs.B.internal", True),
        ("A.checkpoints.internal", True),
        ("ottla-offset-pairs.A.internal", True),
        ("connect-internal", True),
        ("internal", False),
        ("orders", False),
    ],
)
def test_internal_topics_are_never_copied(topic: str, internal: bool) -> None:
    assert DEFAULT.is_internal(topic) is internal


def test_internal_topics_have_mirrormakers_names() -> None:
    assert DEFAULT.offset_syncs_topic("B") == "mm2-offset-syncs.B.internal"
    assert DEFAULT.checkpoints_topic == "A.checkpoints.internal"
    assert DEFAULT._replace(internal_separator="_").checkpoints_topic == "A_checkpoints_internal"
