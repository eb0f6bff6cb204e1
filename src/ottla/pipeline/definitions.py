"""What a file says: its tables, views and sinks, and the rules of each.

A decorator returns the function that it was given, so that decorators may stand in any order and a function can still
be called in a test. While a file is loaded they also enter it in the file's `Definitions`; elsewhere they only mark it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from ottla.durations import duration_ms
from ottla.model import topic_name_fault
from ottla.pipeline.errors import BadDefinition
from ottla.pipeline.expectations import Rule, rules_of

if TYPE_CHECKING:
    from ottla.pipeline.changes import Changes

#: What returns a frame.
Function = Callable[[], Any]
F = TypeVar("F", bound=Function)

#: Names become folders and parts of names of queries and groups.
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
#: Parquet files a table with keys is kept in: a micro-batch rewrites those that its keys fall into.
BUCKETS: Final = 8


class Kind(Enum):
    TABLE = "table"
    VIEW = "view"
    SINK = "sink"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One table, view or sink."""

    name: str
    kind: Kind
    function: Function
    #: Where it is defined, for messages.
    line: int
    comment: str = ""
    #: Rows of a table with keys replace those with the same; without keys rows are added.
    keys: tuple[str, ...] = ()
    #: What a backfill goes by.
    time: str | None = None
    #: How long rows are kept; None: for ever.
    retain_ms: int | None = None
    #: Whether dropped rows go to dead letters; None: where the frame still has their records.
    dead_letters: bool | None = None
    keep_record: bool = False
    #: Of a table: whether it has Delta's log beside its own.
    delta: bool = False
    #: Of a sink.
    topic: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    #: Of a table that takes changes in (SCD 1 and 2).
    changes: Changes | None = None

    @property
    def rules(self) -> tuple[Rule, ...]:
        return rules_of(self.function)

    @property
    def text(self) -> str:
        return f"{self.kind.value} {self.name} (line {self.line})"


class Definitions:
    """All of one file, in the order in which they stand there."""

    def __init__(self) -> None:
        self.flows: dict[str, Flow] = {}

    def add(self, flow: Flow) -> None:
        there = self.flows.get(flow.name)
        if there is not None:
            raise BadDefinition(
                f"there are two of the name {flow.name}: in line {there.line} and in line {flow.line}; rename one"
            )
        if _NAME.fullmatch(flow.name) is None:
            raise BadDefinition(
                f"line {flow.line}: {flow.name!r} cannot be the name of a {flow.kind.value}: "
                "give a letter, then up to 99 letters, digits and underscores"
            )
        self.flows[flow.name] = flow

    def flow(self, name: str, asked_by: str) -> Flow:
        """One that another reads. Raises BadDefinition with the nearest name."""
        found = self.flows.get(name)
        if found is None:
            near = get_close_matches(name, self.flows, n=1)
            hint = (
                f"did you mean {near[0]}?" if near else "define it with @table or @view, or read a topic by read_topic"
            )
            raise BadDefinition(f"{asked_by} reads {name!r}, which is not there: {hint}")
        if found.kind is Kind.SINK:
            raise BadDefinition(f"{asked_by} reads {name!r}, which is a sink: read the table that the sink reads")
        return found


_collecting: ContextVar[Definitions | None] = ContextVar("ottla_pipeline_definitions", default=None)


@contextmanager
def collecting() -> Iterator[Definitions]:
    """What is defined inside of the block."""
    found = Definitions()
    token = _collecting.set(found)
    try:
        yield found
    finally:
        _collecting.reset(token)


def enter(flow: Flow) -> None:
    """Into the file that is being loaded, if one is."""
    definitions = _collecting.get()
    if definitions is not None:
        definitions.add(flow)


@overload
def table(function: F, /) -> F: ...
@overload
def table(
    *,
    name: str | None = None,
    comment: str = "",
    keys: Sequence[str] = (),
    time: str | None = None,
    retain: str | None = None,
    dead_letters: bool | None = None,
    keep_record: bool = False,
    format: str = "parquet",
) -> Callable[[F], F]: ...
def table(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    comment: str = "",
    keys: Sequence[str] = (),
    time: str | None = None,
    retain: str | None = None,
    dead_letters: bool | None = None,
    keep_record: bool = False,
    format: str = "parquet",  # noqa: A002 - as Spark calls it
) -> F | Callable[[F], F]:
    """A table that holds what the function returns: a stream's rows each once, or a frame without a stream in whole.

    `keys`: rows replace those with the same keys. `time`: the column that a backfill goes by (`timestamp` or `window`
    where there is one). `retain`: how long rows stay (`30d`). `dead_letters`: whether dropped rows go to
    `<topic>-dlq` (where the frame still has the column `_record`, they do). `keep_record`: `_record` is stored too.
    `format="delta"`: whatever reads Delta Lake's tables reads this one.
    """

    def defined(made: F) -> F:
        line = _line(made)
        enter(
            Flow(
                name=name or made.__name__,
                kind=Kind.TABLE,
                function=made,
                line=line,
                comment=comment or _comment(made),
                keys=_keys(keys, line),
                time=time,
                retain_ms=_retain_ms(retain, line, keyed=bool(keys)),
                dead_letters=dead_letters,
                keep_record=keep_record,
                delta=_is_delta(format, line),
            )
        )
        return made

    return defined if function is None else defined(function)


@overload
def view(function: F, /) -> F: ...
@overload
def view(*, name: str | None = None, comment: str = "") -> Callable[[F], F]: ...
def view(function: F | None = None, /, *, name: str | None = None, comment: str = "") -> F | Callable[[F], F]:
    """A frame with a name that tables and sinks may read; it is not stored."""

    def defined(made: F) -> F:
        enter(
            Flow(
                name=name or made.__name__,
                kind=Kind.VIEW,
                function=made,
                line=_line(made),
                comment=comment or _comment(made),
            )
        )
        return made

    return defined if function is None else defined(function)


def sink(
    *, topic: str, name: str | None = None, comment: str = "", options: dict[str, str] | None = None
) -> Callable[[F], F]:
    """A topic that the function's rows go to; its columns are those of `format("ottla")`."""

    def defined(made: F) -> F:
        line = _line(made)
        fault = topic_name_fault(topic)
        if fault:
            raise BadDefinition(f"line {line}: @sink: no topic can have this name: {fault}")
        enter(
            Flow(
                name=name or made.__name__,
                kind=Kind.SINK,
                function=made,
                line=line,
                comment=comment or _comment(made),
                topic=topic,
                options=dict(options or {}),
            )
        )
        return made

    if not isinstance(topic, str):
        raise BadDefinition('@sink needs a topic: @sink(topic="order-totals")')
    return defined


def _line(function: Any) -> int:
    code = getattr(function, "__code__", None)
    if code is None:
        raise BadDefinition(f"@table, @view and @sink stand above functions, not above {function!r}")
    if code.co_argcount:
        raise BadDefinition(
            f"line {code.co_firstlineno}: {function.__name__} takes arguments: it must be a function without any"
        )
    return int(code.co_firstlineno)


def _comment(function: Any) -> str:
    return (function.__doc__ or "").strip().partition("\n")[0]


def _keys(keys: Sequence[str], line: int) -> tuple[str, ...]:
    if isinstance(keys, str):
        raise BadDefinition(f'line {line}: keys is a list: keys=["{keys}"]')
    return tuple(keys)


def _is_delta(name: str, line: int) -> bool:
    if name not in {"parquet", "delta"}:
        raise BadDefinition(f'line {line}: format is "parquet" or "delta", not {name!r}')
    return name == "delta"


def _retain_ms(retain: str | None, line: int, *, keyed: bool) -> int | None:
    if retain is None:
        return None
    if keyed:
        raise BadDefinition(f"line {line}: retain is for tables without keys: rows of this one are replaced, and stay")
    try:
        return duration_ms(retain)
    except ValueError as error:
        raise BadDefinition(f"line {line}: retain: {error}") from None
