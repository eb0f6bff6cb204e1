"""What is to be read, out of the options: names, defaults and precedence are those of Spark's Kafka source.

    what      subscribe | subscribePattern | assign
    from      startingTimestamp, or startingOffsetsByTimestamp, or startingOffsets (a batch: earliest, a stream: latest)
    to        a batch: endingTimestamp, or endingOffsetsByTimestamp, or endingOffsets (latest)

`startingOffsets=group`, `columns`, `maxBytesPerTrigger` and `ottla.pushdown` are Ottla's own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.arrow.errors import BadColumns
from ottla.arrow.schema import DEFAULT_COLUMNS, HEADERS, KEY, VALUE, checked_columns
from ottla.client.settings import ConsumerSettings
from ottla.durations import duration_ms
from ottla.model import TopicPartition
from ottla.spark.options import (
    OptionError,
    client_settings,
    folded,
    parsed_client_settings,
    refuse_unknown,
    whole_number,
    yes_or_no,
)
from ottla.spark.source.offsets import (
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    Positions,
    assigned_of,
    positions_of,
    times_of,
)

if TYPE_CHECKING:
    from ottla.formats import Decoder

SUBSCRIBE: Final = "subscribe"
SUBSCRIBE_PATTERN: Final = "subscribePattern"
ASSIGN: Final = "assign"
_STRATEGIES: Final = (ASSIGN, SUBSCRIBE, SUBSCRIBE_PATTERN)

STARTING_OFFSETS: Final = "startingOffsets"
ENDING_OFFSETS: Final = "endingOffsets"
_BY_TIMESTAMP: Final = "startingOffsetsByTimestamp"
_TIMESTAMP: Final = "startingTimestamp"
_TIME_STRATEGY: Final = "startingOffsetsByTimestampStrategy"
_ENDING_BY_TIMESTAMP: Final = "endingOffsetsByTimestamp"
_ENDING_TIMESTAMP: Final = "endingTimestamp"
COLUMNS_OPTION: Final = "columns"
INCLUDE_HEADERS: Final = "includeHeaders"
FAIL_ON_DATA_LOSS: Final = "failOnDataLoss"
MAX_OFFSETS: Final = "maxOffsetsPerTrigger"
MIN_OFFSETS: Final = "minOffsetsPerTrigger"
MAX_BYTES: Final = "maxBytesPerTrigger"
MAX_DELAY: Final = "maxTriggerDelay"
MIN_PARTITIONS: Final = "minPartitions"
MAX_RECORDS: Final = "maxRecordsPerPartition"
POLL_TIMEOUT: Final = "kafkaConsumer.pollTimeoutMs"
GROUP_PREFIX: Final = "groupIdPrefix"
PUSHDOWN: Final = "ottla.pushdown"
DIRECT: Final = "ottla.direct"
DIRECT_DIRS: Final = "ottla.direct.dirs"
KEY_AS: Final = "key_as"
VALUE_AS: Final = "value_as"
DECODE_MODE: Final = "decode_mode"
REGISTRY: Final = "schema.registry.url"
#: Settings of formats, by the names that their room gives them.
FORMAT_SETTINGS: Final = (
    *(REGISTRY, "basic.auth.user.info", "http.connect.timeout.ms", "http.read.timeout.ms"),
    *("framing", "rescue.column"),
)

#: Settings of the Kafka source that stand for nothing here: the client tries again within its own time-outs.
_PASSED_OVER: Final = ("fetchOffset.numRetries", "fetchOffset.retryIntervalMs")
_KNOWN: Final = (
    *_STRATEGIES,
    *(STARTING_OFFSETS, ENDING_OFFSETS, _BY_TIMESTAMP, _TIMESTAMP, _TIME_STRATEGY),
    *(_ENDING_BY_TIMESTAMP, _ENDING_TIMESTAMP, COLUMNS_OPTION, INCLUDE_HEADERS, FAIL_ON_DATA_LOSS),
    *(MAX_OFFSETS, MIN_OFFSETS, MAX_BYTES, MAX_DELAY, MIN_PARTITIONS, MAX_RECORDS),
    *(POLL_TIMEOUT, GROUP_PREFIX, PUSHDOWN, DIRECT, DIRECT_DIRS, *_PASSED_OVER),
    *(KEY_AS, VALUE_AS, DECODE_MODE, *FORMAT_SETTINGS),
)

#: Spark's own default for it is `spark.network.timeout`, which is this.
_POLL_TIMEOUT_MS: Final = 120_000
_MAX_DELAY_MS: Final = 15 * 60_000
#: As Spark writes them.
_MINUTES: Final = re.compile(r"(?<=\d)min(?![a-z])")
#: Tasks of one job: more than any cluster starts at once, and few enough to plan in a second.
SPLITS_MAX: Final = 1_000_000


class Subscription(NamedTuple):
    """What is to be read: one of the three is filled."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    @property
    def text(self) -> str:
        """As a person would say it."""
        if self.pattern is not None:
            return f"topics that match {self.pattern}"
        return ", ".join(self.topics) if self.topics else ", ".join(str(tp) for tp in self.partitions)


class Bound(NamedTuple):
    """Where reading begins or ends. One of the fields beside `option` is filled."""

    #: What the user wrote it in, for messages.
    option: str
    #: EARLIEST_OFFSET or LATEST_OFFSET.
    everywhere: int | None = None
    group: bool = False
    positions: Positions | None = None
    time_ms: int | None = None
    times_ms: dict[TopicPartition, int] | None = None
    #: Where no record is as young as a time: at the end, or an error.
    latest_if_none: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """Of one read. It goes to the workers as it is."""

    #: As the client takes them, under Kafka's names.
    client: dict[str, str]
    subscription: Subscription
    starting: Bound
    ending: Bound
    columns: tuple[str, ...]
    fail_on_data_loss: bool
    #: A task that got no record for so long gives up.
    poll_timeout_ms: int
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets: int | None
    min_offsets: int | None
    max_bytes: int | None
    max_delay_ms: int
    #: Where progress is committed; None: nowhere.
    group: str | None
    pushdown: bool
    #: Segment files are read where a task sees them, in these directories; none: the leader's own.
    direct: bool
    direct_dirs: tuple[str, ...]
    #: Of columns that tasks decode.
    decoders: dict[str, Decoder]
    #: Whether a record that cannot be decoded fails the query; otherwise it is a null.
    fail_fast: bool

    def consumer(self) -> ConsumerSettings:
        return parsed_client_settings(ConsumerSettings, self.client)


def source_settings(given: Mapping[str, Any], *, stream: bool) -> SourceSettings:
    """Everything checked; raises OptionError, which names the option."""
    options = folded(given)
    options.pop("path", None)  # Spark adds it where `load` is given one
    refuse_unknown(options, _KNOWN)
    client = client_settings(options)
    subscription = _subscription(options)
    prefix = options.get(GROUP_PREFIX.lower())
    group = client.get("group.id") or (None if prefix is None else _group_of(prefix, subscription))
    settings = SourceSettings(
        client=client,
        subscription=subscription,
        starting=_starting(options, stream=stream),
        ending=_ending(options, stream=stream),
        columns=columns_of(options),
        fail_on_data_loss=yes_or_no(options, FAIL_ON_DATA_LOSS, True),
        poll_timeout_ms=whole_number(options, POLL_TIMEOUT) or _POLL_TIMEOUT_MS,
        min_partitions=whole_number(options, MIN_PARTITIONS, most=SPLITS_MAX),
        max_records_per_partition=whole_number(options, MAX_RECORDS),
        max_offsets=whole_number(options, MAX_OFFSETS),
        min_offsets=whole_number(options, MIN_OFFSETS),
        max_bytes=whole_number(options, MAX_BYTES),
        max_delay_ms=_delay_ms(options),
        group=group,
        pushdown=yes_or_no(options, PUSHDOWN, False),
        direct=yes_or_no(options, DIRECT, False),
        direct_dirs=_directories(options),
        decoders=_decoders(options, subscription),
        fail_fast=_fails_fast(options),
    )
    _check_together(settings)
    settings.consumer()
    return settings


def _check_together(settings: SourceSettings) -> None:
    if settings.starting.group and settings.group is None:
        raise OptionError(f"{STARTING_OFFSETS}=group needs kafka.group.id: where that group stands reading begins")
    low, high = settings.min_offsets, settings.max_offsets
    if low is not None and high is not None and low > high:
        raise OptionError(f"{MIN_OFFSETS} ({low}) must not be over {MAX_OFFSETS} ({high})")
    if settings.max_bytes is not None and high is not None:
        raise OptionError(f"{MAX_BYTES} and {MAX_OFFSETS} exclude each other: give one of them")


def _subscription(options: Mapping[str, str]) -> Subscription:
    given = [name for name in _STRATEGIES if name.lower() in options]
    if len(given) != 1:
        said = f"only one of them, not {' and '.join(given)}" if given else "one of them"
        raise OptionError(f"{SUBSCRIBE}, {SUBSCRIBE_PATTERN} and {ASSIGN} say what to read: give {said}")
    text = options[given[0].lower()].strip()
    if given[0] == ASSIGN:
        return Subscription(partitions=tuple(assigned_of(text, ASSIGN)))
    if given[0] == SUBSCRIBE:
        names = dict.fromkeys(name.strip() for name in text.split(",") if name.strip())
        if not names:
            raise OptionError(f"{SUBSCRIBE} names no topic")
        return Subscription(topics=tuple(names))
    if not text:
        raise OptionError(f"{SUBSCRIBE_PATTERN} is empty")
    try:
        re.compile(text)
    except re.error as error:
        raise OptionError(f"{SUBSCRIBE_PATTERN}: {text!r} is no regular expression: {error}") from None
    return Subscription(pattern=text)


def _starting(options: Mapping[str, str], *, stream: bool) -> Bound:
    strategy = options.get(_TIME_STRATEGY.lower(), "error").strip().lower()
    if strategy not in {"error", "latest"}:
        raise OptionError(f"{_TIME_STRATEGY} must be error or latest, not {strategy!r}")
    latest = strategy == "latest"
    timed = _timed(options, _TIMESTAMP, _BY_TIMESTAMP)
    if timed is not None:
        return timed._replace(latest_if_none=latest)
    text = options.get(STARTING_OFFSETS.lower(), "latest" if stream else "earliest").strip()
    word = text.lower()
    if word == "group":
        return Bound(STARTING_OFFSETS, group=True)
    if word == "earliest" or (word == "latest" and stream):
        return Bound(STARTING_OFFSETS, everywhere=EARLIEST_OFFSET if word == "earliest" else LATEST_OFFSET)
    if word == "latest":
        raise OptionError(f"{STARTING_OFFSETS}: a batch that begins at latest reads nothing; give earliest or offsets")
    positions = positions_of(text, STARTING_OFFSETS)
    if not stream and LATEST_OFFSET in positions.offsets.values():
        raise OptionError(f"{STARTING_OFFSETS}: a batch cannot begin at latest (-1)")
    return Bound(STARTING_OFFSETS, positions=positions)


def _ending(options: Mapping[str, str], *, stream: bool) -> Bound:
    if stream:
        for name in (ENDING_OFFSETS, _ENDING_BY_TIMESTAMP, _ENDING_TIMESTAMP):
            if name.lower() in options:
                raise OptionError(f"{name} is for batches: a stream ends when it is stopped, or by its trigger")
        return Bound(ENDING_OFFSETS, everywhere=LATEST_OFFSET)
    timed = _timed(options, _ENDING_TIMESTAMP, _ENDING_BY_TIMESTAMP)
    if timed is not None:
        return timed
    text = options.get(ENDING_OFFSETS.lower(), "latest").strip()
    if text.lower() == "latest":
        return Bound(ENDING_OFFSETS, everywhere=LATEST_OFFSET)
    if text.lower() == "earliest":
        raise OptionError(f"{ENDING_OFFSETS}: a batch cannot end at earliest")
    positions = positions_of(text, ENDING_OFFSETS)
    if EARLIEST_OFFSET in positions.offsets.values():
        raise OptionError(f"{ENDING_OFFSETS}: a batch cannot end at earliest (-2)")
    return Bound(ENDING_OFFSETS, positions=positions)


def _timed(options: Mapping[str, str], name: str, by_partition: str) -> Bound | None:
    time_ms = whole_number(options, name, least=0)
    if time_ms is not None:
        return Bound(name, time_ms=time_ms)
    text = options.get(by_partition.lower())
    return None if text is None else Bound(by_partition, times_ms=times_of(text, by_partition))


def columns_of(given: Mapping[str, Any]) -> tuple[str, ...]:
    """`columns`, or all; headers where `includeHeaders` asks for them."""
    options = folded(given)
    headers = yes_or_no(options, INCLUDE_HEADERS, False)
    text = options.get(COLUMNS_OPTION)
    if text is None:
        return (*DEFAULT_COLUMNS, HEADERS) if headers else DEFAULT_COLUMNS
    try:
        return chosen_columns(name.strip() for name in text.split(","))
    except BadColumns as error:
        raise OptionError(f"{COLUMNS_OPTION}: {error}") from None


def decoders_of(given: Mapping[str, Any]) -> dict[str, Decoder]:
    """Of the columns `key` and `value`, as far as they are to be decoded."""
    options = folded(given)
    return _decoders(options, _subscription(options)) if options.keys() & {KEY_AS, VALUE_AS} else {}


def _decoders(options: Mapping[str, str], subscription: Subscription) -> dict[str, Decoder]:
    specs = {column: options[name] for column, name in ((KEY, KEY_AS), (VALUE, VALUE_AS)) if name in options}
    beside: dict[str, Any] = {name: options[name] for name in FORMAT_SETTINGS if name in options}
    if not specs:
        if beside:
            raise OptionError(f"{', '.join(sorted(beside))} is for {KEY_AS} or {VALUE_AS}: set one of them")
        return {}
    from ottla.formats import decoder
    from ottla.formats.errors import FormatError

    if len(subscription.topics) == 1:
        beside["topic"] = subscription.topics[0]  # a registry names schemas after it
    found = {}
    for column, spec in specs.items():
        try:
            found[column] = made = decoder(spec.strip(), is_key=column == KEY, **beside)
            _ = made.arrow_type  # a registry may be asked for it, and be away
        except FormatError as error:
            raise OptionError(f"{column}_as: {error}") from error
    return found


def _fails_fast(options: Mapping[str, str]) -> bool:
    mode = options.get(DECODE_MODE, "PERMISSIVE").strip().upper()
    if mode not in {"PERMISSIVE", "FAILFAST"}:
        raise OptionError(f"{DECODE_MODE} must be PERMISSIVE or FAILFAST, not {mode!r}")
    return mode == "FAILFAST"


def chosen_columns(names: Iterable[str]) -> tuple[str, ...]:
    return checked_columns(list(names))


def _delay_ms(options: Mapping[str, str]) -> int:
    text = options.get(MAX_DELAY.lower())
    if text is None:
        return _MAX_DELAY_MS
    word = text.strip().lower()
    try:
        return int(word) if word.isdecimal() else duration_ms(_MINUTES.sub("m", word))
    except ValueError as error:
        raise OptionError(f"{MAX_DELAY}: {error}") from None


def _directories(options: Mapping[str, str]) -> tuple[str, ...]:
    text = options.get(DIRECT_DIRS.lower())
    if text is None:
        return ()
    if not yes_or_no(options, DIRECT, False):
        raise OptionError(f"{DIRECT_DIRS} says which log directories are read: set {DIRECT}=true with it")
    found = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in found:
        if not os.path.isabs(name):
            raise OptionError(f"{DIRECT_DIRS}: {name} must begin at the root: tasks have working folders of their own")
    if not found:
        raise OptionError(f"{DIRECT_DIRS} names no directory")
    return found


def _group_of(prefix: str, subscription: Subscription) -> str:
    """A name that stays the same over a query's restarts, so that the group's lag means something."""
    return f"{prefix}-{sha256(repr(subscription).encode()).hexdigest()[:8]}"
