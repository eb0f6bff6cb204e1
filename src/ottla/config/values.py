"""From text to typed values, by Kafka's own rules: what is a number, a boolean, a list, and which are allowed.

A property's value is text everywhere: in a file, in the environment, in a znode, on the wire. It is checked against its
`Definition` once, here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.config.errors import HIDDEN, BrokenRuleError, ConfigError
from ottla.model import topic_id_from_text

#: Kafka's types, with the numbers that DescribeConfigs gives them.
TYPE_CODES: Final = {
    "BOOLEAN": 1,
    "STRING": 2,
    "INT": 3,
    "SHORT": 4,
    "LONG": 5,
    "DOUBLE": 6,
    "LIST": 7,
    "CLASS": 8,
    "PASSWORD": 9,
}
#: A whole number is refused when its Java type could not hold it: Kafka's tools would not read it back.
_BITS: Final = {"SHORT": 16, "INT": 32, "LONG": 64}

#: How Kafka begins where a rule is not one of its definitions: then the sentence stands alone.
_FAILED: Final = "requirement failed"

Value = bool | int | float | str | list[str]


class Definition(NamedTuple):
    """What is known about one property."""

    name: str
    type: str
    #: As it would stand in a file; None where there is no value at all.
    default: str | None
    #: The rule as text: `1..`, `0..1`, `{a,b}`, `some` (not empty), `some{a,b}`, or a name out of `RULES`.
    rule: str | None
    importance: str
    #: read-only, per-broker (only on a named broker) or cluster-wide (also as the default of all brokers);
    #: topic or group where it is not a broker's.
    update_mode: str
    #: `used`: something in Ottla goes by it. `later`: it is read, for a part that is not there yet. `unused`: neither.
    #: A broker that is configured with something of the last two kinds warns.
    status: str
    #: Internal ones are Kafka's own test switches: settable, not listed.
    is_internal: bool
    documentation: str

    @property
    def has_effect(self) -> bool:
        return self.status == "used"

    @property
    def is_sensitive(self) -> bool:
        return self.type == "PASSWORD"


def parse(definition: Definition, text: str) -> Value:
    """The typed value of `text`; raises ConfigError with Kafka's reasons."""
    kind = definition.type
    trimmed = text.strip()
    value: Value
    if kind == "BOOLEAN":
        lowered = trimmed.lower()
        if lowered not in {"true", "false"}:
            raise _fault(definition, text, "Expected value to be either true or false")
        value = lowered == "true"
    elif kind in _BITS:
        value = _whole_number(definition, trimmed)
    elif kind == "DOUBLE":
        value = _real_number(definition, trimmed)
    elif kind == "LIST":
        value = _list(definition, trimmed)
    else:
        value = trimmed
    if definition.rule is not None:
        _check_rule(definition, value)
    return value


def _fault(definition: Definition, text: str, why: str) -> ConfigError:
    return ConfigError(definition.name, HIDDEN if definition.is_sensitive else text, why)


def _whole_number(definition: Definition, text: str) -> int:
    digits = text[1:] if text[:1] in {"+", "-"} else text
    # 20 digits hold any i64; the bound also keeps Python's slow conversion of endless numbers away.
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        raise _fault(definition, text, f"Not a number of type {definition.type}")
    number = int(text)
    limit = 1 << (_BITS[definition.type] - 1)
    if not -limit <= number < limit:
        raise _fault(definition, text, f"Not a number of type {definition.type}")
    return number


def _real_number(definition: Definition, text: str) -> float:
    # Java also takes a type suffix (0.5d), Python also takes underscores and names.
    digits = text[:-1] if text[-1:] in {"d", "D", "f", "F"} else text
    if len(digits) > 64 or not digits or not set(digits) <= set("0123456789+-.eE"):
        raise _fault(definition, text, "Not a number of type DOUBLE")
    try:
        return float(digits)
    except ValueError:
        raise _fault(definition, text, "Not a number of type DOUBLE") from None


def _list(definition: Definition, text: str) -> list[str]:
    if not text:
        return []
    items = [item.strip() for item in text.split(",")]
    if "" in items:
        sentence = f"Configuration '{definition.name}' values must not be empty."
        raise BrokenRuleError(sentence, name=definition.name)
    return list(dict.fromkeys(items))  # Kafka drops repetitions as well


def _check_rule(definition: Definition, value: Value) -> None:
    """Raises ConfigError where the rule does not allow the value; of a list it names the item that is not allowed."""
    rule = definition.rule
    assert rule is not None
    named = RULES.get(rule)
    if named is not None:
        _refuse(definition, _java_list(value) if isinstance(value, list) else value, named(value))
    elif ".." in rule:
        assert isinstance(value, int | float)
        low, _, high = rule.partition("..")
        if low and value < float(low):
            _refuse(definition, value, f"Value must be at least {low}")
        if high and value > float(high):
            _refuse(definition, value, f"Value must be no more than {high}")
    else:
        if rule.startswith("some") and not value:
            _refuse(definition, value, "Must not be empty")
        choices = rule.removeprefix("some").strip("{}").split(",")
        for item in value if isinstance(value, list) else [value]:
            if item not in choices:
                _refuse(definition, item, f"String must be one of: {', '.join(choices)}")


def _refuse(definition: Definition, value: Value, why: str | None) -> None:
    if why is not None and why.startswith(_FAILED):
        raise BrokenRuleError(why, name=definition.name)
    if why is not None:
        raise _fault(definition, value_text(definition, value), why.replace("NAME", definition.name))


def _java_list(items: list[str]) -> str:
    return f"[{', '.join(items)}]"


def value_text(definition: Definition, value: Value) -> str:
    """A typed value in Java's spelling."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(value)
    if isinstance(value, float) or (definition.type == "DOUBLE" and isinstance(value, int)):
        return _java_double(float(value))
    return str(value)


def _java_double(value: float) -> str:
    """As `Double.toString`: 0.5, 1.0, 1.7976931348623157E308; plain digits between a thousandth and ten million."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    if abs(value) == float("inf"):  # of a number that is too large, as Java reads it
        return "Infinity" if value > 0 else "-Infinity"
    from decimal import Decimal

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{fraction}E{exponent + len(digits) - 1}"


def _some(value: Value) -> str | None:
    return None if value else "Must not be empty"


def _gzip_level(value: Value) -> str | None:
    assert isinstance(value, int)
    return None if value == -1 or 1 <= value <= 9 else "Value must be between 1 and 9 or equal to -1"


def _migration_policy(value: Value) -> str | None:
    choices = ["disabled", "downgrade", "upgrade", "bidirectional"]
    return None if str(value).lower() in choices else f"String must be one of (case insensitive): {', '.join(choices)}"


def _assertion_algorithm(value: Value) -> str | None:
    choices = ["es256", "rs256"]
    return None if str(value).lower() in choices else f"String must be one of (case insensitive): {', '.join(choices)}"


def _throttled_replicas(value: Value) -> str | None:
    assert isinstance(value, list)
    if value == ["*"]:
        return None
    for item in value:
        partition, _, broker = item.partition(":")
        if not (partition.isascii() and partition.isdigit() and broker.isascii() and broker.isdigit()):
            return (
                "NAME must be the literal '*' or a list of replicas in the following format: "
                "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
            )
    return None


def _codec_number(value: Value) -> str | None:
    assert isinstance(value, int)
    return None if 0 <= value <= 4 else f"Unknown compression type id: {value}"


def _retention(value: Value) -> str | None:
    assert isinstance(value, int)
    return None if value != 0 else f"{_FAILED}: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"


def _roll_ms(value: Value) -> str | None:
    assert isinstance(value, int)
    return None if value >= 1 else f"{_FAILED}: log.roll.ms must be greater than or equal to 1"


def _roll_jitter_ms(value: Value) -> str | None:
    assert isinstance(value, int)
    return None if value >= 0 else f"{_FAILED}: log.roll.jitter.ms must be greater than or equal to 0"


#: ISO 8601 as Java's `Duration.parse` reads it, without signs: an offset that lies in the future is none.
_DURATION: Final = r"P(?=.)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d{0,9})?S)?)?"


def _offset_reset(value: Value) -> str | None:
    import re

    assert isinstance(value, str)
    duration = value.removeprefix("by_duration:")
    if value in {"earliest", "latest"} or (duration != value and re.fullmatch(_DURATION, duration, re.IGNORECASE)):
        return None
    return (
        f"Invalid value `{value[:200]}` for configuration NAME. The value must be either 'earliest', 'latest' "
        "or of the format 'by_duration:<PnDTnHnMn.nS>'."
    )


def _cluster_id(value: Value) -> str | None:
    """As Kafka's storage tool takes it: an id that it could not read back would be no cluster's."""
    try:
        topic_id_from_text(str(value))
    except ValueError:
        return f"CLUSTER_ID, or cluster string {value}, does not appear to be a valid UUID"
    return None


RULES: Final[dict[str, Callable[[Value], str | None]]] = {
    "some": _some,
    "gzip-level": _gzip_level,
    "migration-policy": _migration_policy,
    "assertion-algorithm": _assertion_algorithm,
    "throttled-replicas": _throttled_replicas,
    "codec-number": _codec_number,
    "retention": _retention,
    "roll-ms": _roll_ms,
    "roll-jitter-ms": _roll_jitter_ms,
    "offset-reset": _offset_reset,
    "cluster-id": _cluster_id,
}
