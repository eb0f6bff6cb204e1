"""Where rows go to and how: the sink's options, checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from ottla.client.errors import SettingsError
from ottla.client.producing.producer import Producer
from ottla.client.settings import ClientSettings
from ottla.model import topic_name_fault
from ottla.spark.options import CLIENT_PREFIX, OptionError, client_settings, folded, refuse_unknown, yes_or_no

TOPIC: Final = "topic"
QUERY: Final = "ottla.query"
EXACTLY_ONCE: Final = "ottla.exactlyOnce"

#: An Arrow batch of Spark's has 10,000 rows and more, so a batch of Kafka's may have many too: it costs a third less.
_BATCH_BYTES: Final = "131072"
#: The name becomes a part of transactional ids, which have a slash between their parts, and of the ledger's keys.
QUERY_NAME_CHARACTERS_MAX: Final = 249


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkTarget:
    """Plain texts, since it is pickled for each task."""

    #: Of all rows; None where each row names its own.
    topic: str | None
    #: Of the producer, by Kafka's names.
    settings: dict[str, str]
    #: Under which name the ledger has the query; None where there is no ledger.
    query: str | None
    #: Each task in a transaction of its own, which the driver commits.
    exactly_once: bool = False

    @property
    def client_settings(self) -> dict[str, str]:
        """Those that every client has."""
        common = {one.name.replace("_", ".") for one in fields(ClientSettings)}
        return {name: value for name, value in self.settings.items() if name in common}


def checked_target(options: Mapping[str, str], *, streaming: bool) -> SinkTarget:
    """Raises OptionError. What is Spark's own or the source's is passed over, as the sink for Kafka does."""
    given = folded(options)
    refuse_unknown({name: "" for name in given if name.startswith("ottla.")}, (QUERY, EXACTLY_ONCE))
    exactly_once = yes_or_no(given, EXACTLY_ONCE, default=False)
    query = given.get(QUERY)
    if exactly_once and not streaming:
        raise OptionError(f"{EXACTLY_ONCE} is for streams (writeStream): nothing else has batches that are replayed")
    if exactly_once and query is None:
        raise OptionError(f"{EXACTLY_ONCE} needs {QUERY}: the name under which micro-batches are remembered")
    if query is not None:
        _check_query(query, streaming=streaming)
    topic = given.get(TOPIC)
    if topic is not None:
        fault = topic_name_fault(topic)
        if fault:
            raise OptionError(f"{TOPIC}: no topic can have this name: {fault}")
    settings = _producer_settings(given, with_ledger=query is not None, exactly_once=exactly_once)
    return SinkTarget(topic=topic, settings=settings, query=query, exactly_once=exactly_once)


def _check_query(query: str, *, streaming: bool) -> None:
    if not streaming:
        raise OptionError(f"{QUERY} is for streams (writeStream): nothing else has batches that are replayed")
    if not query.strip() or len(query) > QUERY_NAME_CHARACTERS_MAX or not query.isprintable() or "/" in query:
        raise OptionError(
            f"{QUERY} must be a name of 1 to {QUERY_NAME_CHARACTERS_MAX} printable characters without a slash, "
            f"not {query[:300]!r}"
        )


def _producer_settings(given: Mapping[str, str], *, with_ledger: bool, exactly_once: bool) -> dict[str, str]:
    for what in "key", "value":
        if f"{CLIENT_PREFIX}{what}.serializer" in given:
            raise OptionError(
                f"Kafka option '{what}.serializer' is not supported as {what}s are serialized with ByteArraySerializer."
            )
    settings = client_settings(given)
    settings.setdefault("batch.size", _BATCH_BYTES)
    if "transactional.id" in settings:
        raise OptionError(
            f"{CLIENT_PREFIX}transactional.id cannot be set: with {EXACTLY_ONCE} tasks have ids of their own, "
            f"after {QUERY}"
        )
    if exactly_once and settings.get("enable.idempotence", "true").strip().lower() != "true":
        raise OptionError(f"{EXACTLY_ONCE} needs {CLIENT_PREFIX}enable.idempotence: leave it out")
    try:
        checked = Producer(settings).settings
    except SettingsError as error:
        raise OptionError(f"an option that begins with {CLIENT_PREFIX}: {error}") from error
    if checked.partitioner != "murmur2" or checked.partitioner_ignore_keys:
        raise OptionError(
            f"{CLIENT_PREFIX}partitioner: rows go where murmur2 of their keys or the column partition says"
        )
    if with_ledger and checked.acks != -1:
        raise OptionError(f"{QUERY} needs {CLIENT_PREFIX}acks=all: a batch is finished when no broker can lose it")
    return settings
