"""MirrorMaker 2's property file (`mm2.properties`), read into flows: who copies what from where to where.

    clusters = A, B
    A.bootstrap.servers = a1:9092          of a cluster; A.consumer.x, A.producer.x, A.admin.x for one of its clients
    A->B.enabled = true                    of a flow
    topics = orders, clicks.*              of all flows

A flow's own property comes before the one of all flows. Names that MirrorMaker 2 has and that change nothing here are
listed by `Mirrors.without_effect`, so that nobody relies on them; names that nobody knows are refused, since a slip in
`topics.exclude` would copy what was to stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from ottla.client.errors import SettingsError
from ottla.client.settings import AdminSettings, ConsumerSettings, ProducerSettings, parse_settings
from ottla.mirror.names import HEARTBEATS_DEFAULT, SEPARATOR_DEFAULT, ReplicationPolicy

_ALIAS: Final = re.compile(r"[a-zA-Z0-9_\-]+")
_POLICIES: Final = {"DefaultReplicationPolicy": False, "IdentityReplicationPolicy": True}
_PACKAGE: Final = "org.apache.kafka.connect.mirror."
SECONDS_MAX: Final = 10**9
#: Where a partition's copy begins; and by the last, that it ends where the source has removed what was to come next.
RESETS: Final = ("earliest", "latest", "none")

#: Properties of flows that are used, with their defaults: MirrorMaker 2's.
DEFAULTS: Final[dict[str, str]] = {
    "enabled": "false",
    "topics": ".*",
    "topics.exclude": r"mm2.*\.internal, .*\.replica, __.*",
    "groups": ".*",
    "groups.exclude": "console-consumer-.*, connect-.*, __.*",
    "config.properties.exclude": r"follower\.replication\.throttled\.replicas, "
    r"leader\.replication\.throttled\.replicas, message\.timestamp\.difference\.max\.ms, "
    r"message\.timestamp\.type, unclean\.leader\.election\.enable, min\.insync\.replicas",
    "replication.factor": "2",
    "refresh.topics.enabled": "true",
    "refresh.topics.interval.seconds": "600",
    "sync.topic.configs.enabled": "true",
    "sync.topic.configs.interval.seconds": "600",
    "emit.checkpoints.enabled": "true",
    "emit.checkpoints.interval.seconds": "60",
    "checkpoints.topic.replication.factor": "3",
    "sync.group.offsets.enabled": "false",
    "sync.group.offsets.interval.seconds": "60",
    "emit.offset-syncs.enabled": "true",
    "offset-syncs.topic.location": "source",
    "offset-syncs.topic.replication.factor": "3",
    "replication.policy.class": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    "replication.policy.separator": SEPARATOR_DEFAULT,
    "replication.policy.internal.topic.separator.enabled": "true",
    "heartbeats.topic.name": HEARTBEATS_DEFAULT,
}
#: Former names of the same.
_ALIASES: Final = {
    "topics.blacklist": "topics.exclude",
    "groups.blacklist": "groups.exclude",
    "config.properties.blacklist": "config.properties.exclude",
}
#: What changes nothing, and why; a name that ends in a dot stands for all that begin with it.
WITHOUT_EFFECT: Final[dict[str, str]] = {
    "tasks.max": "one process copies all partitions that it has, and several share them",
    "name": "a flow is named by its clusters",
    "offset.lag.max": "offsets are translated exactly, whatever the lag",
    "refresh.groups.enabled": "groups are listed with each checkpoint",
    "refresh.groups.interval.seconds": "groups are listed with each checkpoint",
    "emit.heartbeats.enabled": "the lag says whether a flow goes on",
    "emit.heartbeats.interval.seconds": "the lag says whether a flow goes on",
    "heartbeats.topic.replication.factor": "there are no heartbeats",
    "heartbeats.replication.enabled": "there are no heartbeats",
    "sync.topic.acls.enabled": "there are no access lists yet",
    "sync.topic.acls.interval.seconds": "there are no access lists yet",
    "use.incremental.alter.configs": "settings are always changed one by one",
    "use.defaults.from": "settings that a topic of the source does not have itself stay the target's",
    "admin.timeout.ms": "the clients have time-outs of their own, such as A.admin.default.api.timeout.ms",
    "consumer.poll.timeout.ms": "nothing polls in vain",
    "add.source.alias.to.metrics": "metrics always name the source",
    "exactly.once.source.support": "every record is copied exactly once",
    "exactly.once.support": "every record is copied exactly once",
    "dedicated.mode.enable.internal.rest": "processes share their work by a group of the source",
    "errors.": "nothing is converted that could fail",
    "transforms": "batches are copied as they are",
    "predicates": "batches are copied as they are",
    "key.converter": "batches are copied as they are",
    "value.converter": "batches are copied as they are",
    "header.converter": "batches are copied as they are",
    "offset.storage.": "there is no Connect worker",
    "config.storage.": "there is no Connect worker",
    "status.storage.": "there is no Connect worker",
    "offset.flush.": "there is no Connect worker",
    "scheduled.rebalance.": "there is no Connect worker",
    "transaction.boundary": "there is no Connect worker",
    "task.": "there is no Connect worker",
    "worker.": "there is no Connect worker",
    "rest.": "there is no Connect worker",
    "listeners": "there is no Connect worker",
    "admin.listeners": "there is no Connect worker",
    "plugin.": "there is no Connect worker",
    "metric.reporters": "metrics are served by --metrics-port",
    "metrics.": "metrics are served by --metrics-port",
}
#: Classes of one's own are not run; the names of MirrorMaker 2's are what is done anyway.
_FILTERS: Final = {
    "topic.filter.class": "DefaultTopicFilter",
    "group.filter.class": "DefaultGroupFilter",
    "config.property.filter.class": "DefaultConfigPropertyFilter",
    "forwarding.admin.class": "ForwardingAdmin",
}
#: Whose defaults a copy has; MirrorMaker 2 has `source` as well, and writes those of all brokers' settings into it.
_DEFAULTS_FROM: Final = "use.defaults.from"
_CLIENTS: Final[dict[str, type[Any]]] = {
    "consumer": ConsumerSettings,
    "producer": ProducerSettings,
    "admin": AdminSettings,
}
#: What the mirror sets itself, and must.
_OWN: Final = {
    "consumer": ("group.id", "enable.auto.commit", "key.deserializer", "value.deserializer", "max.poll.records"),
    "producer": ("acks", "enable.idempotence", "key.serializer", "value.serializer", "transactional.id"),
    "admin": (),
}


class PropertyFault(SettingsError):
    """Names the property, and what is wrong with it."""


class NameFilter(NamedTuple):
    """Whole names that match a pattern of the first list and none of the second."""

    included: re.Pattern[str]
    excluded: re.Pattern[str] | None

    def takes(self, name: str) -> bool:
        if self.excluded is not None and self.excluded.fullmatch(name):
            return False
        return self.included.fullmatch(name) is not None


class FlowSettings(NamedTuple):
    """One direction between two clusters."""

    policy: ReplicationPolicy
    topics: NameFilter
    groups: NameFilter
    config_excluded: re.Pattern[str] | None
    replication_factor: int
    #: Seconds, None where it is not done at all.
    refresh_topics_s: int | None
    sync_configs_s: int | None
    checkpoints_s: int | None
    sync_groups_s: int | None
    emits_syncs: bool
    syncs_on_source: bool
    syncs_replication: int
    checkpoints_replication: int
    #: Settings of the clients, by the cluster's side and the kind of client.
    source_consumer: Mapping[str, str]
    source_producer: Mapping[str, str]
    source_admin: Mapping[str, str]
    target_consumer: Mapping[str, str]
    target_producer: Mapping[str, str]
    target_admin: Mapping[str, str]

    @property
    def name(self) -> str:
        return f"{self.policy.source}->{self.policy.target}"

    @property
    def own_group(self) -> str:
        """On the source: it shares the partitions out, and says how far the copies have come."""
        return f"ottla-mirror.{self.name}"


class Mirrors(NamedTuple):
    """All of a property file."""

    flows: list[FlowSettings]
    #: Properties of it that change nothing, with the reason.
    without_effect: dict[str, str]


def parse_mirrors(properties: Mapping[str, str], targets: Iterable[str] | None = None) -> Mirrors:
    """The flows of a property file; with `targets` only those into these clusters. Raises PropertyFault."""
    given = dict(properties)
    clusters = _listed(given.pop("clusters", ""))
    if not clusters:
        raise PropertyFault("clusters is missing: name the clusters, such as clusters = A, B")
    for alias in clusters:
        if not _ALIAS.fullmatch(alias):
            raise PropertyFault(f"clusters: {alias!r} is no alias: they are letters, digits, '-' and '_'")
    sorted_ = _SortedProperties(clusters)
    for name, value in given.items():
        sorted_.take(name, value.strip())
    wanted = clusters if targets is None else list(targets)
    for alias in wanted:
        if alias not in clusters:
            raise PropertyFault(f"--clusters: {alias} is not among the clusters of the file: {', '.join(clusters)}")
    flows = [
        _flow(source, target, sorted_)
        for source in clusters
        for target in wanted
        if source != target and _boolean(f"{source}->{target}.enabled", sorted_.of_flow(source, target)["enabled"])
    ]
    if not flows:
        raise PropertyFault(f"no flow is enabled: say A->B.enabled = true with two of {', '.join(clusters)}")
    _refuse_circles(flows)
    return Mirrors(flows, sorted_.without_effect)


class _SortedProperties:
    """Properties by what they are about."""

    def __init__(self, clusters: list[str]) -> None:
        self.clusters = clusters
        self.general: dict[str, str] = {}
        self.flows: dict[tuple[str, str], dict[str, str]] = {}
        self.by_cluster: dict[str, dict[str, str]] = {alias: {} for alias in clusters}
        self.without_effect: dict[str, str] = {}

    def take(self, name: str, value: str) -> None:
        flow, dot, rest = name.partition(".")
        source, arrow, target = flow.partition("->")
        if arrow:
            if source not in self.clusters or target not in self.clusters or not dot:
                raise PropertyFault(f"{name}: {flow} is no flow between two of {', '.join(self.clusters)}")
            self._take_of_flow(self.flows.setdefault((source, target), {}), rest, value, name)
        elif flow in self.by_cluster and dot:
            self._take_of_cluster(flow, rest, value, name)
        else:
            self._take_of_flow(self.general, name, value, name)

    def _take_of_flow(self, into: dict[str, str], name: str, value: str, shown: str) -> None:
        name = _ALIASES.get(name, name)
        client = name.partition(".")[0]
        reason = _without_effect(name)
        if name in DEFAULTS:
            into[name] = value
        elif name in _FILTERS:
            if value.rpartition(".")[2] != _FILTERS[name]:
                raise PropertyFault(f"{shown}: classes are not run here: say what is copied by topics and groups")
        elif reason is not None:
            if name == _DEFAULTS_FROM and value.lower() != "target":
                raise PropertyFault(f"{shown}: {reason}: it must be target, not {value!r}")
            self.without_effect[shown] = reason
        elif client in _CLIENTS or name in _names_of(AdminSettings) or client in {"source", "target"}:
            into[name] = value
        else:
            raise PropertyFault(f"there is no property {shown}{_nearest(name)}")

    def _take_of_cluster(self, alias: str, name: str, value: str, shown: str) -> None:
        client, _, rest = name.partition(".")
        if (client in _CLIENTS and rest) or _is_of_a_client(name):
            self.by_cluster[alias][name] = value
        elif (reason := _without_effect(name)) is not None:
            self.without_effect[shown] = reason
        elif name in DEFAULTS:
            # MirrorMaker 2 takes a flow's property with the alias of its cluster as well, and passes it over.
            self.without_effect[shown] = "properties of flows stand alone, or behind A->B."
        else:
            self.by_cluster[alias][name] = value  # the client says what it does not have

    def of_flow(self, source: str, target: str) -> dict[str, str]:
        general = {name: value for name, value in self.general.items() if name != "enabled"}
        return {**DEFAULTS, **general, **self.flows.get((source, target), {})}

    def client(self, flow: Mapping[str, str], side: str, alias: str, kind: str) -> dict[str, str]:
        """A client's settings: those of all, the cluster's, the kind's, the flow's; each comes over the ones before."""
        known = _names_of(_CLIENTS[kind])
        of_all = {name: value for name, value in self.general.items() if name in known}
        cluster = self.by_cluster[alias]
        plain = {name: value for name, value in cluster.items() if name.partition(".")[0] not in _CLIENTS}
        shared = {name: value for name, value in plain.items() if name in known or not _is_of_a_client(name)}
        found = {**of_all, **shared}
        for prefix, source in ((f"{kind}.", cluster), (f"{kind}.", flow), (f"{side}.{kind}.", flow)):
            found |= {name.removeprefix(prefix): value for name, value in source.items() if name.startswith(prefix)}
        if "bootstrap.servers" not in found:
            raise PropertyFault(f"{alias}.bootstrap.servers is missing")
        for name in _OWN[kind]:
            if name in found:
                self.without_effect[f"{alias}.{kind}.{name}"] = "the mirror sets it itself"
                del found[name]
        try:
            parse_settings(_CLIENTS[kind], found, {})
        except SettingsError as error:
            raise PropertyFault(f"{alias}, the {kind}: {error}") from error
        reset = found.get("auto.offset.reset")
        if reset is not None and reset.strip().lower() not in RESETS:
            raise PropertyFault(
                f"{alias}, the {kind}: auto.offset.reset must be {', '.join(RESETS[:-1])} or {RESETS[-1]}, "
                f"not {reset!r}"
            )
        return found


def _flow(source: str, target: str, sorted_: _SortedProperties) -> FlowSettings:
    flow = sorted_.of_flow(source, target)
    name = f"{source}->{target}"

    def clients(side: str, alias: str) -> list[dict[str, str]]:
        return [sorted_.client(flow, side, alias, kind) for kind in ("consumer", "producer", "admin")]

    def every(what: str) -> int | None:
        seconds = _whole(f"{name}.{what}.interval.seconds", flow[f"{what}.interval.seconds"], 1, SECONDS_MAX)
        return seconds if _boolean(f"{name}.{what}.enabled", flow[f"{what}.enabled"]) else None

    def factor(what: str) -> int:
        return _whole(f"{name}.{what}", flow[what], -1, 32_767)

    location = flow["offset-syncs.topic.location"]
    if location not in {"source", "target"}:
        raise PropertyFault(f"offset-syncs.topic.location must be source or target, not {location!r}")
    return FlowSettings(
        _policy(source, target, flow),
        _filter("topics", flow),
        _filter("groups", flow),
        _pattern("config.properties.exclude", flow["config.properties.exclude"]),
        factor("replication.factor"),
        every("refresh.topics"),
        every("sync.topic.configs"),
        every("emit.checkpoints"),
        every("sync.group.offsets"),
        _boolean(f"{name}.emit.offset-syncs.enabled", flow["emit.offset-syncs.enabled"]),
        location == "source",
        factor("offset-syncs.topic.replication.factor"),
        factor("checkpoints.topic.replication.factor"),
        *clients("source", source),
        *clients("target", target),
    )


def _policy(source: str, target: str, flow: Mapping[str, str]) -> ReplicationPolicy:
    named = flow["replication.policy.class"].removeprefix(_PACKAGE)
    if named not in _POLICIES:
        raise PropertyFault(
            f"replication.policy.class: {named} is not run here: there are {' and '.join(_POLICIES)} of {_PACKAGE[:-1]}"
        )
    separator = flow["replication.policy.separator"] or SEPARATOR_DEFAULT
    of_internal = _boolean(
        "replication.policy.internal.topic.separator.enabled",
        flow["replication.policy.internal.topic.separator.enabled"],
    )
    return ReplicationPolicy(
        source,
        target,
        _POLICIES[named],
        separator,
        separator if of_internal else SEPARATOR_DEFAULT,
        flow["heartbeats.topic.name"],
    )


def _refuse_circles(flows: list[FlowSettings]) -> None:
    """With names that stay, records that come back would be copied again, and a partition would have two writers."""
    onward: dict[str, list[str]] = {}
    for flow in flows:
        if flow.policy.identity:
            onward.setdefault(flow.policy.source, []).append(flow.policy.target)

    def reaches(alias: str, wanted: str, seen: set[str]) -> bool:
        for following in onward.get(alias, ()):
            if following == wanted:
                return True
            if following not in seen:
                seen.add(following)
                if reaches(following, wanted, seen):
                    return True
        return False

    for alias in onward:
        if reaches(alias, alias, set()):
            raise PropertyFault(
                f"the flows lead from {alias} back to {alias}, and by IdentityReplicationPolicy a copy has the name of "
                "its original: records would go in a circle. Use DefaultReplicationPolicy, or one direction"
            )


def _filter(name: str, flow: Mapping[str, str]) -> NameFilter:
    included = _pattern(name, flow[name])
    return NameFilter(
        re.compile(r"(?!)") if included is None else included, _pattern(f"{name}.exclude", flow[f"{name}.exclude"])
    )


def _pattern(name: str, text: str) -> re.Pattern[str] | None:
    pieces = _listed(text)
    if not pieces:
        return None
    try:
        return re.compile("|".join(f"(?:{piece})" for piece in pieces))
    except re.error as error:
        raise PropertyFault(f"{name}: {text!r} is no list of regular expressions: {error}") from error


def _listed(text: str) -> list[str]:
    return [piece for piece in (one.strip() for one in text.split(",")) if piece]


def _boolean(name: str, text: str) -> bool:
    if text.strip().lower() in {"true", "false"}:
        return text.strip().lower() == "true"
    raise PropertyFault(f"{name} must be true or false, not {text!r}")


def _whole(name: str, text: str, least: int, most: int) -> int:
    try:
        number = int(text)
    except ValueError:
        raise PropertyFault(f"{name} must be a whole number, not {text!r}") from None
    if not least <= number <= most:
        raise PropertyFault(f"{name} must be from {least} to {most}, not {number}")
    return number


def _names_of(kind: type[Any]) -> frozenset[str]:
    from dataclasses import fields

    return frozenset(one.name.replace("_", ".") for one in fields(kind))


def _is_of_a_client(name: str) -> bool:
    return any(name in _names_of(kind) for kind in _CLIENTS.values())


def _without_effect(name: str) -> str | None:
    for known, reason in WITHOUT_EFFECT.items():
        if name == known or (known.endswith(".") and name.startswith(known)):
            return reason
    return None


def _nearest(name: str) -> str:
    matches = get_close_matches(name, [*DEFAULTS, *WITHOUT_EFFECT], n=1)
    return f"; did you mean {matches[0]}?" if matches else ""
