"""What may change while a broker runs: incremental changes of a topic's or a broker's properties, and their rules.

Changes arrive by name as SET, DELETE, APPEND or SUBTRACT, are applied to the stored overrides, and the result is
checked whole before anything is stored. Kafka's names for the four and their numbers on the wire are those of
IncrementalAlterConfigs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from typing import Final

from ottla.config.broker import Config, assemble
from ottla.config.definitions import broker_definitions, definitions_of
from ottla.config.errors import BrokenRuleError, ConfigError
from ottla.config.reader import LISTENER_PREFIX, PropertyReader
from ottla.config.values import Definition, parse
from ottla.model import ErrorCode

#: A stored value must fit Kafka's two-byte length.
VALUE_BYTES_MAX: Final = 32_767
#: What one request may change: Kafka's bound for one user's operation.
CHANGES_MAX: Final = 10_000

#: Without a listener's name before them these never change: keys and certificates, Kafka's
#: `SslConfigs.RECONFIGURABLE_CONFIGS`.
_ONLY_PER_LISTENER: Final = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
#: With a listener's name before them all others are a single broker's, since brokers have listeners of their own.
_PER_LISTENER_OF_ALL: Final = frozenset({"max.connection.creation.rate", "max.connections", "num.network.threads"})
#: Java classes that are known here by what they do. There are no others to be found: this is no Java process.
_CLASSES: Final = frozenset(
    {
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory",
    }
)


class Op(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def apply_incremental(
    kind: str, current: Mapping[str, str], changes: Sequence[tuple[str, int, str | None]]
) -> dict[str, str]:
    """`current` after the changes, in a new dict; `kind` is "topic", "broker" or "group".

    The result still wants validating.
    """
    _check_changes(changes)
    result = dict(current)
    for name, number, value in changes:
        op = Op(number)
        if op is Op.DELETE:
            result.pop(name, None)
            continue
        assert value is not None
        text = value if op is Op.SET else _changed_list(op, kind, name, result.get(name), value)
        if len(text.encode("utf-8", "replace")) > VALUE_BYTES_MAX:
            raise ConfigError(name, text, f"the value is longer than {VALUE_BYTES_MAX} bytes")
        result[name] = text
    return result


def _check_changes(changes: Sequence[tuple[str, int, str | None]]) -> None:
    if len(changes) > CHANGES_MAX:
        raise BrokenRuleError(f"more than {CHANGES_MAX} changes in one request", ErrorCode.POLICY_VIOLATION)
    if len({name for name, _, _ in changes}) < len(changes):
        raise BrokenRuleError("Error due to duplicate config keys", ErrorCode.INVALID_REQUEST)
    nulls = [name for name, number, value in changes if value is None and number != Op.DELETE]
    if nulls:
        raise BrokenRuleError(f"Null value not supported for : {', '.join(nulls)}", ErrorCode.INVALID_REQUEST)
    for _, number, _ in changes:
        if not Op.SET <= number <= Op.SUBTRACT:
            raise BrokenRuleError(f"Unknown operations type {number}", ErrorCode.INVALID_REQUEST)


def _changed_list(op: Op, kind: str, name: str, current: str | None, value: str) -> str:
    """A list with items added or taken away, by text: an item that is there already is not added twice."""
    definition = definitions_of(kind).get(name)
    if definition is None and kind == "broker":
        raise BrokenRuleError(f"Unknown config name: {name}")
    if definition is None or definition.type != "LIST":
        if kind == "broker":
            raise BrokenRuleError(f"Config value {op.name.lower()} is not allowed for config key: {name}")
        raise BrokenRuleError(f"Can't {op.name} to key {name} because its type is not LIST.")
    before = current if current is not None else definition.default or ""
    items = _items(before) if before.strip() else []
    changed = _items(value)
    if op is Op.APPEND:
        items += [item for item in dict.fromkeys(changed) if item not in items]
    else:
        items = [item for item in items if item not in changed]
    return ",".join(items)


def _items(text: str) -> list[str]:
    """As Java's `split`: empty items stay, so that they are refused, but for those at the end of several."""
    items = [part.strip() for part in text.split(",")]
    while len(items) > 1 and not items[-1]:
        items.pop()
    return [] if text.strip(",") == "" and text else items


def is_dynamic(name: str) -> bool:
    """Whether a broker's property may change while it runs."""
    definition = definition_of(name)
    return definition is not None and definition.update_mode != "read-only"


def definition_of(name: str) -> Definition | None:
    """Of a broker's property, also where a listener's name, and perhaps that of a SASL mechanism, stands before it."""
    known = broker_definitions()
    base = listener_property(name)
    if base is None:
        return known.get(name)
    return known.get(base) or known.get(base.partition(".")[2])


def listener_property(name: str) -> str | None:
    """What stands behind a listener's name; None where there is none."""
    if not name.startswith(LISTENER_PREFIX):
        return None
    _, dot, base = name.removeprefix(LISTENER_PREFIX).partition(".")
    return base if dot else None


def validate_broker_configs(
    overrides: Mapping[str, str], *, of_all_brokers: bool, listeners: Collection[str] = ()
) -> None:
    """Raises ConfigError unless every known name may change at run time, at this level, to this value.

    Names that nobody knows are kept, as in Kafka: they may be meant for a plug-in, or for another version. So are
    those behind a listener's name whose property never changes; where the broker has that listener (`listeners`, in
    small letters) their values are looked at all the same. The order of the checks is Kafka's.
    """
    known = broker_definitions()
    fixed = [name for name in overrides if name in known and known[name].update_mode == "read-only"]
    _refuse_all(fixed, "Cannot update these configs dynamically")
    bare = [name for name in overrides if name in _ONLY_PER_LISTENER]
    _refuse_all(bare, "These security configs can be dynamically updated only per-listener using the listener prefix")
    for name, text in overrides.items():
        definition = known.get(listener_property(name) or name)
        if definition is not None and definition.update_mode != "read-only":
            _check_value(definition, text)
    if of_all_brokers:
        single = [name for name in overrides if _is_one_brokers(name)]
        _refuse_all(single, "Cannot update these configs at default cluster level, broker id must be specified")
    for name, text in overrides.items():
        definition = definition_of(name)
        if definition is not None and _listener_of(name) in listeners:
            try:
                _check_value(definition, text)
            except ConfigError as error:
                why = f"Invalid value org.apache.kafka.common.config.ConfigException: {error}"
                raise BrokenRuleError(f"{why} for configuration Invalid dynamic configuration") from error


def _refuse_all(names: Collection[str], why: str) -> None:
    if names:
        raise BrokenRuleError(f"{why}: [{', '.join(sorted(names))}]")


def _listener_of(name: str) -> str | None:
    return None if listener_property(name) is None else name.removeprefix(LISTENER_PREFIX).partition(".")[0]


def _is_one_brokers(name: str) -> bool:
    base = listener_property(name)
    if base is not None:
        return base not in _PER_LISTENER_OF_ALL
    definition = broker_definitions().get(name)
    return definition is not None and definition.update_mode == "per-broker"


def _check_value(definition: Definition, text: str) -> None:
    parse(definition, text)
    if definition.type == "CLASS" and text.strip() and text.strip() not in {*_CLASSES, definition.default}:
        raise ConfigError(definition.name, text, f"Class {text.strip()} could not be found.")


def with_dynamic(config: Config, of_all_brokers: Mapping[str, str], of_this_broker: Mapping[str, str]) -> Config:
    """The configuration under two layers of dynamic overrides; raises ConfigError where the result is not sound.

    `config` may itself have overrides: they are replaced. Overrides that cannot change at run time are passed over;
    names that nobody knows have no effect either, and are kept to be described.
    """
    known = broker_definitions()
    layers = [
        {name: text for name, text in layer.items() if name not in known or is_dynamic(name)}
        for layer in (of_all_brokers, of_this_broker)
    ]
    dynamic = {name: text for layer in layers for name, text in layer.items() if is_dynamic(name)}
    fresh = assemble(PropertyReader({**config.properties, **dynamic}), config.properties, config.data_directory)
    return fresh._replace(
        dynamic_default=layers[0],
        dynamic_broker=layers[1],
        defaults=config.defaults,
        warnings=config.warnings,
        without_effect=config.without_effect,
    )
