"""What administrators ask about settings and topics, rightly and wrongly, one subject a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ottla.config.definitions import broker_definitions
from ottla.config.values import Definition
from ottla.protocol.generated import describe_client_quotas as quotas
from ottla.protocol.generated.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.generated.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.protocol.generated.describe_acls import DescribeAclsRequest
from ottla.protocol.generated.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic
from tests.interop.admin_talk import BROKER, GROUP, OWN, TOPIC, AdminTalk

SET, DELETE, APPEND, SUBTRACT = range(4)

#: What a formatted Kafka keeps for all brokers: it may not be taken away.
KEPT: Final = {"": (("min.insync.replicas", "1"),), OWN: ()}

Question = Callable[[AdminTalk], None]

#: For properties that have no default that could be set.
EXAMPLES: Final = {"INT": "1", "LONG": "1", "SHORT": "1", "BOOLEAN": "true", "DOUBLE": "0.5"}
#: Kafka answers by what its own process is: its listeners, its metadata features, its classes, its quorum.
OF_ITS_OWN: Final = {
    "advertised.listeners",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "cordoned.log.dirs",
    "listener.security.protocol.map",
    "listeners",
    "max.connections.per.ip.overrides",
    "metric.reporters",
    "min.insync.replicas",
    "node.id",
    "process.roles",
}


#: A property's name as it is set, and of whom.
FORMS: Final = (
    ("NAME", OWN),
    ("NAME", ""),
    ("listener.name.nowhere.NAME", OWN),
    ("listener.name.plaintext.NAME", OWN),
    ("listener.name.plaintext.plain.NAME", OWN),
    ("listener.name.plaintext.NAME", ""),
)


def one_property(talk: AdminTalk, name: str, value: str) -> tuple[str, ...]:
    """What each form is answered, without the name and the value."""
    before = len(talk.lines)
    for form, whose in FORMS:
        talk.set(BROKER, whose, (form.replace("NAME", name), SET, value))
    said = [line for line in talk.lines[before:] if line.startswith("  ")]
    del talk.lines[before:]
    return tuple(
        f"  {form} of {whose!r}:{line}".replace(f"Invalid value {value} ", "Invalid value VALUE ")
        .replace(f"Class {value} ", "Class VALUE ")
        .replace(name, "NAME")
        for (form, whose), line in zip(FORMS, said, strict=True)
    )


def grouped(talk: AdminTalk, values: Mapping[str, str]) -> None:
    """Each way to be answered, under the names of the properties that are."""
    by_answers: dict[tuple[str, ...], list[str]] = {}
    for name, value in values.items():
        by_answers.setdefault(one_property(talk, name, value), []).append(name)
    for answers, names in by_answers.items():
        talk.lines += [*sorted(names), *answers]


def every_property_of_brokers(talk: AdminTalk) -> None:
    grouped(
        talk,
        {
            name: definition.default or EXAMPLES.get(definition.type, "x")
            for name, definition in kafkas_properties().items()
        },
    )


def every_property_of_brokers_with_nonsense(talk: AdminTalk) -> None:
    grouped(talk, {name: "nonsense" for name, each in kafkas_properties().items() if each.type in EXAMPLES})


def kafkas_properties() -> dict[str, Definition]:
    """Those that Kafka 4.3 knows."""
    from ottla.config.definitions import listed_when_set

    return {
        name: definition
        for name, definition in broker_definitions().items()
        if name not in OF_ITS_OWN | listed_when_set() and not name.startswith("ottla.")
    }


def settings_of_a_topic(talk: AdminTalk) -> None:
    for name, value in (
        *(("retention.ms", text) for text in ("soon", "-5", "", " 7 ", "9" * 40, None)),
        *(("cleanup.policy", text) for text in ("shred", "compact,shred,drop", "delete,,x", "delete,delete", "")),
        *(("compression.gzip.level", text) for text in ("0", "10", "9")),
        *(("min.cleanable.dirty.ratio", text) for text in ("2", "-1", "x", "0.25")),
        *(("leader.replication.throttled.replicas", text) for text in ("x", "0:1,y", "*", "*,0:1", "0:1,2:3")),
        *(("segment.bytes", text) for text in ("1", "99999999999")),
        ("compression.type", "zip"),
        ("compression.type", "none"),
        ("compression.lz4.level", "18"),
        ("preallocate", "maybe"),
        ("max.message.bytes", "-1"),
        ("message.timestamp.type", "Now"),
        ("remote.storage.enable", "true"),
        ("remote.log.copy.disable", "true"),
        ("local.retention.ms", "-3"),
        ("min.insync.replicas", "0"),
        ("internal.segment.bytes", "5"),
        ("unclean.leader.election.enable", "true"),
    ):
        talk.set(TOPIC, "t", (name, SET, value))
        if value is not None:
            talk.replace(TOPIC, "t", (name, value))


def lists_of_a_topic(talk: AdminTalk) -> None:
    for name, operation, value in (
        ("cleanup.policy", APPEND, "shred"),
        ("cleanup.policy", APPEND, "compact,shred"),
        ("cleanup.policy", APPEND, "compact"),
        ("cleanup.policy", APPEND, "delete"),
        ("cleanup.policy", APPEND, "compact,compact"),
        ("cleanup.policy", APPEND, ""),
        ("cleanup.policy", APPEND, ","),
        ("cleanup.policy", SUBTRACT, "delete"),
        ("cleanup.policy", SUBTRACT, "shred"),
        ("leader.replication.throttled.replicas", APPEND, "x"),
        ("leader.replication.throttled.replicas", APPEND, "0:1"),
        ("leader.replication.throttled.replicas", SUBTRACT, "0:1"),
        ("retention.ms", APPEND, "5"),
        ("retention.ms", SUBTRACT, "5"),
        ("nope", APPEND, "x"),
        ("nope", DELETE, None),
        ("retention.ms", DELETE, "x"),
    ):
        talk.set(TOPIC, "t", (name, operation, value))


def settings_that_do_not_go_together(talk: AdminTalk) -> None:
    lags = (("min.compaction.lag.ms", "20"), ("max.compaction.lag.ms", "10"))
    talk.set(TOPIC, "t", *((name, SET, value) for name, value in lags))
    talk.replace(TOPIC, "t", *lags)
    talk.create("n", min_compaction_lag_ms="20", max_compaction_lag_ms="10")
    talk.set(TOPIC, "t", ("remote.log.copy.disable", SET, "true"), ("remote.storage.enable", SET, "true"))
    talk.set(TOPIC, "t", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    talk.set(TOPIC, "t", ("retention.ms", SET, "1"), ("retention.ms", DELETE, None))
    talk.set(TOPIC, "t", ("retention.ms", SET, None), ("segment.ms", SET, None))
    talk.set(BROKER, OWN, ("num.io.threads", SET, "9"), ("num.io.threads", SET, "8"))
    talk.set(BROKER, OWN, ("num.io.threads", SET, None), ("background.threads", SET, None))
    talk.set(BROKER, OWN, ("broker.rack", SET, "x"), ("broker.id", SET, "7"))
    talk.replace(BROKER, OWN, ("broker.rack", "x"), ("broker.id", "7"))
    talk.set(BROKER, OWN, ("broker.rack", SET, "x"), ("num.io.threads", SET, "x"))
    talk.set(BROKER, OWN, ("log.cleaner.threads", SET, "9999"))
    talk.set(BROKER, OWN, ("max.connections.per.ip", SET, "0"))
    for kind, name in ((TOPIC, "t"), (TOPIC, "nope"), (BROKER, OWN), (BROKER, ""), (GROUP, "g")):
        talk.set(kind, name, times=2)
        talk.set(kind, name)
        talk.replace(kind, name, *(KEPT[name] if kind == BROKER else ()))


def settings_of_a_broker(talk: AdminTalk) -> None:
    for name, operation, value in (
        ("num.io.threads", SET, "0"),
        ("num.io.threads", SET, "x"),
        ("num.io.threads", SET, None),
        ("num.io.threads", APPEND, "1"),
        ("num.io.threads", 9, "1"),
        ("broker.rack", DELETE, None),
        ("broker.rack", APPEND, "x"),
        ("log.cleanup.policy", SET, "shred"),
        ("log.cleanup.policy", APPEND, "shred"),
        ("log.cleanup.policy", APPEND, "compact"),
        ("log.cleanup.policy", SUBTRACT, "delete"),
        ("log.retention.ms", SET, "0"),
        ("log.retention.ms", SET, "-2"),
        ("log.roll.ms", SET, "0"),
        ("unknown.thing", SET, "x"),
        ("unknown.thing", SET, None),
        ("unknown.thing", APPEND, "x"),
        ("unknown.thing", DELETE, None),
        ("ssl.keystore.type", DELETE, None),
        ("sasl.enabled.mechanisms", APPEND, "PLAIN"),
        ("sasl.login.refresh.window.factor", SET, "7"),
        ("ssl.client.auth", SET, "often"),
        ("ssl.enabled.protocols", SET, ""),
        ("principal.builder.class", SET, "not.There"),
        ("listener.name.x.ssl.engine.factory.class", SET, "not.There"),
        (
            "listener.name.x.ssl.engine.factory.class",
            SET,
            "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory",
        ),
        ("listener.name.x.principal.builder.class", SET, "not.There"),
        ("listener.name.x.max.connections", SET, "x"),
        ("listener.name.x.max.connections", SET, "-1"),
        ("listener.name.x.max.connections", SET, "5"),
        ("listener.name.x.num.io.threads", SET, "0"),
        ("listener.name.x", SET, "zz"),
        ("listener.name.", SET, "zz"),
        ("listener.name.x.", SET, "zz"),
        ("listener.name.x.nope", SET, "zz"),
        ("listener.name.x.sasl.enabled.mechanisms", APPEND, "PLAIN"),
        ("log.cleaner.dedupe.buffer.size", SET, "5"),
        ("cordoned.log.dirs", SET, "x"),
        ("group.consumer.assignment.interval.ms", SET, "99999"),
    ):
        for who in (OWN, ""):
            talk.set(BROKER, who, (name, operation, value))
            if operation == SET and value is not None:
                talk.replace(BROKER, who, (name, value), *KEPT[who])


def dynamic_settings_are_described(talk: AdminTalk) -> None:
    changes = (
        ("unknown.thing", "x"),
        ("listener.name.plaintext.ssl.keystore.type", "JKS"),
        ("listener.name.plaintext.broker.rack", "zz"),
        ("listener.name.nowhere.ssl.client.auth", "none"),
        ("listener.name.plaintext.plain.sasl.jaas.config", "secret"),
        ("listener.name.plaintext.max.connections", "55"),
        ("listener.name.plaintext.nope", "7"),
    )
    of_all = (("listener.name.plaintext.max.connections", "66"), ("unknown.all", "q"))
    names = (*(name for name, _ in changes), "unknown.all", "never.heard.of")
    talk.set(BROKER, OWN, *((name, SET, value) for name, value in changes), validate_only=False)
    talk.set(BROKER, "", *((name, SET, value) for name, value in of_all), validate_only=False)
    talk.describe(BROKER, OWN, *names)
    talk.describe(BROKER, "", *names)
    talk.set(BROKER, OWN, *((name, DELETE, None) for name, _ in changes), validate_only=False)
    talk.set(BROKER, "", *((name, DELETE, None) for name, _ in of_all), validate_only=False)


def names_of_resources(talk: AdminTalk) -> None:
    for kind in (TOPIC, BROKER, GROUP):
        for name in ("", "nope", "..", ".", "x" * 250, "77", "-1", "a b", "9" * 12):
            talk.set(kind, name, ("retention.ms", SET, "5"))
            talk.replace(kind, name, ("retention.ms", "5"), *(KEPT.get(name, ()) if kind == BROKER else ()))
            talk.set(kind, name)
            talk.describe(kind, name, "retention.ms")
    for kind in (0, 1, 3, 5, 64, 127, -1):
        talk.set(kind, "x", ("retention.ms", SET, "5"))
        talk.replace(kind, "x", ("retention.ms", "5"))


def what_is_described(talk: AdminTalk) -> None:
    talk.describe(TOPIC, "t", "min.insync.replicas")
    talk.describe(TOPIC, "t", "retention.bytes", "retention.bytes", "nope", times=2)
    talk.describe(BROKER, OWN, "min.insync.replicas", "broker.id")
    talk.describe(BROKER, "", "min.insync.replicas")
    talk.describe(TOPIC, "nope", times=2)


GROUP_SETTINGS: Final = (
    "consumer.assignment.interval.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "share.assignment.interval.ms",
    "share.auto.offset.reset",
    "share.delivery.count.limit",
    "share.heartbeat.interval.ms",
    "share.isolation.level",
    "share.partition.max.record.locks",
    "share.record.lock.duration.ms",
    "share.renew.acknowledge.enable",
    "share.session.timeout.ms",
    "streams.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.initial.rebalance.delay.ms",
    "streams.num.standby.replicas",
    "streams.session.timeout.ms",
)
GROUP_TEXTS: Final = (
    *("-1", "0", "1", "2", "3", "10", "11", "100", "1000", "1001", "4999", "5000", "14999", "15000", "15001"),
    *("44999", "45000", "60000", "60001", "3600001", "x", "true", "latest", "earliest", "none", ""),
    *("by_duration:PT1H", "by_duration:x", "by_duration:-PT1H", "by_duration:", "by_duration:P1DT2H3M4.5S"),
    *("read_committed", "read_uncommitted", "READ_COMMITTED", "LATEST"),
)


def settings_of_a_group(talk: AdminTalk) -> None:
    for name in GROUP_SETTINGS:
        for text in GROUP_TEXTS:
            talk.set(GROUP, "g", (name, SET, text))
        talk.set(GROUP, "g", (name, SET, None))
        talk.set(GROUP, "g", (name, DELETE, None))
        talk.set(GROUP, "g", (name, APPEND, "5"))
        talk.replace(GROUP, "g", (name, "15000"))
    for change in (("nope", SET, "x"), ("nope", DELETE, None), ("nope", APPEND, "x")):
        talk.set(GROUP, "g", change)
    talk.replace(GROUP, "g", ("nope", "x"))
    one = ("consumer.session.timeout.ms", SET, "50000")
    talk.set(GROUP, "g", one, one)
    talk.set(GROUP, "g", one, times=2)
    for name in ("a/b", "..", "\u00fc\n", "\U0001f600", "%2F", "x" * 300):
        talk.set(GROUP, name, one)


def a_groups_settings_are_described(talk: AdminTalk) -> None:
    talk.describe(GROUP, "never-seen")
    for name in ("g", "a/b c"):
        talk.set(
            GROUP,
            name,
            ("consumer.session.timeout.ms", SET, " 050000"),
            ("streams.num.standby.replicas", SET, "1"),
            validate_only=False,
        )
        talk.describe(GROUP, name)
        talk.describe(GROUP, name, "consumer.session.timeout.ms", "nope")
        talk.set(GROUP, name, ("streams.num.standby.replicas", DELETE, None), validate_only=False)
        talk.describe(GROUP, name, "streams.num.standby.replicas", "consumer.session.timeout.ms")
        talk.set(GROUP, name, ("consumer.session.timeout.ms", DELETE, None), validate_only=False)
        talk.describe(GROUP, name, "consumer.session.timeout.ms")


def more_partitions(talk: AdminTalk) -> None:
    for name, count, places in (
        ("nope", 3, None),
        ("..", 3, None),
        ("", 3, None),
        *(("t", count, None) for count in (-1, 0, 1, 2)),
        ("t", 2, [[OWN]]),
        ("t", 3, [[OWN]]),
        ("t", 2, [[OWN], [OWN]]),
        ("t", 2, [[]]),
        ("t", 2, [["77"]]),
        ("t", 2, [[OWN, OWN]]),
        ("t", 3, [[OWN], [OWN, "77"]]),
        ("t", 2, []),
    ):
        talk.grow((name, count, places))
    talk.grow(("t", 2, None), ("t", 3, None))
    talk.grow(("t", 2, None), ("t", 3, None), ("nope", 2, None), ("t", 3, None))


def new_topics(talk: AdminTalk) -> None:
    for name in ("t", "a b", "..", ".", "", "n"):
        talk.create(name)
    for partitions, copies in ((0, 1), (-2, 1), (1, 0), (1, -2), (-1, -1)):
        talk.create("n", partitions, copies)
    talk.create("n", times=2)
    talk.create("n", retention_ms="x")
    talk.create("n", retention_ms=None)
    talk.create("n", remote_storage_enable="true")
    talk.create("n", cleanup_policy="compact,shred")
    talk.create("n", leader_replication_throttled_replicas="x")


def topics_that_there_are_not(talk: AdminTalk) -> None:
    names = ("made-on-demand", "made-on-demand", "a b", "..", "", "__cluster_metadata", "t")
    for version in (0, 4, 9, 12, 13):
        for creates in (False, True) if version >= 4 else (True,):
            asked = [MetadataRequestTopic(name=f"{name}-{version}" if name[:4] == "made" else name) for name in names]
            answer = talk.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=creates), version)
            talk.lines.append(f"metadata {creates} v{version}")
            talk.lines += sorted(f"  {each.error_code} {each.name!r}" for each in answer.topics)


def access_lists(talk: AdminTalk) -> None:
    rule = AclCreation(
        resource_type=2,
        resource_name="t",
        resource_pattern_type=3,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    odd = AclCreation(resource_type=99, resource_pattern_type=77, operation=55, permission_type=44)
    for version in (1, 2, 3):
        for kind, pattern, operation, permission in ((1, 1, 1, 1), (99, 77, 55, 44), (2, 3, 2, 3)):
            look = DescribeAclsRequest(
                resource_type_filter=kind,
                resource_name_filter=None,
                pattern_type_filter=pattern,
                principal_filter=None,
                host_filter=None,
                operation=operation,
                permission_type=permission,
            )
            talk.say_all(f"describe access {kind}", look, version)
            gone = DeleteAclsFilter(
                resource_type_filter=kind,
                resource_name_filter=None,
                pattern_type_filter=pattern,
                principal_filter=None,
                host_filter=None,
                operation=operation,
                permission_type=permission,
            )
            talk.say_all(f"delete access {kind}", DeleteAclsRequest(filters=[gone, gone]), version)
        talk.say_all("delete no access", DeleteAclsRequest(filters=[]), version)
        for rules in ([], [rule, rule], [odd]):
            talk.say_all(f"create access {len(rules)}", CreateAclsRequest(creations=rules), version)


def quotas_and_passwords(talk: AdminTalk) -> None:
    for version in (0, 1):
        for strict in (False, True):
            for parts in (
                [],
                [("user", 0, "a")],
                [("user", 1, None)],
                [("user", 2, None)],
                [("client-id", 2, None), ("user", 0, "b")],
                [("ip", 0, "127.0.0.1")],
                [("ip", 0, "not an address")],
                [("ip", 1, None)],
                [("ip", 0, "127.0.0.1"), ("user", 0, "a")],
                [("client-id", 0, "c"), ("ip", 2, None)],
                [("bad", 0, "a")],
                [("", 0, "a")],
                [("user", 7, "a")],
                [("user", 0, None)],
                [("user", 1, "x")],
                [("user", 2, "x")],
                [("user", 0, "a"), ("user", 0, "b")],
                [("user", 0, "a"), ("bad", 0, "b")],
                [("bad", 0, "b"), ("", 0, "b")],
                [("ip", 7, "a"), ("user", 0, "a")],
            ):
                components = [
                    quotas.ComponentData(entity_type=kind, match_type=match, match=text) for kind, match, text in parts
                ]
                request = quotas.DescribeClientQuotasRequest(components=components, strict=strict)
                talk.say_all(f"quotas {parts} {strict}", request, version)
    for users in (None, [], ["a"], [""], ["b", "a"], ["a", "b", "a"]):
        names = None if users is None else [UserName(name=user) for user in users]
        talk.say_all(f"passwords of {users}", DescribeUserScramCredentialsRequest(users=names), 0)


QUESTIONS: Final[dict[str, Question]] = {
    question.__name__.replace("_", " "): question
    for question in (
        every_property_of_brokers,
        every_property_of_brokers_with_nonsense,
        settings_of_a_topic,
        lists_of_a_topic,
        settings_that_do_not_go_together,
        settings_of_a_broker,
        dynamic_settings_are_described,
        names_of_resources,
        what_is_described,
        settings_of_a_group,
        a_groups_settings_are_described,
        more_partitions,
        new_topics,
        topics_that_there_are_not,
        access_lists,
        quotas_and_passwords,
    )
}
