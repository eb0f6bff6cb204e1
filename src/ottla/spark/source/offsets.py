"""Offsets as Spark keeps them: the Kafka source's JSON, `{"orders": {"0": 23, "1": -1}}`.

-2 stands for the first offset and -1 for the end. Ours may have topics' ids beside them, under a name that no topic can
have: `{"orders": {"0": 23}, "#topicIds": {"orders": "q1..."}}`. By them a topic that was deleted and made again is
told from the one that was there before. Spark compares offsets as texts, so all is written in one order.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ottla.client.arguments import INT32_MAX, INT64_MAX
from ottla.model import ZERO_TOPIC_ID, TopicPartition
from ottla.spark.options import OptionError

EARLIEST_OFFSET: Final = -2
LATEST_OFFSET: Final = -1
#: What begins so stands beside the offsets: no topic has a # in its name.
_BESIDE: Final = "#"
TOPIC_IDS: Final = f"{_BESIDE}topicIds"

_SHAPE: Final = '{"topic": {"0": 23, "1": -1}}'
_ID_BYTES: Final = 16


class Positions(NamedTuple):
    """An offset of each partition, and the ids of their topics where those are known."""

    offsets: dict[TopicPartition, int]
    ids: dict[str, bytes]

    def as_json(self) -> dict[str, Any]:
        """As Spark keeps it; partitions in the order of their numbers."""
        found: dict[str, Any] = {}
        for tp in sorted(self.offsets):
            found.setdefault(tp.topic, {})[str(tp.partition)] = self.offsets[tp]
        named = {topic: self.ids[topic] for topic in sorted(self.ids) if topic in found}
        known = {topic: id_text(one) for topic, one in named.items() if one != ZERO_TOPIC_ID}
        return {**found, TOPIC_IDS: known} if known else found

    def same_topic(self, topic: str, topic_id: bytes) -> bool:
        """Whether this is the topic that the positions are of; an id that is not known is no other."""
        known = self.ids.get(topic, ZERO_TOPIC_ID)
        return ZERO_TOPIC_ID in {known, topic_id} or known == topic_id


def id_text(topic_id: bytes) -> str:
    """As Kafka's tools write ids."""
    return b64encode(topic_id, altchars=b"-_").rstrip(b"=").decode()


def positions_of(given: Mapping[str, Any] | str, option: str, *, least: int = EARLIEST_OFFSET) -> Positions:
    """Offsets out of JSON, as a text or already read; -2 and -1 are left as they are."""
    numbers, ids = _by_partition(given, option)
    for tp, number in numbers.items():
        if not least <= number <= INT64_MAX:
            raise OptionError(f"{option}: {number} is no offset of {tp}")
    return Positions(numbers, ids)


def times_of(text: str, option: str) -> dict[TopicPartition, int]:
    """Times in ms out of the same shape."""
    numbers, _ = _by_partition(text, option)
    for tp, number in numbers.items():
        if not 0 <= number <= INT64_MAX:
            raise OptionError(f"{option}: {number} is no time of {tp}, in ms since 1970")
    return numbers


def assigned_of(text: str, option: str) -> list[TopicPartition]:
    """`{"orders": [0, 1]}`: partitions to read."""
    shape = '{"topic": [0, 1]}'
    given = _json(text, option, shape)
    found: list[TopicPartition] = []
    for topic, numbers in given.items():
        if not isinstance(numbers, list):
            raise OptionError(f"{option} must be JSON like {shape}: {topic} has no list")
        found += [TopicPartition(topic, _partition(number, option, topic)) for number in numbers]
    if not found:
        raise OptionError(f"{option} names no partition")
    return sorted(set(found))


def _by_partition(given: Mapping[str, Any] | str, option: str) -> tuple[dict[TopicPartition, int], dict[str, bytes]]:
    whole = _json(given, option, _SHAPE) if isinstance(given, str) else given
    if not isinstance(whole, Mapping):
        raise OptionError(f"{option} must be JSON like {_SHAPE}, not {given!r}")
    numbers: dict[TopicPartition, int] = {}
    ids: dict[str, bytes] = {}
    for topic, inner in whole.items():
        if not isinstance(inner, Mapping):
            raise OptionError(f"{option} must be JSON like {_SHAPE}: {topic} has no partitions")
        if topic.startswith(_BESIDE):
            if topic == TOPIC_IDS:
                ids = {name: _id(text, option, name) for name, text in inner.items()}
            continue
        for name, number in inner.items():
            if isinstance(number, bool) or not isinstance(number, int):
                raise OptionError(f"{option}: {topic}-{name} must be a whole number, not {number!r}")
            numbers[TopicPartition(topic, _partition(name, option, topic))] = number
    return numbers, ids


def _json(text: str, option: str, shape: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise OptionError(f"{option} must be JSON like {shape}: {error}") from None
    if not isinstance(found, dict):
        raise OptionError(f"{option} must be JSON like {shape}, not {text!r}")
    return found


def _partition(given: Any, option: str, topic: str) -> int:
    text = str(given)
    if isinstance(given, bool) or not text.isdecimal() or int(text) > INT32_MAX:
        raise OptionError(f"{option}: {given!r} is no partition of {topic}")
    return int(text)


def _id(given: Any, option: str, topic: str) -> bytes:
    try:
        found = b64decode(f"{given}==", altchars=b"-_", validate=True)
    except (Base64Error, ValueError):
        found = b""
    if len(found) != _ID_BYTES:
        raise OptionError(f"{option}: {given!r} is no id of topic {topic}")
    return found
