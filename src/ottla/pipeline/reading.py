"""What a function reads: topics, and tables and views of its own pipeline. It says so by these calls while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from ottla.pipeline.errors import BadDefinition

#: Of a record as it came, for dead letters. Tables do not store it unless they are asked to.
RECORD = "_record"
#: Why a record could not be decoded; null where it could.
ERROR = "_error"


class Reads(Protocol):
    """What answers these calls: a run in one of its modes."""

    @property
    def keeps_bad_rows(self) -> bool:
        """Whether what cannot be decoded has a place to go to."""

    def topic(self, topics: Sequence[str], starting: str, options: dict[str, str]) -> Any: ...

    def stream(self, name: str) -> Any: ...

    def snapshot(self, name: str) -> Any: ...


_current: ContextVar[Reads | None] = ContextVar("ottla_pipeline_reads", default=None)


@contextmanager
def answering(reads: Reads) -> Iterator[None]:
    token = _current.set(reads)
    try:
        yield
    finally:
        _current.reset(token)


def read_topic(*topics: str, starting: str = "earliest", **options: Any) -> Any:
    """The records of topics: key, value, headers, topic, partition, offset, timestamp.

    `starting` says where the first run begins: `earliest`, `latest`, or offsets as JSON. `options` are more of
    `format("ottla")`, such as `maxOffsetsPerTrigger=10_000`.
    """
    if not topics or not all(isinstance(topic, str) and topic for topic in topics):
        raise BadDefinition('read_topic needs the names of topics: read_topic("orders")')
    given = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
    return _answering("read_topic").topic(topics, starting, given)


def read_stream(name: str) -> Any:
    """The rows of a table as they are added, or a view's frame."""
    return _answering("read_stream").stream(name)


def read(name: str) -> Any:
    """A table as it is when the flow starts, for joins: rows that come later are not in it."""
    return _answering("read").snapshot(name)


def deduplicate(frame: Any, keys: Sequence[str], *, time: str, within: str) -> Any:
    """Of rows with the same keys the first; one that is younger by more than `within`, by `time`, may be there again.

    The keys of that span are what a stream remembers.
    """
    if isinstance(keys, str):
        raise BadDefinition(f'deduplicate: keys is a list: ["{keys}"]')
    if not frame.isStreaming:  # a backfill sees all of the rows
        return frame.dropDuplicates(list(keys))
    return frame.withWatermark(time, within).dropDuplicatesWithinWatermark(list(keys))


def refuse_without_dead_letters(what: str) -> None:
    """For what marks bad records."""
    reads = _current.get()
    if reads is not None and not reads.keeps_bad_rows:
        raise BadDefinition(
            f"{what} marks bad records for the dead letters, which Spark Declarative Pipelines do not have: use "
            "Spark's own from_json and its like, or leave --engine out"
        )


def _answering(what: str) -> Reads:
    reads = _current.get()
    if reads is None:
        raise BadDefinition(f"{what} works inside of a function of a pipeline, when `ottla pipeline run` calls it")
    return reads
