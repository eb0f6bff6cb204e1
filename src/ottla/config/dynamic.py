"""What may change while a broker runs: incremental changes of a topic's or a broker's properties, and their rules.

Changes arrive by name as SET, DELETE, APPEND or SUBTRACT, are applied to the stored overrides, and the result is
checked whole before anything is stored. Kafka's names for the four and their numbers on the wire are those of
IncrementalAlterConfigs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final

from ottla.config.broker import Config, assemble
from ottla.config.definitions import broker_definitions, topic_definitions
from ottla.config.errors import ConfigError
from ottla.config.reader import LISTENER_PREFIX, Reader
from ottla.config.values import Definition, parse
from ottla.model import ErrorCode

#: A stored value must fit Kafka's two-byte length.
VALUE_BYTES_MAX: Final = 32_767
#: What one request may change: Kafka's bound for one user's operation.
CHANGES_MAX: Final = 10_000

#: With a listener's name before them these change at run time; without it they never do.
_PER_LISTENER: Final = ("ssl.", "sasl.", "principal.builder.class")


class Op(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def apply_incremental(
    kind: str, current: Mapping[str, str], changes: Iterable[tuple[str, int, str | None]]
) -> dict[str, str]:
    """`current` after the changes, in a new dict; `kind` is "topic" or "broker". The result still wants validating."""
    definitions = topic_definitions() if kind == "topic" else broker_definitions()
    result = dict(current)
    seen: set[str] = set()
    for name, number, value in changes:
        if name in seen:
            raise _refused(name, "Error due to duplicate config keys", ErrorCode.INVALID_REQUEST)
        seen.add(name)
        if len(seen) > CHANGES_MAX:
            raise _refused(name, f"more than {CHANGES_MAX} changes in one request", ErrorCode.POLICY_VIOLATION)
        try:
            op = Op(number)
        except ValueError:
            raise _refused(name, f"Unknown operation type {number}", ErrorCode.INVALID_REQUEST) from None
        if op is Op.DELETE:
            result.pop(name, None)
            continue
        if value is None:
            raise _refused(name, "Null value not supported", ErrorCode.INVALID_REQUEST)
        text = value if op is Op.SET else _changed_list(op, name, definitions.get(name), result.get(name), value)
        if len(text.encode("utf-8", "replace")) > VALUE_BYTES_MAX:
            raise ConfigError(name, text, f"the value is longer than {VALUE_BYTES_MAX} bytes")
        result[name] = text
    return result


def _changed_list(op: Op, name: str, definition: Definition | None, current: str | None, value: str) -> str:
    """A list with items added or taken away, by text: an item that is there already is not added twice."""
    if definition is None or definition.type != "LIST":
        raise ConfigError(name, value, f"Can't {op.name} to key {name} because its type is not LIST")
    before = current if current is not None else definition.default or ""
    items = _items(before)
    changed = _items(value)
    if op is Op.APPEND:
        items += [item for item in changed if item not in items]
    else:
        items = [item for item in items if item not in changed]
    return ",".join(items)


def _items(text: str) -> list[str]:
    return [item for item in (part.strip() for part in text.split(",")) if item]


def _refused(name: str, why: str, code: ErrorCode) -> ConfigError:
    error = ConfigError(name, None, why)
    error.code = code
    error.args = (f"{why}: {name}",)
    return error


def is_dynamic(name: str) -> bool:
    """Whether a broker's property may change while it runs."""
    definition = broker_definitions().get(_base_name(name))
    return definition is not None and definition.update_mode != "read-only"


def _base_name(name: str) -> str:
    """The name without a listener's prefix, where it has one."""
    if not name.startswith(LISTENER_PREFIX):
        return name
    _, _, base = name.removeprefix(LISTENER_PREFIX).partition(".")
    if base not in broker_definitions():
        _, _, base = base.partition(".")  # a SASL mechanism may stand in between
    return base


def validate_broker_configs(overrides: Mapping[str, str], *, of_all_brokers: bool) -> None:
    """Raises ConfigError unless every known name may change at run time, at this level, to this value.

    Names that nobody knows are kept, as in Kafka: they may be meant for a plug-in, or for another version.
    """
    definitions = broker_definitions()
    for name, text in overrides.items():
        definition = definitions.get(_base_name(name))
        if definition is None:
            continue
        if definition.update_mode == "read-only":
            raise ConfigError(name, text, "Cannot update these configs dynamically")
        if name == definition.name and name.startswith(_PER_LISTENER):
            why = "These security configs can be dynamically updated only per-listener using the listener prefix"
            raise ConfigError(name, None if definition.is_sensitive else text, why)
        if of_all_brokers and (definition.update_mode == "per-broker" or name != definition.name):
            why = "Cannot update these configs at default cluster level, broker id must be specified"
            raise ConfigError(name, None if definition.is_sensitive else text, why)
        parse(definition, text)


def with_dynamic(config: Config, of_all_brokers: Mapping[str, str], of_this_broker: Mapping[str, str]) -> Config:
    """The configuration under two layers of dynamic overrides; raises ConfigError where the result is not sound.

    `config` may itself have overrides: they are replaced. Overrides that cannot change at run time are passed over.
    """
    layers = [
        {name: text for name, text in layer.items() if is_dynamic(name)} for layer in (of_all_brokers, of_this_broker)
    ]
    effective = {**config.properties, **layers[0], **layers[1]}
    fresh = assemble(Reader(effective), config.properties, config.data_directory)
    return fresh._replace(dynamic_default=layers[0], dynamic_broker=layers[1], warnings=config.warnings)
