"""What DescribeConfigs answers: every property with its value, where the value comes from, and what else it could be.

A topic's `segment.bytes` falls back on the broker's `log.segment.bytes`, and that on what is set for all brokers, in
the file, or by default: those are its synonyms, in the order in which they hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.config.broker import Config
from ottla.config.definitions import broker_definitions, listed_when_set, topic_definitions
from ottla.config.dynamic import is_dynamic
from ottla.config.errors import ConfigError
from ottla.config.log import LogConfig
from ottla.config.topic import FIELDS, SYNONYMS, effective_log_config
from ottla.config.values import TYPE_CODES, Definition, Value, parse


class Source(IntEnum):
    """Where a value comes from, with the numbers on the wire."""

    UNKNOWN = 0
    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: Source


class ConfigEntry(NamedTuple):
    name: str
    #: None where there is no value, and always for a password.
    value: str | None
    source: Source
    is_sensitive: bool
    is_read_only: bool
    #: All values that hold or would hold, the one in force first.
    synonyms: tuple[Synonym, ...]
    #: The number of the type on the wire; 0 where it is not known.
    type: int
    documentation: str | None


#: Names for one thing in several units, the strongest first.
_UNITS: Final = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
)


def describe_topic(
    overrides: Mapping[str, str], config: Config, names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """The properties of a topic: all of them, or the known ones among `names`."""
    effective = effective_log_config(_readable(overrides), config.log)
    entries = []
    for name, definition in topic_definitions().items():
        if definition.is_internal or (names is not None and name not in names):
            continue
        synonyms = tuple(_topic_synonyms(definition, overrides, config))
        entries.append(
            ConfigEntry(
                name=name,
                value=_topic_value(definition, effective, synonyms),
                source=synonyms[0].source if synonyms else Source.DEFAULT,
                is_sensitive=definition.is_sensitive,
                is_read_only=False,
                synonyms=synonyms,
                type=TYPE_CODES[definition.type],
                documentation=definition.documentation,
            )
        )
    return entries


def _readable(overrides: Mapping[str, str]) -> dict[str, str]:
    """Without values that are not good, however they got there: describing a topic must still work, to repair it."""
    known = topic_definitions()
    readable = {}
    for name, text in overrides.items():
        try:
            parse(known[name], text)
        except (ConfigError, KeyError):
            continue
        readable[name] = text
    return readable


def _topic_synonyms(definition: Definition, overrides: Mapping[str, str], config: Config) -> Iterator[Synonym]:
    own = overrides.get(definition.name)
    if own is not None:
        yield Synonym(definition.name, own, Source.DYNAMIC_TOPIC)
    yield from _layers(SYNONYMS.get(definition.name, ()), config)


def _topic_value(definition: Definition, effective: LogConfig, synonyms: tuple[Synonym, ...]) -> str | None:
    field = FIELDS.get(definition.name)
    if field is not None and definition.type != "LIST" and definition.name != "segment.bytes":
        return value_text(definition, getattr(effective, field))
    # Lists keep the order in which they were written; tiered storage's properties have no field here; and
    # segment.bytes may be covered by an internal property that is not shown.
    text = synonyms[0].value if synonyms else definition.default
    return None if text is None else _normalized(definition, text)


def describe_broker(config: Config, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """The properties of this broker. Of names that nobody knows the value is not told: it may be a secret.

    Some stand in the list of all only where they are set; who asks for them by name is told in any case.
    """
    entries = []
    unlisted = listed_when_set()
    for name, definition in broker_definitions().items():
        if definition.is_internal or (names is not None and name not in names):
            continue
        entry = _broker_entry(name, definition, tuple(_layers(_units_of(name), config)))
        if names is not None or entry.source is not Source.DEFAULT or name not in unlisted:
            entries.append(entry)
    known = broker_definitions()
    for name in config.properties:
        if name not in known and (names is None or name in names):
            synonyms = (Synonym(name, None, Source.STATIC_BROKER),)
            entries.append(ConfigEntry(name, None, Source.STATIC_BROKER, True, True, synonyms, 0, None))
    return entries


def describe_all_brokers(config: Config, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """What is set dynamically for all brokers (the resource with the empty name), and nothing else."""
    entries = []
    known = broker_definitions()
    for name, text in config.dynamic_default.items():
        definition = known.get(name)
        if definition is not None and (names is None or name in names):
            shown = None if definition.is_sensitive else text
            entries.append(_broker_entry(name, definition, (Synonym(name, shown, Source.DYNAMIC_DEFAULT_BROKER),)))
    return entries


def _broker_entry(name: str, definition: Definition, synonyms: tuple[Synonym, ...]) -> ConfigEntry:
    # What other units say comes into force only behind the property's own value.
    while synonyms and synonyms[0].name != name:
        synonyms = synonyms[1:]
    text = synonyms[0].value if synonyms else None
    return ConfigEntry(
        name=name,
        value=None if text is None else _normalized(definition, text),
        source=synonyms[0].source if synonyms else Source.DEFAULT,
        is_sensitive=definition.is_sensitive,
        is_read_only=not is_dynamic(name),
        synonyms=synonyms,
        type=TYPE_CODES[definition.type],
        documentation=definition.documentation,
    )


def _units_of(name: str) -> tuple[str, ...]:
    return next((names for names in _UNITS if name in names), (name,))


def _layers(names: tuple[str, ...], config: Config) -> Iterator[Synonym]:
    """Every value that some layer has for these names, the strongest layer first and within it the strongest name."""
    known = broker_definitions()
    layers: tuple[tuple[Mapping[str, str], Source], ...] = (
        (config.dynamic_broker, Source.DYNAMIC_BROKER),
        (config.dynamic_default, Source.DYNAMIC_DEFAULT_BROKER),
        (config.properties, Source.STATIC_BROKER),
    )
    for layer, source in layers:
        for name in names:
            if name in layer:
                yield Synonym(name, None if known[name].is_sensitive else layer[name], source)
    for name in names:
        default = known[name].default
        if name == "log.dir":
            default = config.data_directory
        if default is not None:
            yield Synonym(name, default, Source.DEFAULT)


def _normalized(definition: Definition, text: str) -> str | None:
    """The value as Kafka prints it: without the blanks and the leading zeros of the file."""
    if definition.is_sensitive:
        return None
    try:
        return value_text(definition, parse(definition, text))
    except ConfigError:
        return text


def value_text(definition: Definition, value: Value) -> str:
    """A typed value in Java's spelling."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(value)
    if isinstance(value, float) or definition.type == "DOUBLE":
        return _java_double(float(value))
    return str(value)


def _java_double(value: float) -> str:
    """As `Double.toString`: 0.5, 1.0, 1.7976931348623157E308; plain digits between a thousandth and ten million."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{fraction}E{exponent + len(digits) - 1}"
