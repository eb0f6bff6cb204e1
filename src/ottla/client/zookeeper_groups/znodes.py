"""Paths below `/consumers` and the data there, as Kafka 0.8 and 0.9 write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cached_property
from typing import Final, NamedTuple

from ottla.coordination.znode_json import (
    FAULTS,
    DamagedZnode,
    decode_object,
    encode_object,
    integer,
    require,
    text_of,
    words,
)

CONSUMERS: Final = "/consumers"
VERSION: Final = 1
#: What one member may have of threads for a topic: all members' are laid out in a list by every member.
THREADS_MAX: Final = 10_000
#: Expressions in a registration that are tried on every topic's name.
EXPRESSION_LENGTH_MAX: Final = 10_000
OFFSET_MAX: Final = 2**63 - 1
#: What a pattern does not match, unless that is asked for.
INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state"})


def group_path(group: str) -> str:
    return f"{CONSUMERS}/{group}"


def ids_path(group: str) -> str:
    return f"{CONSUMERS}/{group}/ids"


def member_path(group: str, consumer: str) -> str:
    return f"{ids_path(group)}/{consumer}"


def owners_path(group: str) -> str:
    return f"{CONSUMERS}/{group}/owners"


def owner_path(group: str, topic: str, partition: int) -> str:
    return f"{owners_path(group)}/{topic}/{partition}"


def offsets_path(group: str) -> str:
    return f"{CONSUMERS}/{group}/offsets"


def offset_path(group: str, topic: str, partition: int) -> str:
    return f"{offsets_path(group)}/{topic}/{partition}"


# /consumers/<group>/ids/<consumer>


class SubscriptionKind(Enum):
    """Kafka's words for it in the data."""

    STATIC = "static"
    WHITE_LIST = "white_list"
    BLACK_LIST = "black_list"


class Subscription:
    """Topics, each with a number of threads; or an expression that names those to read, or those not to."""

    def __init__(self, kind: SubscriptionKind, counts: Mapping[str, int]) -> None:
        self.kind = kind
        #: By topic, or by the one expression.
        self.counts = dict(counts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Subscription) and (self.kind, self.counts) == (other.kind, other.counts)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Subscription({self.kind.value}, {self.counts})"

    @property
    def is_pattern(self) -> bool:
        return self.kind is not SubscriptionKind.STATIC

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        """As 0.8 reads it: a comma is an "or", and blanks and quotes do not count."""
        (text,) = self.counts
        return re.compile(text.strip().replace(",", "|").replace(" ", "").strip("\"'"))

    def topics(self, known: Iterable[str], *, excludes_internal: bool) -> dict[str, int]:
        """Threads by topic; `known` are all topics that there are."""
        if not self.is_pattern:
            return self.counts
        (count,) = self.counts.values()
        wanted = self.kind is SubscriptionKind.WHITE_LIST
        return {
            topic: count
            for topic in known
            if (self._expression.fullmatch(topic) is not None) is wanted
            and not (excludes_internal and topic in INTERNAL_TOPICS)
        }

    def check(self) -> None:
        """Raises ValueError, also where an expression is none."""
        for name, count in self.counts.items():
            require(bool(name), "a topic has no name")
            require(1 <= count <= THREADS_MAX, f"{count} threads are not from 1 to {THREADS_MAX}")
        if self.is_pattern:
            require(len(self.counts) == 1, f"{len(self.counts)} expressions where one is due")
            require(len(next(iter(self.counts))) <= EXPRESSION_LENGTH_MAX, "its expression is too long")
            try:
                _ = self._expression
            except re.error as fault:
                raise ValueError(f"its expression cannot be read: {fault}") from fault


class MemberRegistration(NamedTuple):
    subscription: Subscription
    timestamp_ms: int


def encode_member(registration: MemberRegistration) -> bytes:
    subscription = registration.subscription
    return encode_object(
        {
            "version": VERSION,
            "subscription": subscription.counts,
            "pattern": subscription.kind.value,
            "timestamp": str(registration.timestamp_ms),
        }
    )


def decode_member(path: str, data: bytes) -> MemberRegistration:
    value = decode_object(path, data)
    try:
        counts = {text_of(name): integer(count) for name, count in value["subscription"].items()}
        # The first of 0.8 wrote no timestamp.
        registered_ms = int(value.get("timestamp", 0))
        subscription = Subscription(SubscriptionKind(value["pattern"]), counts)
        subscription.check()
    except FAULTS as fault:
        raise DamagedZnode(path, words(fault)) from fault
    return MemberRegistration(subscription, registered_ms)


# /consumers/<group>/owners/<topic>/<partition>


class ConsumerThread(NamedTuple):
    """Of a consumer: each of its threads takes its own share."""

    consumer: str
    number: int

    def __str__(self) -> str:
        return f"{self.consumer}-{self.number}"


def consumer_of_owner(data: bytes) -> str:
    """Who claims a partition: the thread's name without its number."""
    text = data.decode("utf-8", "backslashreplace")
    return text.rpartition("-")[0] or text


# /consumers/<group>/offsets/<topic>/<partition>


def encode_offset(offset: int) -> bytes:
    return b"%d" % offset


def decode_offset(path: str, data: bytes) -> int:
    text = data.decode("ascii", "replace").strip()
    if not text.isdecimal() or len(text) > len(str(OFFSET_MAX)) or int(text) > OFFSET_MAX:
        raise DamagedZnode(path, f"{data[:40]!r} is no offset")
    return int(text)
