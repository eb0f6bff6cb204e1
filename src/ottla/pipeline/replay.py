"""Dead letters sent again, to the topic that they came from: the same key, value and headers, and `ottla.replayed`.

Each once, whatever dies: before it sends anything, a replay notes where the dead letters begin and end, and where the
topic they go to ends. One that finds the note of another that did not come to its end first looks which of its records
are there: their header says which dead letter they were. A note of dead letters whose topic was deleted since says
nothing of those that are in a new one; nor does the place in a topic that was made again since say where to look. Dead
letters of one record of one table, which a crash has had written twice, count as one: also where a replay lies between
the two, so each replay reads all from the first on.
What another pipeline has dropped is left to that one's replay.

Records are sent as they are read, since dead letters are kept for ever; of all of them only a digest is remembered.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.client.records import ConsumerRecord
from ottla.client.sync import Admin, Consumer, Producer
from ottla.model import TopicPartition
from ottla.pipeline.dead_letters import ENDING, PREFIX, REPLAYED, dead_letter_topic
from ottla.pipeline.errors import NotFound
from ottla.pipeline.places import Places, read_json, write_json
from ottla.spark.source.offsets import id_text

#: Partitions by their numbers, as JSON has them.
Ends = dict[str, int]
_POLL_MS: Final = 500
#: Sent before the acknowledgements are awaited: so many, or of so many bytes, since they are in memory until then.
_AHEAD_MAX: Final = 10_000
_AHEAD_BYTES_MAX: Final = 16 * 1024 * 1024
#: Of a digest that tells records apart: of a thousand million no two are alike by chance.
_DIGEST_BYTES: Final = 16
#: Brokers take no longer request by default; how large a record may be is the topic's to say.
_REQUEST_BYTES_MAX: Final = 104_857_600
_PIPELINE: Final = f"{PREFIX}pipeline"
#: Headers that say which record of which table a dead letter is.
_ORIGIN: Final = ("topic", "partition", "offset", "time", "pipeline", "table")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Of one topic's dead letters: what there is to send, and what was sent."""

    topic: str
    found: int
    sent: int
    #: By the rules that they had broken.
    rules: dict[str, int]


def replay(topic: str, settings: Mapping[str, Any], places: Places, *, pipeline: str, dry_run: bool = False) -> Replay:
    """Sends what this pipeline has dropped and was not sent before; `dry_run` only counts. The caller holds the places.

    Raises NotFound.
    """
    letters = dead_letter_topic(topic)
    with Admin(settings) as admin:
        there = set(admin.list_topics())
        letters_id, topic_id = (
            id_text(admin.describe_topic(name).topic_id) if name in there else "" for name in (letters, topic)
        )
    for name in (letters, topic):
        if name not in there:
            why = "no record of it was ever bad" if name == letters else f"`ottla topic create {topic}` creates it"
            raise NotFound(f"the topic {name} is not there: {why}")
    note = read_json(places.replay(topic)) or {}
    if note.get("letters", letters_id) != letters_id:
        note = {}
    if note.get("topic", topic_id) != topic_id:
        note.pop("target", None)
    note = {"done": {}, **note, "letters": letters_id, "topic": topic_id}
    with Consumer(settings, auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        sent = _sent_before(consumer, topic, note)
        ends = _ends(consumer, letters)
        begun = {**note, "until": ends, "target": note.get("target") or _ends(consumer, topic)}
        if not dry_run:
            write_json(places.replay(topic), begun)
        rules: dict[str, int] = {}
        waits = _waiting(_own(_records(consumer, letters, {}, ends), pipeline), note["done"], sent, rules)
        with contextlib.closing(waits) as waiting:
            found = sum(1 for _ in waiting) if dry_run else _send(waiting, topic, settings)
    if dry_run:
        return Replay(topic=topic, found=found, sent=0, rules=rules)
    write_json(places.replay(topic), {"done": ends, "letters": letters_id, "topic": topic_id})
    return Replay(topic=topic, found=found, sent=found, rules=rules)


def topics_with_letters(settings: Mapping[str, Any]) -> list[str]:
    """Topics that have a topic of dead letters."""
    with Admin(settings) as admin:
        return sorted(name.removesuffix(ENDING) for name in admin.list_topics() if name.endswith(ENDING))


def _sent_before(consumer: Consumer, topic: str, note: dict[str, Any]) -> set[str]:
    """Dead letters that a replay has sent which did not come to its end."""
    target = note.get("target")
    if target is None:
        return set()
    records = _records(consumer, topic, target, _ends(consumer, topic))
    return {text for one in records if (text := _header(one, REPLAYED)) is not None}


def _own(letters: Iterable[ConsumerRecord], pipeline: str) -> Iterator[ConsumerRecord]:
    return (one for one in letters if _header(one, _PIPELINE) in {None, pipeline})


def _waiting(
    letters: Iterable[ConsumerRecord], done: Ends, sent: set[str], rules: dict[str, int]
) -> Generator[ConsumerRecord, None, None]:
    """Those that are not sent yet; `rules` has how many of them that went by have broken which."""
    for one in _distinct(letters):
        if one.offset >= done.get(str(one.partition), 0) and _place(one) not in sent:
            rule = _header(one, PREFIX + "rule") or "unknown"
            rules[rule] = rules.get(rule, 0) + 1
            yield one


def _send(records: Iterator[ConsumerRecord], topic: str, settings: Mapping[str, Any]) -> int:
    """How many there were."""
    total = 0
    with Producer({**settings, "max.request.size": str(_REQUEST_BYTES_MAX)}) as producer:
        for some in _parts(records):
            sent = [producer.send(topic, one.value, key=one.key, headers=_headers(one)) for one in some]
            producer.flush()
            for one in sent:
                one.result()
            total += len(sent)
    return total


def _parts(records: Iterator[ConsumerRecord]) -> Iterator[list[ConsumerRecord]]:
    """What is sent before the acknowledgements are awaited."""
    some: list[ConsumerRecord] = []
    total = 0
    for one in records:
        some.append(one)
        total += len(one.value or b"") + len(one.key or b"")
        if len(some) == _AHEAD_MAX or total >= _AHEAD_BYTES_MAX:
            yield some
            some, total = [], 0
    if some:
        yield some


def _headers(record: ConsumerRecord) -> list[tuple[str, bytes | None]]:
    """The record's: those of the dead letter stand behind them, and it may itself have been read from dead letters."""
    kept: list[tuple[str, bytes | None]] = []
    own: set[str] = set()
    for key, value in reversed(record.headers):
        if key == REPLAYED or (key.startswith(PREFIX) and key not in own):
            own.add(key)
        else:
            kept.insert(0, (key, value))
    return [*kept, (REPLAYED, _place(record).encode())]


def _place(record: ConsumerRecord) -> str:
    return f"{record.topic}-{record.partition}@{record.offset}"


def _distinct(records: Iterable[ConsumerRecord]) -> Iterator[ConsumerRecord]:
    """Each record that a table has dropped once: a topic that was made anew has others at the same offsets."""
    seen: set[bytes] = set()
    for one in records:
        text = json.dumps([_header(one, PREFIX + name) for name in _ORIGIN])
        digest = hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES)
        for part in (one.key, one.value):
            digest.update(b"-" if part is None else b"%d:" % len(part) + part)
        origin = digest.digest()
        if origin not in seen:
            seen.add(origin)
            yield one


def _header(record: ConsumerRecord, name: str) -> str | None:
    """The last of the name: a record that was read from dead letters has had some before."""
    for key, value in reversed(record.headers):
        if key == name and value is not None:
            return value.decode(errors="replace")
    return None


def _ends(consumer: Consumer, topic: str) -> Ends:
    return {str(tp.partition): end for tp, end in consumer.end_offsets(consumer.partitions_for(topic)).items()}


def _records(consumer: Consumer, topic: str, starts: Mapping[str, int], ends: Ends) -> Iterator[ConsumerRecord]:
    """From each partition's start, or its first offset, up to its end."""
    wanted = {TopicPartition(topic, int(number)): end for number, end in ends.items()}
    consumer.assign(list(wanted))
    first = consumer.beginning_offsets(list(wanted))
    for tp in wanted:
        consumer.seek(tp, max(first[tp], starts.get(str(tp.partition), 0)))
    try:
        while any(consumer.position(tp) < end for tp, end in wanted.items()):
            for one in consumer.poll(timeout_ms=_POLL_MS):
                if one.offset < wanted[TopicPartition(one.topic, one.partition)]:
                    yield one
    finally:
        consumer.assign([])
