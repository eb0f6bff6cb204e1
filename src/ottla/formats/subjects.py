"""Subjects: under which name a registry keeps a schema's versions. The strategies are Confluent's, by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ottla.formats.errors import BadSpec
from ottla.formats.settings import FormatSettings

#: `(topic, is_key, record name) -> subject`.
Strategy: TypeAlias = Callable[[str | None, bool, str | None], str]


def by_topic(topic: str | None, is_key: bool, _record: str | None) -> str:
    if topic is None:
        raise BadSpec("the subject is named after a topic, and none was given: set topic, or subject")
    return f"{topic}-{'key' if is_key else 'value'}"


def by_record(_topic: str | None, _is_key: bool, record: str | None) -> str:
    if record is None:
        raise BadSpec("RecordNameStrategy needs a schema that has a name: give a schema file, or a subject")
    return record


def by_topic_and_record(topic: str | None, is_key: bool, record: str | None) -> str:
    if topic is None:
        raise BadSpec("the subject is named after a topic, and none was given: set topic, or subject")
    return f"{topic}-{by_record(topic, is_key, record)}"


_STRATEGIES: Final[dict[str, Strategy]] = {
    "TopicNameStrategy": by_topic,
    "RecordNameStrategy": by_record,
    "TopicRecordNameStrategy": by_topic_and_record,
}


def strategy_for(wanted: Any) -> Strategy:
    """A strategy by its name, with or without its Java package, or the callable itself."""
    if callable(wanted):
        found: Strategy = wanted
        return found
    named = _STRATEGIES.get(str(wanted).rpartition(".")[2])
    if named is None:
        raise BadSpec(f"subject.name.strategy must be one of {', '.join(_STRATEGIES)} or a callable, not {wanted!r}")
    return named


def subject_for(settings: FormatSettings, record: str | None) -> str:
    """The subject of these settings; `record` is the full name of the schema's record, where it is known."""
    if settings.subject is not None:
        return settings.subject
    return strategy_for(settings.subject_name_strategy)(settings.topic, settings.is_key, record)
