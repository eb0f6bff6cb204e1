"""Requests of administrators, and their answers as lines of text that two brokers can be compared by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from ottla.protocol.generated.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from ottla.protocol.generated.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.protocol.generated.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.generated.describe_cluster import DescribeClusterRequest
from ottla.protocol.generated.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.generated.incremental_alter_configs import AlterableConfig as Change
from ottla.protocol.generated.incremental_alter_configs import AlterConfigsResource as Changed
from ottla.protocol.generated.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.protocol.message import Message, Structure
from tests.interop.group_wire import ConnectionEnded, Peer

KINDS = {2: "topic", 4: "broker", 32: "group"}
OPERATIONS = {0: "=", 1: " deleted", 2: "+=", 3: "-="}
TOPIC, BROKER, GROUP = 2, 4, 32
#: In place of the broker's own id, which differs.
OWN = "<own>"
#: Names and values are cut there: what they are is known.
SHOWN_MAX = 60


class AdminTalk:
    """One connection; `lines` is what was asked and answered."""

    def __init__(self, bootstrap: str) -> None:
        self.lines: list[str] = []
        self._bootstrap = bootstrap
        self._peer = Peer(bootstrap, "admin")
        self.own = str(self._peer.ask(DescribeClusterRequest(), 0).controller_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._peer.close()

    def ask(self, request: Message, version: int) -> Any:
        return self._peer.ask(request, version)

    # Settings.

    def set(
        self, kind: int, name: str, *changes: tuple[str, int, str | None], times: int = 1, validate_only: bool = True
    ) -> None:
        """IncrementalAlterConfigs, which by default changes nothing."""
        configs = [Change(name=key, config_operation=operation, value=value) for key, operation, value in changes]
        one = Changed(resource_type=kind, resource_name=self._real(name), configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[one] * times, validate_only=validate_only)
        shown = ", ".join(f"{key}{OPERATIONS.get(op, f' {op} ')}{_cut(value)}" for key, op, value in changes)
        self._say(f"set {times} {KINDS.get(kind, kind)} {_cut(name)} {shown}", request, 1, "responses")

    def replace(self, kind: int, name: str, *configs: tuple[str, str | None], times: int = 1) -> None:
        """AlterConfigs, which changes nothing."""
        settings = [AlterableConfig(name=key, value=value) for key, value in configs]
        one = AlterConfigsResource(resource_type=kind, resource_name=self._real(name), configs=settings)
        request = AlterConfigsRequest(resources=[one] * times, validate_only=True)
        shown = ", ".join(f"{key}={_cut(value)}" for key, value in configs)
        self._say(f"replace {times} {KINDS.get(kind, kind)} {_cut(name)} {shown}", request, 2, "responses")

    def describe(self, kind: int, name: str, *keys: str, times: int = 1) -> None:
        """The whole of some settings, or how many there are."""
        one = DescribeConfigsResource(
            resource_type=kind, resource_name=self._real(name), configuration_keys=list(keys) or None
        )
        request = DescribeConfigsRequest(resources=[one] * times, include_synonyms=True, include_documentation=True)
        self.lines.append(f"describe {times} {KINDS.get(kind, kind)} {_cut(name)} {' '.join(keys)}")
        for result in self.ask(request, 4).results:
            self.lines.append(f"  {result.error_code} {self._masked(result.error_message)!r}")
            shown = [setting for setting in result.configs if keys or kind == GROUP]
            for setting in sorted(shown, key=lambda each: each.name):
                self.lines.append(f"  {self._setting(setting)}")

    def _setting(self, setting: Any) -> str:
        synonyms = ", ".join(f"{each.name}={each.value!r} {each.source}" for each in setting.synonyms)
        facts = f"source {setting.config_source} type {setting.config_type} read_only {setting.read_only}"
        documented = "documented" if setting.documentation else "undocumented"
        text = f"{setting.name}={setting.value!r} {facts} sensitive {setting.is_sensitive} {documented} [{synonyms}]"
        return text.replace(f"={self.own!r}", f"={OWN!r}") if setting.name == "broker.id" else text

    # Topics.

    def create(self, name: str, partitions: int = 1, copies: int = 1, times: int = 1, **configs: str | None) -> None:
        """Whether a topic could be created."""
        settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=copies, configs=settings)
        request = CreateTopicsRequest(topics=[topic] * times, timeout_ms=10_000, validate_only=True)
        shown = ", ".join(f"{key.replace('_', '.')}={_cut(value)}" for key, value in configs.items())
        self._say(f"create {times} {_cut(name)} {partitions} x {copies} {shown}", request, 7, "topics")

    def grow(self, *topics: tuple[str, int, Sequence[Sequence[str]] | None]) -> None:
        """Whether topics could get more partitions."""
        asked = [
            CreatePartitionsTopic(name=name, count=count, assignments=None if places is None else self._places(places))
            for name, count, places in topics
        ]
        request = CreatePartitionsRequest(topics=asked, timeout_ms=10_000, validate_only=True)
        shown = ", ".join(f"{name!r} to {count} {places or ''}" for name, count, places in topics)
        self._say(f"grow {shown}", request, 3, "results")

    def _places(self, places: Sequence[Sequence[str]]) -> list[CreatePartitionsAssignment]:
        return [CreatePartitionsAssignment(broker_ids=[int(self._real(each)) for each in place]) for place in places]

    # Anything.

    def say_all(self, label: str, request: Message, version: int) -> None:
        """The answer as a whole."""
        self.lines.append(f"{label} v{version}")
        try:
            answer = self.ask(request, version)
        except ConnectionEnded:
            self._peer = Peer(self._bootstrap, "admin")
            self.lines.append("  the connection ends")
        else:
            self.lines += [f"  {line}" for line in _fields(answer)]

    def _say(self, label: str, request: Message, version: int, results: str) -> None:
        self.lines.append(label)
        answers = [
            f"  {result.error_code} {self._masked(result.error_message)!r}"
            for result in getattr(self.ask(request, version), results)
        ]
        self.lines += sorted(answers)

    def _real(self, name: str) -> str:
        return self.own if name == OWN else name

    def _masked(self, text: str | None) -> str | None:
        if text is None:
            return None
        for before in ("expected ", "broker ", "configuration broker.id: "):
            text = text.replace(f"{before}{self.own}", f"{before}{OWN}")
        return text


def _fields(value: Any, prefix: str = "") -> list[str]:
    if isinstance(value, Structure):
        names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        names = [name for name in names if name not in {"unknown_tags", "throttle_time_ms"}]
        return [line for name in names for line in _fields(getattr(value, name), f"{prefix}.{name}".lstrip("."))]
    if isinstance(value, list):
        # Kafka keeps some lists in hash tables.
        elements = sorted(_fields(each, f"{prefix}[]") for each in value)
        return [f"{prefix} x {len(value)}", *(line for element in elements for line in element)]
    return [f"{prefix} {value!r}"]


def _cut(value: str | None) -> str:
    if value is None:
        return "null"
    return repr(value) if len(value) <= SHOWN_MAX else f"{value[:SHOWN_MAX]!r}..."
