"""What DescribeConfigs answers: every property with its value, where the value comes from, and what else it could be.

A topic's `segment.bytes` falls back on the broker's `log.segment.bytes`, and that on what is set for all brokers, in
the file, or by default: those are its synonyms, in the order in which they hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.config.broker import Config
from ottla.config.definitions import broker_definitions, group_definitions, listed_when_set, topic_definitions
from ottla.config.dynamic import definition_of, is_dynamic, listener_property
from ottla.config.errors import ConfigError
from ottla.config.group import broker_synonym
from ottla.config.log import LogConfig
from ottla.config.topic import FIELDS, SYNONYMS, effective_log_config
from ottla.config.values import TYPE_CODES, Definition, parse, value_text


class Source(IntEnum):
    """Where a value comes from, with the numbers on the wire."""

    UNKNOWN = 0
    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_GROUP = 8


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: Source


class DescribedProperty(NamedTuple):
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


#: Kafka's two names for one thing. Of the first there is no default: a broker has an id.
_IDS: Final = ("node.id", "broker.id")
#: Names for one thing in several units, the strongest first.
_UNITS: Final = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
)


def describe_topic(
    overrides: Mapping[str, str], config: Config, names: Collection[str] | None = None
) -> list[DescribedProperty]:
    """The properties of a topic: all of them, or the known ones among `names`."""
    effective = effective_log_config(_readable(overrides), config.log)
    entries = []
    for name, definition in topic_definitions().items():
        if definition.is_internal or (names is not None and name not in names):
            continue
        synonyms = tuple(_topic_synonyms(definition, overrides, config))
        entries.append(
            DescribedProperty(
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
        value = getattr(effective, field)
        return None if value is None else value_text(definition, value)
    # Lists keep the order in which they were written; tiered storage's properties have no field here; and
    # segment.bytes may be covered by an internal property that is not shown.
    text = synonyms[0].value if synonyms else definition.default
    return None if text is None else _normalized(definition, text)


def describe_group(
    overrides: Mapping[str, str], config: Config, names: Collection[str] | None = None
) -> list[DescribedProperty]:
    """The properties of a group: all of them, or the known ones among `names`."""
    entries = []
    for name, definition in group_definitions().items():
        if names is not None and name not in names:
            continue
        synonyms = tuple(_group_synonyms(definition, overrides, config))
        entries.append(
            DescribedProperty(
                name=name,
                value=_normalized(definition, synonyms[0].value or ""),
                source=synonyms[0].source,
                is_sensitive=False,
                is_read_only=False,
                synonyms=synonyms,
                type=TYPE_CODES[definition.type],
                documentation=definition.documentation,
            )
        )
    return entries


def _group_synonyms(definition: Definition, overrides: Mapping[str, str], config: Config) -> Iterator[Synonym]:
    own = overrides.get(definition.name)
    if own is not None:
        yield Synonym(definition.name, _normalized(definition, own), Source.DYNAMIC_GROUP)
    of_broker = broker_synonym(definition.name)
    if of_broker is not None:
        yield from _layers((of_broker,), config)
    elif own is None:
        yield Synonym(definition.name, definition.default, Source.DEFAULT)


def names_of_broker(config: Config) -> list[str]:
    """All that there are: known ones, and unknown ones that are set. Kafka's own test switches are left out."""
    known = broker_definitions()
    names = dict.fromkeys((*known, *config.properties, *config.dynamic_default, *config.dynamic_broker))
    return [name for name in names if name not in known or not known[name].is_internal]


def broker_entry(name: str, config: Config) -> DescribedProperty:
    """One of `names_of_broker`."""
    definition = broker_definitions().get(name)
    if definition is None:
        return _unknown_entry(name, tuple(_layers((name,), config)))
    return _broker_entry(name, definition, tuple(_layers(_units_of(name), config)))


def is_listed(entry: DescribedProperty) -> bool:
    """Whether it stands in the list of all properties of a broker or a topic."""
    return entry.source is not Source.DEFAULT or entry.name not in listed_when_set()


def with_broker_id(config: Config, broker_id: int) -> Config:
    """As it is described: where no property says the broker's id, its own files do."""
    return config._replace(properties={**config.properties, **dict.fromkeys(_IDS, str(broker_id))})


def describe_all_brokers(config: Config, names: Collection[str] | None = None) -> list[DescribedProperty]:
    """What is set dynamically for all brokers (the resource with the empty name), and nothing else."""
    entries = []
    known = broker_definitions()
    for name, text in {**_of_all_brokers(config), **config.dynamic_default}.items():
        if names is not None and name not in names:
            continue
        definition = known.get(name)
        synonym = Synonym(name, _shown(name, text), Source.DYNAMIC_DEFAULT_BROKER)
        if definition is None:
            entries.append(_unknown_entry(name, (synonym,)))
        else:
            entries.append(_broker_entry(name, definition, (synonym,)))
    return entries


def _of_all_brokers(config: Config) -> dict[str, str]:
    """What `ottla up` sets by itself and could be changed for all brokers: Kafka sets it so when it makes a cluster."""
    return {name: text for name, text in config.defaults.items() if is_dynamic(name)}


def _unknown_entry(name: str, synonyms: tuple[Synonym, ...]) -> DescribedProperty:
    """Of a name that is in no table, though perhaps with a listener's name before one that is."""
    definition = definition_of(name)
    if definition is None:
        return DescribedProperty(name, None, synonyms[0].source, True, True, synonyms, 0, None)
    value = _normalized(definition, synonyms[0].value or "")
    kind = TYPE_CODES[definition.type]
    return DescribedProperty(name, value, synonyms[0].source, definition.is_sensitive, True, synonyms, kind, None)


def _shown(name: str, text: str) -> str | None:
    definition = definition_of(name)
    return None if definition is None or definition.is_sensitive else text


def _broker_entry(name: str, definition: Definition, synonyms: tuple[Synonym, ...]) -> DescribedProperty:
    # What other units say comes into force only behind the property's own value.
    while synonyms and synonyms[0].name != name:
        synonyms = synonyms[1:]
    text = synonyms[0].value if synonyms else None
    return DescribedProperty(
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
    of_all = _of_all_brokers(config)
    layers: tuple[tuple[Mapping[str, str], Source], ...] = (
        (config.dynamic_broker, Source.DYNAMIC_BROKER),
        ({**of_all, **config.dynamic_default}, Source.DYNAMIC_DEFAULT_BROKER),
        (config.properties, Source.STATIC_BROKER),
    )
    for layer, source in layers:
        for name in names:
            if name in layer and not (source is Source.STATIC_BROKER and name in of_all):
                yield Synonym(name, _shown(name, layer[name]), source)
    for name in names:
        if name not in known:
            base = listener_property(name)
            if base in known and known[base].default is not None:
                yield Synonym(base, known[base].default, Source.DEFAULT)
            continue
        default = known[name].default
        if name == "log.dir":
            default = config.data_directory
        if default is not None and name != "node.id":
            yield Synonym(name, default, Source.DEFAULT)


def _normalized(definition: Definition, text: str) -> str | None:
    """The value as Kafka prints it: without the blanks and the leading zeros of the file."""
    if definition.is_sensitive:
        return None
    try:
        return value_text(definition, parse(definition, text))
    except ConfigError:
        return text
