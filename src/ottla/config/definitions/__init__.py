"""Every property of Kafka 4.3, of its ZooKeeper mode (3.9), and our few own: name, type, default, range, meaning.

The tables are text, two lines a property, because there are four hundred of them and a call a property would make nine
lines of each. The first line of an entry has, separated by two spaces:

    name  type  default  rule  importance  update mode  status  [internal]

`-` is "none", `""` is the empty string; rule and status are explained at `ottla.config.values.Definition`. Tables are
parsed on first use, in about two milliseconds.
"""

from __future__ import annotations

from functools import cache

from ottla.config.values import Definition


@cache
def broker_definitions() -> dict[str, Definition]:
    from ottla.config.definitions import (
        broker,
        groups,
        log,
        network,
        ottla,
        quorum,
        replication,
        security,
        share_groups,
        tiered_storage,
        transactions,
        zookeeper,
    )

    subjects = (
        broker,
        groups,
        log,
        network,
        ottla,
        quorum,
        replication,
        security,
        share_groups,
        tiered_storage,
        transactions,
        zookeeper,
    )
    definitions: dict[str, Definition] = {}
    for subject in subjects:
        read = _read(subject.TABLE)
        assert definitions.keys().isdisjoint(read)
        definitions.update(read)
    return definitions


#: What Kafka 4.3 knows beside its table of brokers' properties: the authorizer's, and rates that only change live.
_BESIDE = (
    "allow.everyone.if.no.acl.found",
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
    "super.users",
)


@cache
def listed_when_set() -> frozenset[str]:
    """Properties that a list of all shows only where they are set, as Kafka's does: these, and those of ZooKeeper."""
    from ottla.config.definitions import zookeeper

    return frozenset({*_BESIDE, *_read(zookeeper.TABLE)})


@cache
def topic_definitions() -> dict[str, Definition]:
    from ottla.config.definitions import topic

    return _read(topic.TABLE)


@cache
def group_definitions() -> dict[str, Definition]:
    from ottla.config.definitions import group

    return _read(group.TABLE)


def definitions_of(kind: str) -> dict[str, Definition]:
    """Of a "broker", a "topic" or a "group"."""
    tables = {"broker": broker_definitions, "topic": topic_definitions, "group": group_definitions}
    return tables[kind]()


def nearest(name: str, kind: str) -> str | None:
    """The known name that looks most like an unknown one, or None where none comes close."""
    from difflib import get_close_matches

    known = definitions_of(kind)
    # Only the start matters, and difflib takes quadratic time: a client may send a name of 32 KB.
    found = get_close_matches(name[:100], known, n=1, cutoff=0.6)
    return found[0] if found else None


def _read(table: str) -> dict[str, Definition]:
    lines = table.splitlines()
    definitions = {}
    for entry, documentation in zip(lines[::2], lines[1::2], strict=True):
        name, kind, default, rule, importance, update_mode, status, *more = entry.split("  ")
        definitions[name] = Definition(
            name,
            kind,
            None if default == "-" else default.strip('"'),
            None if rule == "-" else rule,
            importance,
            update_mode,
            status,
            bool(more),
            documentation.strip(),
        )
    return definitions
