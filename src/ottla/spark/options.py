"""Options: Spark gives them as texts, under names whose case does not count. They are those of Spark's Kafka source.

What begins with `kafka.` is a setting of the client and passed on to it. The client refuses by name what it does not
have, since a job that ignores `kafka.ssl.truststore.location` would talk in the clear without a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from ottla.client.errors import SettingsError
from ottla.client.settings import ClientSettings, parse_settings

#: What begins so is the client's.
CLIENT_PREFIX: Final = "kafka."

#: Settings of Kafka's clients that have no meaning in Spark, by what to do instead.
_NOT_IN_SPARK: Final = {
    "auto.offset.reset": "set startingOffsets; what vanishes while a query reads follows failOnDataLoss",
    "enable.auto.commit": "set kafka.group.id and call ottla.spark.track(spark), which commits to it",
    "key.deserializer": "keys are bytes: cast the column, or decode it by key_as",
    "value.deserializer": "values are bytes: cast the column, or decode it by value_as",
    "key.serializer": "keys are bytes or text: encode the column by key_as",
    "value.serializer": "values are bytes or text: encode the column by value_as",
}

#: What to change where no broker answers.
BROKERS_AWAY: Final = "are these the brokers, and do they run? They come from the option kafka.bootstrap.servers"

Settings = TypeVar("Settings", bound=ClientSettings)


class OptionError(ValueError):
    """An option that is unknown, missing, or has a value that it cannot have: the message names it."""


def folded(options: Mapping[str, Any]) -> dict[str, str]:
    """Names in lower case, values as texts; those that are None were not given."""
    found: dict[str, str] = {}
    for name, value in options.items():
        if value is not None:
            found[name.strip().lower()] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def client_settings(options: Mapping[str, Any]) -> dict[str, str]:
    """The client's settings among the options, under Kafka's names; `bootstrap.servers` is one of them."""
    given = folded(options)
    found = {name.removeprefix(CLIENT_PREFIX): value for name, value in given.items() if name.startswith(CLIENT_PREFIX)}
    for name, instead in _NOT_IN_SPARK.items():
        if name in found:
            raise OptionError(f"{CLIENT_PREFIX}{name} cannot be set: {instead}")
    if not found.get("bootstrap.servers", "").strip():
        raise OptionError(f"{CLIENT_PREFIX}bootstrap.servers is missing: give at least one host:port")
    return found


def parsed_client_settings(kind: type[Settings], settings: Mapping[str, str]) -> Settings:
    """What the client makes of them; its refusals name the option."""
    try:
        return parse_settings(kind, settings, {})
    except SettingsError as error:
        raise OptionError(f"an option that begins with {CLIENT_PREFIX}: {error}") from error


def refuse_unknown(options: Mapping[str, str], known: Iterable[str]) -> None:
    """Options are folded, `known` are the names as they are written. The client's are left to the client."""
    names = {name.lower(): name for name in known}
    for name in options:
        if name in names or name.startswith(CLIENT_PREFIX):
            continue
        near = get_close_matches(name, names, n=1, cutoff=0.6)
        hint = f": did you mean {names[near[0]]}?" if near else ""
        raise OptionError(f"there is no option {name}{hint}")


def whole_number(options: Mapping[str, str], name: str, *, least: int = 1, most: int = 2**63 - 1) -> int | None:
    """None where the option is not given."""
    text = options.get(name.lower())
    if text is None:
        return None
    try:
        number = int(text.strip())
    except ValueError:
        raise OptionError(f"{name} must be a whole number, not {text!r}") from None
    if not least <= number <= most:
        raise OptionError(f"{name} must be from {least} to {most}, not {number}")
    return number


def yes_or_no(options: Mapping[str, str], name: str, default: bool) -> bool:
    text = options.get(name.lower())
    if text is None:
        return default
    word = text.strip().lower()
    if word not in {"true", "false"}:
        raise OptionError(f"{name} must be true or false, not {text!r}")
    return word == "true"
