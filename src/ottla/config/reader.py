"""Reads one set of properties through the table of definitions, and remembers what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar, cast

from ottla.config.definitions import broker_definitions, nearest
from ottla.config.values import Definition, Value, parse

S = TypeVar("S")

LISTENER_PREFIX: Final = "listener.name."
#: What follows is passed on to a plug-in; nobody here knows the names.
PLUGIN_PREFIXES: Final = ("rlmm.config.", "rsm.config.", "config.providers.", "metrics.jmx.", "kafka.metrics.")
#: A misspelt file should not fill the log.
WARNINGS_MAX: Final = 100

#: An operator who sets these wants to keep somebody out: without effect they are no mere remark.
_PROTECTING: Final = ("authorizer.", "ssl.", "sasl.", "security.", "super.users", "password.", "delegation.token.")
#: As Kafka 4 has it; smaller ones, which Kafka 3.9 takes, are taken and warned of.
SEGMENT_BYTES_SENSIBLE: Final = 1 << 20
_SEGMENT_BYTES: Final = "log.segment.bytes"

_WITHOUT_EFFECT: Final = {
    "unused": "is known to Kafka but has no effect here",
    "later": "is known but has no effect yet",
}


class PropertyReader:
    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._definitions = broker_definitions()
        #: Names of everything that was read: these, and no others, have an effect.
        self.read: set[str] = set()

    def is_set(self, name: str) -> bool:
        return name in self._properties

    def text_of(self, name: str) -> str:
        """The raw text, for a message."""
        return self._properties.get(name, self._definitions[name].default or "")

    def value(self, name: str) -> Value | None:
        self.read.add(name)
        definition = self._definitions[name]
        text = self._properties.get(name, definition.default)
        return None if text is None else parse(definition, text)

    def integer(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int), name
        return value

    def checked_integer(self, name: str) -> int:
        """A number that is only checked against others, and has no effect for that."""
        value = parse(self._definitions[name], self.text_of(name))
        assert isinstance(value, int), name
        return value

    def integer_or_none(self, name: str) -> int | None:
        value = self.value(name)
        assert value is None or isinstance(value, int), name
        return value

    def real(self, name: str) -> float:
        value = self.value(name)
        assert isinstance(value, float), name
        return value

    def boolean(self, name: str) -> bool:
        value = self.value(name)
        assert isinstance(value, bool), name
        return value

    def text(self, name: str) -> str:
        value = self.value(name)
        assert isinstance(value, str), name
        return value

    def text_or_none(self, name: str) -> str | None:
        value = self.value(name)
        assert value is None or isinstance(value, str), name
        return value

    def strings(self, name: str) -> list[str]:
        return self.strings_or_none(name) or []

    def strings_or_none(self, name: str) -> list[str] | None:
        value = self.value(name)
        assert value is None or isinstance(value, list), name
        return value

    def slice(self, kind: type[S], **computed: object) -> S:
        """A slice of the configuration: what is computed, and of all other fields the properties that they name."""
        values = {
            field: self.value(annotation.__metadata__[0])
            for field, annotation in kind.__annotations__.items()
            if field not in computed
        }
        return cast("Callable[..., S]", kind)(**values, **computed)

    def first(self, *names: tuple[str, int]) -> int:
        """The first of several names for one thing that is set, in the unit of the first; the last has a default."""
        values = [(self.integer_or_none(name), unit) for name, unit in names]
        number, unit = next((value, unit) for value, unit in values if value is not None)
        return number * unit if number >= 0 else number

    def listener_integer(self, listener: str, name: str) -> int | None:
        """A limit of one listener: `listener.name.<listener in lower case>.<name>`."""
        text = self._properties.get(f"{LISTENER_PREFIX}{listener.lower()}.{name}")
        if text is None:
            return None
        value = parse(self._definitions[name], text)
        assert isinstance(value, int)
        return value

    def check_rest(self) -> None:
        """A bad value stops the start even where nothing reads it: it would in Kafka."""
        for name, text in self._properties.items():
            definition = self._definition(name)
            if definition is not None and name not in self.read:
                parse(definition, text)

    def without_effect(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of these names that Kafka knows and that do nothing here: all of them are one remark."""
        return tuple(name for name in sorted(names) if self._is_idle(name) and not _protects(name))

    def _is_idle(self, name: str) -> bool:
        definition = self._definition(name)
        return definition is not None and not definition.has_effect

    def warnings(self, names: Iterable[str]) -> Iterator[str]:
        """One line for each of these names that is unknown, or protects nothing here."""
        count = 0
        for name in sorted(names):
            line = self._warning(name)
            if line is None:
                continue
            count += 1
            if count > WARNINGS_MAX:
                yield "more unknown properties are not listed"
                return
            yield line

    def _warning(self, name: str) -> str | None:
        definition = self._definition(name)
        if definition is not None:
            if not definition.has_effect and _protects(name):
                return f"{name} {_WITHOUT_EFFECT[definition.status]}"
            if name == _SEGMENT_BYTES and self.integer(name) < SEGMENT_BYTES_SENSIBLE:
                return small_segments(name, self.integer(name))
            return None
        if name.startswith(PLUGIN_PREFIXES):
            return f"{name} is meant for a plug-in and has no effect here"
        near = nearest(name, "broker")
        return f"{name} is not a known property" + ("" if near is None else f"; did you mean {near}?")

    def _definition(self, name: str) -> Definition | None:
        """The definition of a name, also of one with a listener's (and a SASL mechanism's) prefix."""
        definition = self._definitions.get(name)
        if definition is not None or not name.startswith(LISTENER_PREFIX):
            return definition
        _, _, suffix = name.removeprefix(LISTENER_PREFIX).partition(".")
        if suffix not in self._definitions:
            _, _, suffix = suffix.partition(".")
        return self._definitions.get(suffix)


def _protects(name: str) -> bool:
    if name.startswith(LISTENER_PREFIX):
        name = name.removeprefix(LISTENER_PREFIX).partition(".")[2]
    return name.startswith(_PROTECTING)


def small_segments(name: str, size: int) -> str:
    return (
        f"{name} is {size}: segments below {SEGMENT_BYTES_SENSIBLE} bytes, which Kafka 4 refuses, cost files and memory"
    )
