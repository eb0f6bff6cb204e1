"""What consumers say in their protocol metadata, as far as the coordinator needs it: the topics they read.

All versions of that format begin like version 0, so that nothing later needs to be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.groups.classic.member import Protocols, metadata_of
from ottla.protocol.errors import DecodeError
from ottla.protocol.generated.consumer_protocol_subscription import ConsumerProtocolSubscription
from ottla.protocol.header import PLAIN_FRAME_BYTES_MAX
from ottla.protocol.stepping import DecodingAllowance
from ottla.steps import Steps, pieces

#: The protocol type of consumers; others (Connect's workers, schema registries) keep their own formats.
CONSUMER: Final = "consumer"
_VERSION_BYTES: Final = 2
_NAMES_A_STEP: Final = 512
#: Of one group. A cluster of Kafka's has about as many partitions.
SUBSCRIBED_TOPICS_MAX: Final = 200_000


def topics_of(said: Sequence[Protocols] | None, protocol: str | None) -> Steps[frozenset[str] | None]:
    """Of members that say this in their protocols; None where it cannot be known."""
    if said is None or (said and protocol is None):
        return None
    topics: set[str] = set()
    # Most members say the same, and there may be thousands of them.
    looked_at: set[bytes] = set()
    for piece in pieces(said):
        for protocols in piece:
            metadata = metadata_of(protocols, protocol)
            if metadata not in looked_at:
                looked_at.add(metadata)
                if not (yield from _add_topics(metadata, topics)):
                    return None
        yield
    return frozenset(topics)


def _add_topics(metadata: bytes, topics: set[str]) -> Steps[bool]:
    """False where the bytes are no subscription: some clients put there what they like. So it is where all members
    together name more topics than anybody has: 64 MB of short names would take a gigabyte.
    """
    if len(metadata) < _VERSION_BYTES:
        return False
    try:
        if len(metadata) <= PLAIN_FRAME_BYTES_MAX:
            subscription, _ = ConsumerProtocolSubscription.decode(metadata, 0, _VERSION_BYTES)
        else:
            subscription, _ = yield from ConsumerProtocolSubscription.decode_steps(
                metadata, 0, _VERSION_BYTES, DecodingAllowance()
            )
    except DecodeError:
        return False
    for names in pieces(subscription.topics, _NAMES_A_STEP):
        topics.update(names)
        if len(names) == _NAMES_A_STEP:
            yield
    return len(topics) <= SUBSCRIBED_TOPICS_MAX
