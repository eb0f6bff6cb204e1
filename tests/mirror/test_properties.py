"""MirrorMaker 2's property files: flows, clients, filters, and what is refused or changes nothing."""

from __future__ import annotations

import pytest

from ottla.mirror.properties import DEFAULTS, PropertyFault, parse_mirrors

TWO = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a:9092",
    "B.bootstrap.servers": "b:9092",
    "A->B.enabled": "true",
}


def test_a_flow_is_what_is_enabled() -> None:
    mirrors = parse_mirrors({**TWO, "B->A.enabled": "false"})
    assert [flow.name for flow in mirrors.flows] == ["A->B"]
    both = parse_mirrors({**TWO, "B->A.enabled": "true"})
    assert [flow.name for flow in both.flows] == ["A->B", "B->A"]
    assert [flow.name for flow in parse_mirrors({**TWO, "B->A.enabled": "true"}, ["A"]).flows] == ["B->A"]


def test_a_flows_own_property_comes_before_that_of_all() -> None:
    flow = parse_mirrors({**TWO, "topics": "orders", "A->B.topics": "clicks, views.*"}).flows[0]
    assert flow.topics.takes("clicks")
    assert flow.topics.takes("views-1")
    assert not flow.topics.takes("orders")
    assert not flow.topics.takes("clicks-2"), "whole names match"


def test_what_is_excluded_is_so_whatever_is_included() -> None:
    flow = parse_mirrors({**TWO, "topics": "a.*", "topics.exclude": "ab.*"}).flows[0]
    assert flow.topics.takes("aa")
    assert not flow.topics.takes("abc")
    default = parse_mirrors(TWO).flows[0]
    assert not default.topics.takes("__consumer_offsets")
    assert not default.groups.takes("console-consumer-7")
    former = parse_mirrors({**TWO, "topics.blacklist": "x"}).flows[0]
    assert not former.topics.takes("x")


def test_a_clients_settings_come_from_its_cluster_its_kind_and_the_flow() -> None:
    flow = parse_mirrors(
        {
            **TWO,
            "request.timeout.ms": "1",
            "A.request.timeout.ms": "2",
            "A.consumer.fetch.min.bytes": "3",
            "A->B.consumer.fetch.min.bytes": "4",
            "B.producer.max.request.size": "5000000",
            "B.admin.retry.backoff.ms": "6",
        }
    ).flows[0]
    assert flow.source_consumer["request.timeout.ms"] == "2"
    assert flow.source_consumer["fetch.min.bytes"] == "4"
    assert flow.target_producer["max.request.size"] == "5000000"
    assert flow.target_producer["request.timeout.ms"] == "1"
    assert flow.target_admin == {"bootstrap.servers": "b:9092", "request.timeout.ms": "1", "retry.backoff.ms": "6"}


def test_names_that_change_nothing_are_listed_with_the_reason() -> None:
    mirrors = parse_mirrors({**TWO, "tasks.max": "10", "A->B.emit.heartbeats.enabled": "true", "A.group.id": "x"})
    assert set(mirrors.without_effect) >= {"tasks.max", "A->B.emit.heartbeats.enabled"}
    assert all(mirrors.without_effect.values())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("admin.timeout.ms", "120000"),
        ("A->B.admin.timeout.ms", "120000"),
        ("use.defaults.from", "target"),
        ("A->B.use.defaults.from", "target"),
        ("heartbeats.replication.enabled", "false"),
    ],
)
def test_names_of_mirrormaker_that_say_what_is_done_anyway_are_taken(name: str, value: str) -> None:
    assert list(parse_mirrors({**TWO, name: value}).without_effect) == [name]


def test_the_class_of_admin_clients_that_mirrormaker_has_by_default_is_taken() -> None:
    name = "forwarding.admin.class"
    assert parse_mirrors({**TWO, name: "org.apache.kafka.clients.admin.ForwardingAdmin"}).flows
    with pytest.raises(PropertyFault, match=name):
        parse_mirrors({**TWO, name: "com.example.Mine"})


def test_seconds_are_none_where_it_is_not_done() -> None:
    flow = parse_mirrors({**TWO, "refresh.topics.enabled": "false", "sync.group.offsets.interval.seconds": "7"}).flows[
        0
    ]
    assert flow.refresh_topics_s is None
    assert flow.sync_groups_s is None
    assert flow.checkpoints_s == int(DEFAULTS["emit.checkpoints.interval.seconds"])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"clusters": ""}, "clusters is missing"),
        ({"clusters": "A, B, C->D"}, "is no alias"),
        ({"A->B.enabled": "yes"}, "true or false"),
        ({"A->B.enabled": "false"}, "no flow is enabled"),
        ({"A->C.enabled": "true"}, "no flow between"),
        ({"topics.exlude": "x"}, "did you mean topics.exclude"),
        ({"topics": "("}, "no list of regular expressions"),
        ({"replication.factor": "two"}, "whole number"),
        ({"replication.factor": "40000"}, "from -1 to 32767"),
        ({"offset-syncs.topic.location": "middle"}, "source or target"),
        ({"replication.policy.class": "com.example.Mine"}, "is not run here"),
        ({"topic.filter.class": "com.example.Mine"}, "classes are not run here"),
        ({"use.defaults.from": "source"}, "use.defaults.from: settings that a topic of the source does not have"),
        ({"A.bootstrap.servers": "a"}, "no host:port"),
        ({"A.security.protocol": "SSL"}, "security.protocol"),
        ({"A.consumer.fetch.min.bites": "1"}, "A, the consumer: there is no setting"),
        ({"A.consumer.auto.offset.reset": "oldest"}, "must be earliest, latest or none, not 'oldest'"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(more: dict[str, str], said: str) -> None:
    with pytest.raises(PropertyFault, match=said):
        parse_mirrors({**TWO, **more})


def test_a_cluster_without_addresses_is_refused() -> None:
    with pytest.raises(PropertyFault, match=r"B\.bootstrap\.servers is missing"):
        parse_mirrors({name: value for name, value in TWO.items() if not name.startswith("B.")})


def test_flows_that_lead_back_are_refused_where_names_stay() -> None:
    identity = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
    assert parse_mirrors({**TWO, **identity}).flows[0].policy.identity
    with pytest.raises(PropertyFault, match="in a circle"):
        parse_mirrors({**TWO, **identity, "B->A.enabled": "true"})
    three = {**TWO, "clusters": "A, B, C", "C.bootstrap.servers": "c:1", "B->C.enabled": "true"}
    assert len(parse_mirrors({**three, **identity}).flows) == 2
    with pytest.raises(PropertyFault, match="in a circle"):
        parse_mirrors({**three, **identity, "C->A.enabled": "true"})
