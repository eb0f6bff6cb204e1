"""Settings in the shape of an answer, each made once a request: what many resources share, their results share too."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from ottla.config.describe import (
    DescribedProperty,
    broker_entry,
    describe_all_brokers,
    describe_group,
    describe_topic,
    is_listed,
    names_of_broker,
    with_broker_id,
)
from ottla.controller.interface import ConfigTarget, ConfigTargetType
from ottla.handlers.calls.call import Call
from ottla.handlers.configs.resources import ALL_BROKERS
from ottla.protocol.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)
from ottla.steps import Steps, pieces

#: Settings that are described in one step: each takes some five microseconds.
_AT_ONCE: Final = 16
#: What a setting weighs beside its texts: in the answer, and as objects, which it is once however often it is given.
_FIELDS_BYTES: Final = 24
_OBJECTS_BYTES: Final = 1_000


class Setting:
    """One setting as it is answered, and what it weighs there."""

    __slots__ = ("answer_bytes", "is_listed", "result")

    def __init__(self, entry: DescribedProperty, request: DescribeConfigsRequest) -> None:
        synonyms = []
        if request.include_synonyms:
            synonyms = [DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source) for s in entry.synonyms]
        documentation = entry.documentation if request.include_documentation else None
        self.result = DescribeConfigsResourceResult(
            name=entry.name,
            value=entry.value,
            read_only=entry.is_read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
            synonyms=synonyms,
            config_type=entry.type,
            documentation=documentation,
        )
        self.is_listed = is_listed(entry)
        texts = [entry.name, entry.value, documentation]
        texts += [text for each in synonyms for text in (each.name, each.value)]
        # Four bytes a character hold any text.
        self.answer_bytes = _FIELDS_BYTES * (1 + len(synonyms)) + sum(
            len(text) if text.isascii() else 4 * len(text) for text in texts if text is not None
        )


class SettingsOf:
    """The settings of resources, for one request."""

    def __init__(self, call: Call, request: DescribeConfigsRequest) -> None:
        self._metadata = call.services.metadata
        self._config = with_broker_id(call.services.config, call.services.broker_id)
        self._request = request
        self._of_brokers: dict[str, dict[str, Setting]] = {}
        #: Of a topic, and of a group, that overrides nothing.
        self._plain: dict[ConfigTargetType, dict[str, Setting]] = {}
        #: What was made so far, as objects.
        self.held_bytes = 0

    def all(self, asked: ConfigTarget) -> Steps[dict[str, Setting]]:
        """By their names; also those that a list of all does not show."""
        if asked.type is ConfigTargetType.BROKER:
            found = self._of_brokers.get(asked.name)
            if found is None:
                found = self._of_brokers[asked.name] = yield from self._of_broker(asked.name)
            return found
        plain = self._plain.get(asked.type)
        if plain is None:
            plain = self._plain[asked.type] = self._made(self._described(asked.type, {}, None))
            yield
        get = self._metadata.topic_config if asked.type is ConfigTargetType.TOPIC else self._metadata.group_config
        overrides = get(asked.name)
        return plain | self._made(self._described(asked.type, overrides, overrides)) if overrides else plain

    def _of_broker(self, name: str) -> Steps[dict[str, Setting]]:
        config = self._config
        if name == ALL_BROKERS:
            return self._made(describe_all_brokers(config))
        settings: dict[str, Setting] = {}
        for piece in pieces(names_of_broker(config), _AT_ONCE):
            settings |= self._made(broker_entry(each, config) for each in piece)
            yield
        return settings

    def _described(
        self, kind: ConfigTargetType, overrides: Mapping[str, str], names: Collection[str] | None
    ) -> list[DescribedProperty]:
        describe = describe_topic if kind is ConfigTargetType.TOPIC else describe_group
        return describe(overrides, self._config, names)

    def _made(self, entries: Iterable[DescribedProperty]) -> dict[str, Setting]:
        made = {entry.name: Setting(entry, self._request) for entry in entries}
        self.held_bytes += sum(_OBJECTS_BYTES + setting.answer_bytes for setting in made.values())
        return made
