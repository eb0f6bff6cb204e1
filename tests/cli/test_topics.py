"""Topics, settings and the cluster from the command line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer

from ottla.cli import faults
from ottla.cli.topic.delete import _planned
from ottla.client import Admin
from ottla.client.admin.results import PartitionDescription, TopicDescription
from ottla.testing import InProcessBroker
from tests.cli.conftest import Command


def fill(broker: InProcessBroker, topic: str, count: int, partition: int = 0) -> None:
    """Records `0`, `1`, ... with times of as many seconds."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        producer.produce(topic, str(number), partition=partition, timestamp=1_000_000 + number * 1000)
    assert producer.flush(30) == 0


KEPT = pytest.mark.ottla_topic(configs={"retention.ms": "-1"})
TWO_KEPT = pytest.mark.ottla_topic(partitions=2, configs={"retention.ms": "-1"})


def test_create_describe_alter_delete(ottla: Command) -> None:
    assert ottla("topic", "create", "life", "--partitions", "2", "--config", "retention.ms=1000").code == 0
    (described,) = json.loads(ottla("topic", "describe", "life", "-o", "json").out)
    assert described["configs"] == {"retention.ms": "1000"}
    assert [each["partition"] for each in described["partitions"]] == [0, 1]
    assert ottla("topic", "alter", "--topic", "life", "--partitions", "3").out == "life now has 3 partitions\n"
    ran = ottla("topic", "delete", "life", "--yes")
    assert (ran.code, ran.lines[-1]) == (0, "deleted life")
    assert ottla("topic", "describe", "life").code == faults.NOT_FOUND


def test_create_says_what_it_made(ottla: Command) -> None:
    ran = ottla("topic", "create", "made", "--partitions", "2", "--replication-factor", "1", "-o", "yaml")
    assert yaml.safe_load(ran.out) == {"topic": "made", "created": True, "partitions": 2, "replicas": 1}
    ottla("topic", "delete", "made", "--yes")


def test_create_what_exists(ottla: Command, topic: str) -> None:
    ran = ottla("topic", "create", topic)
    assert ran.code == faults.EXISTS
    assert "--if-not-exists" in ran.err
    ran = ottla("topic", "create", topic, "--if-not-exists")
    assert (ran.code, ran.out) == (0, f"{topic} exists already\n")


def test_what_was_made_is_said_where_another_failed(ottla: Command, topic: str) -> None:
    for form in ("json", "yaml", "table"):
        made = f"{topic}-{form}"
        ran = ottla("topic", "create", made, topic, "-o", form)
        assert (ran.code, f"1 of 2 failed: {topic}" in ran.err) == (faults.EXISTS, True), ran.err
        assert made in ran.out, ran.out
    assert json.loads(ottla("topic", "create", f"{topic}-x", topic, "-o", "json").out)[0]["topic"] == f"{topic}-x"


def test_what_went_is_said_where_another_stayed(ottla: Command, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ottla("topic", "create", f"{topic}-2").code == 0
    delete = Admin.delete_topics

    async def late(admin: Admin, names: list[str]) -> None:
        await delete(admin, names[:1])  # somebody else was faster
        await delete(admin, names)

    monkeypatch.setattr(Admin, "delete_topics", late)
    ran = ottla("topic", "delete", topic, f"{topic}-2", "--yes")
    assert ran.code != 0
    assert f"1 of 2 failed: {topic}: there is no such topic" in ran.err
    assert ran.lines[-1] == f"deleted {topic}-2"


def test_what_grew_is_said_where_another_was_refused(
    ottla: Command, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ottla("topic", "create", f"{topic}-2").code == 0
    create = Admin.create_partitions

    async def late(admin: Admin, counts: dict[str, int], *, validate_only: bool) -> None:
        await create(admin, {topic: counts[topic]})  # somebody else was faster
        await create(admin, counts, validate_only=validate_only)

    monkeypatch.setattr(Admin, "create_partitions", late)
    ran = ottla("topic", "add-partitions", topic, f"{topic}-2", "--num", "1")
    assert (ran.code, f"1 of 2 failed: {topic}: " in ran.err) == (faults.FAILED, True), ran
    assert ran.out == f"{topic}-2 now has 2 partitions\n"


def test_how_much_goes_is_unknown_where_a_partition_is_not_led() -> None:
    lost = PartitionDescription(
        partition=0, leader=None, leader_epoch=0, replicas=(7,), isr=(7,), offline_replicas=(7,)
    )

    class Known:
        cluster = None

        async def describe_topic(self, name: str) -> TopicDescription:
            return TopicDescription(name=name, topic_id=bytes(16), internal=False, partitions=(lost,))

    row = asyncio.run(_planned(Known(), "t"))  # type: ignore[arg-type]
    assert row == {"topic": "t", "partitions": 1, "offsets": None}


def test_a_dry_run_creates_nothing(ottla: Command, ottla_broker: InProcessBroker) -> None:
    assert ottla("topic", "create", "never", "--dry-run").code == 0
    assert "never" not in ottla_broker.topics()


def test_brokers_of_partitions_can_be_chosen(ottla: Command, ottla_broker: InProcessBroker) -> None:
    (broker,) = json.loads(ottla("cluster", "describe", "-o", "json").out)["brokers"]
    placed = f"{broker['id']},{broker['id']}"
    assert ottla("topic", "create", "placed", "--replica-assignment", placed).code == 0
    assert ottla("topic", "alter", "placed", "--partitions", "3", "--replica-assignment", str(broker["id"])).code == 0
    assert ottla("topic", "create", "elsewhere", "--replica-assignment", "4711").code == faults.FAILED
    ran = ottla("topic", "create", "elsewhere", "--replica-assignment", "99999999999:1")
    assert (ran.code, ran.err) == (
        faults.USAGE,
        "ottla: --replica-assignment: brokers' ids are from 0 to 2147483647, not 99999999999\n",
    )
    ottla_broker.delete_topic("placed")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["create", "t", "--config", "retention.ms=soon"], "Invalid value soon for configuration retention.ms"),
        (["create", "t", "--replication-factor", "2"], "only 1 broker(s) are registered"),
    ],
)
def test_what_the_broker_refuses(ottla: Command, words: list[str], said: str) -> None:
    ran = ottla("topic", *words)
    assert (ran.code, ran.err.count("\n")) == (faults.FAILED, 1)
    assert said in ran.err


def test_a_name_that_no_topic_can_have(ottla: Command) -> None:
    ran = ottla("topic", "describe", "ä b")
    assert ran.code == faults.FAILED
    assert ran.err == (
        "ottla: ä b: no topic can have this name; names are ASCII letters, digits, '.', '_' and '-', 249 characters at "
        "most\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        ["describe", "none"],
        ["alter", "none", "--partitions", "2"],
        ["delete", "none"],
        ["trim", "none", "--before", "1"],
    ],
)
def test_a_topic_that_is_not_there(ottla: Command, words: list[str]) -> None:
    ran = ottla("topic", *words)
    assert ran.code == faults.NOT_FOUND
    assert ran.err == "ottla: none: there is no such topic or partition; `ottla topic list` names the topics\n"


def test_what_is_not_there_may_be_passed_over(ottla: Command) -> None:
    assert ottla("topic", "delete", "none", "--if-exists").lines[-1] == "nothing to delete"
    assert ottla("topic", "alter", "none", "--partitions", "2", "--if-exists").code == 0


@pytest.mark.ottla_topic(partitions=3)
def test_list(ottla: Command, topic: str) -> None:
    # Other tests leave topics at the same broker.
    listed = json.loads(ottla("topic", "list", "--exclude-internal", "-o", "json").out)
    assert {"topic": topic, "partitions": 3, "replicas": 1, "internal": False} in listed
    assert not any(each["internal"] for each in listed)
    shown = [line.split() for line in ottla("topic", "list", "--exclude-internal").lines]
    assert shown[0] == ["TOPIC", "PARTITIONS", "REPLICAS"]
    assert [topic, "3", "1"] in shown


@KEPT
def test_describe_shows_offsets_and_only_what_needs_attention(
    ottla: Command, ottla_broker: InProcessBroker, topic: str
) -> None:
    fill(ottla_broker, topic, 5)
    (described,) = json.loads(ottla("topic", "describe", topic, "--offsets", "-o", "json").out)
    assert [(each["start"], each["end"]) for each in described["partitions"]] == [(0, 5)]
    assert ottla("topic", "describe", topic, "--offsets").lines[1].split()[-2:] == ["START", "END"]
    for option in ("--unavailable-partitions", "--unavailable", "--under-replicated", "--under-replicated-partitions"):
        assert json.loads(ottla("topic", "describe", topic, option, "-o", "json").out) == []


@TWO_KEPT
def test_deleting_shows_a_plan_and_waits_for_yes(ottla: Command, ottla_broker: InProcessBroker, topic: str) -> None:
    fill(ottla_broker, topic, 3, partition=1)
    ran = ottla("topic", "delete", topic)
    assert ran.code == faults.NOT_CONFIRMED
    assert "add --yes" in ran.err
    assert ran.lines[-1].split() == [topic, "2", "3"]
    assert topic in ottla_broker.topics()


@TWO_KEPT
def test_trim_shows_a_plan_and_waits_for_yes(ottla: Command, ottla_broker: InProcessBroker, topic: str) -> None:
    fill(ottla_broker, topic, 10)
    fill(ottla_broker, topic, 4, partition=1)

    def starts() -> list[int]:
        (described,) = json.loads(ottla("topic", "describe", topic, "--offsets", "-o", "json").out)
        return [each["start"] for each in described["partitions"]]

    ran = ottla("topic", "trim", topic, "--before", "3", "-o", "json")
    assert ran.code == faults.NOT_CONFIRMED
    assert [(each["start"], each["end"], each["new_start"]) for each in json.loads(ran.out)] == [(0, 10, 3), (0, 4, 3)]
    assert starts() == [0, 0]
    assert ottla("topic", "trim", topic, "--before", "3", "--partition", "0", "--yes").code == 0
    assert starts() == [3, 0]
    assert ottla("topic", "trim", topic, "--before", "-2", "--yes").code == 0
    assert starts() == [8, 2]
    assert ottla("topic", "trim", topic, "--before", "@1009000", "--partition", "0", "--yes").code == 0
    assert starts() == [9, 2]
    ran = ottla("topic", "trim", topic, "--before", "start")
    assert (ran.code, ran.lines[0]) == (0, "nothing lies below these offsets:")
    ran = ottla("topic", "trim", topic, "--before", "11", "--yes")
    assert (ran.code, ran.err) == (1, f"ottla: {topic}-0 ends at 10: 11 is beyond; `end` deletes everything\n")
    assert ottla("topic", "trim", topic, "--before", "end", "--yes").code == 0
    assert starts() == [10, 4]
    assert ottla("topic", "trim", topic, "--before", "1", "--partition", "2").code == faults.NOT_FOUND


@KEPT
def test_trim_takes_kafkas_file(ottla: Command, ottla_broker: InProcessBroker, topic: str, tmp_path: Path) -> None:
    fill(ottla_broker, topic, 5)
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0, "offset": -1}], "version": 1}))
    assert ottla("topic", "trim", "--offset-json-file", str(file), "--yes").code == 0
    (described,) = json.loads(ottla("topic", "describe", topic, "--offsets", "-o", "json").out)
    assert described["partitions"][0]["start"] == 5
    file.write_text("[]")
    assert ottla("topic", "trim", "--offset-json-file", str(file)).code == faults.USAGE
    for partition, offset in ((0, 1.5), (0, True), (0, -2), ("0", 1), (0, 2**63), (2**31, 1), (-1, 1)):
        file.write_text(json.dumps({"partitions": [{"topic": topic, "partition": partition, "offset": offset}]}))
        assert ottla("topic", "trim", "--offset-json-file", str(file)).code == faults.USAGE, (partition, offset)
    file.write_text(json.dumps({"partitions": [{"topic": 5, "partition": 0, "offset": 1}]}))
    assert ottla("topic", "trim", "--offset-json-file", str(file)).code == faults.USAGE
    twice = [{"topic": topic, "partition": 0, "offset": offset} for offset in (1, 5)]
    file.write_text(json.dumps({"partitions": twice}))
    ran = ottla("topic", "trim", "--offset-json-file", str(file))
    assert (ran.code, ran.err) == (faults.USAGE, f"ottla: {file}: {topic}-0 stands there twice\n")
    assert ottla("topic", "trim", "--offset-json-file", str(file) + "x").code == faults.NOT_FOUND


def test_a_file_for_trim_stands_alone(in_process: Command, tmp_path: Path) -> None:
    """A choice beside it that were passed over would cost the records of what was not chosen."""
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": [{"topic": "t", "partition": one, "offset": -1} for one in range(3)]}))
    for more in (["--partition", "0"], ["--before", "1"], ["t"], ["--topic", "t"]):
        ran = in_process("topic", "trim", "--offset-json-file", str(file), *more, "--yes", "-b", "127.0.0.1:1")
        assert (ran.code, ran.out, "--offset-json-file says it all" in ran.err) == (faults.USAGE, "", True), ran


# Settings


def settings(ran_out: str) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in json.loads(ran_out)}


def test_settings_of_a_topic(ottla: Command, topic: str) -> None:
    whose = ("--topic", topic)
    ran = ottla("config", "alter", *whose, "--add-config", "cleanup.policy=[compact,delete],retention.ms=1000")
    assert (ran.code, ran.out) == (0, "changed: cleanup.policy, retention.ms\n")
    assert (
        ottla("config", "alter", "--entity-type", "topics", "--entity-name", topic, "--config", "segment.ms=5").code
        == 0
    )
    assert ottla("config", "alter", *whose, "--delete-config", "retention.ms,segment.ms").out == (
        "changed: retention.ms, segment.ms\n"
    )
    assert ottla("config", "alter", *whose, "--delete-config", "retention.ms").out == "was not set: retention.ms\n"
    assert settings(ottla("config", "describe", *whose, "-o", "json").out) == {"cleanup.policy": "compact,delete"}
    everything = settings(ottla("config", "describe", *whose, "--all", "-o", "json").out)
    assert everything["retention.ms"] == "604800000"
    (one,) = json.loads(ottla("config", "describe", *whose, "retention.ms", "--documentation", "-o", "json").out)
    assert one["source"] == "default"
    assert one["documentation"]


def test_settings_of_brokers(ottla: Command) -> None:
    (broker,) = json.loads(ottla("cluster", "describe", "-o", "json").out)["brokers"]
    ident = str(broker["id"])
    assert ottla("config", "alter", "--all-brokers", "--config", "log.retention.ms=5000").code == 0
    assert ottla("config", "alter", "--broker", ident, "--config", "log.retention.ms=6000").code == 0
    (one,) = json.loads(ottla("config", "describe", "--broker", ident, "-o", "json").out)
    assert (one["name"], one["value"], one["source"]) == ("log.retention.ms", "6000", "dynamic-broker")
    assert settings(ottla("config", "describe", "--entity-type", "brokers", "--entity-default", "-o", "json").out) == {
        "log.retention.ms": "5000",
        "min.insync.replicas": "1",  # set for all brokers from the cluster's beginning, as by Kafka
    }
    for whose in (("--all-brokers",), ("--broker", ident)):
        words = ("config", "alter", *whose, "--delete-config", "log.retention.ms")
        assert ottla(*words).out == "changed: log.retention.ms\n"
        assert ottla(*words).out == "was not set: log.retention.ms\n"
        ran = ottla("config", "alter", *whose, "--delete-config", "log.retenton.ms")
        assert ran.code == faults.NOT_FOUND
        assert ran.err == "ottla: there is no setting log.retenton.ms; did you mean log.retention.ms?\n"
        listeners = "listener.name.plaintext.max.connections"
        assert ottla("config", "alter", *whose, "--delete-config", listeners).out == f"was not set: {listeners}\n"
    assert settings(ottla("config", "describe", "--broker", ident, "-o", "json").out) == {}


def test_a_dry_run_changes_no_setting(ottla: Command, topic: str) -> None:
    assert ottla("config", "alter", "--topic", topic, "--config", "segment.ms=5", "--dry-run").code == 0
    assert settings(ottla("config", "describe", "--topic", topic, "-o", "json").out) == {}


def test_what_was_changed_as_json_and_yaml(ottla: Command, topic: str) -> None:
    words = ("config", "alter", "--topic", topic, "--add-config", "segment.ms=5", "--delete-config", "retention.ms")
    told = {"type": "topic", "name": topic, "set": {"segment.ms": "5"}, "deleted": [], "was_not_set": ["retention.ms"]}
    assert json.loads(ottla(*words, "--dry-run", "-o", "json").out) == {**told, "altered": False}
    assert yaml.safe_load(ottla(*words, "-o", "yaml").out) == {**told, "altered": True}
    both = ("config", "alter", "--all-brokers", "--delete-config", "log.retention.ms", "-o", "json")
    told = {"type": "broker", "name": None, "set": {}, "deleted": [], "was_not_set": ["log.retention.ms"]}
    assert json.loads(ottla(*both).out) == {**told, "altered": False}


def test_settings_that_are_not_there(ottla: Command, topic: str) -> None:
    assert ottla("config", "describe", "--topic", "none").code == faults.NOT_FOUND
    assert ottla("config", "describe", "--topic", topic, "retention.mss").code == faults.NOT_FOUND
    assert ottla("config", "describe", "--broker", "4711").code == faults.NOT_FOUND
    ran = ottla("config", "alter", "--topic", topic, "--config", "retention.mss=1")
    assert (ran.code, ran.err.count("\n")) == (faults.FAILED, 1)
    for changes in (("--delete-config", "retenton.ms"), ("--config", "segment.ms=5", "--delete-config", "retenton.ms")):
        ran = ottla("config", "alter", "--topic", topic, *changes)
        assert ran.code == faults.NOT_FOUND
        assert (ran.out, ran.err) == ("", "ottla: there is no setting retenton.ms; did you mean retention.ms?\n")
    assert settings(ottla("config", "describe", "--topic", topic, "-o", "json").out) == {}


@pytest.mark.ottla_topic(partitions=3)
def test_the_cluster(ottla: Command, ottla_broker: InProcessBroker, topic: str) -> None:
    told = json.loads(ottla("cluster", "describe", "-o", "json").out)
    listed = {row["topic"]: row["partitions"] for row in json.loads(ottla("topic", "list", "-o", "json").out)}
    assert listed[topic] == 3
    total = sum(listed.values())
    assert (told["topics"], told["partitions"], told["leaderless"]) == (len(listed), total, 0)
    (broker,) = told["brokers"]
    assert (broker["port"], broker["controller"], broker["leads"]) == (ottla_broker.port, True, total)
    assert str(ottla_broker.port) in ottla("cluster", "describe").lines[-1]


def test_feature_levels(ottla: Command) -> None:
    def level() -> int:
        rows = json.loads(ottla("cluster", "features", "-o", "json").out)
        return next(int(row["level"]) for row in rows if row["feature"] == "transaction.version")

    def becomes(wanted: int) -> bool:
        """The broker hears of it from its tree."""
        return any(level() == wanted for _ in range(1_000))

    assert level() == 2
    assert ottla("cluster", "features", "--downgrade", "transaction.version=1", "--dry-run").out.endswith("be 1\n")
    refused = ottla("cluster", "features", "--upgrade", "transaction.version=1")
    assert refused.code == faults.FAILED
    assert "without setting the upgrade type" in refused.err
    for bad in ("transaction.version", "=1", "transaction.version=x", "transaction.version=-1"):
        assert ottla("cluster", "features", "--downgrade", bad).code == faults.USAGE
    assert ottla("cluster", "features", "--dry-run").code == faults.USAGE
    assert level() == 2
    assert ottla("cluster", "features", "--downgrade", "transaction.version=0").out == "transaction.version is 0\n"
    assert becomes(0)
    assert ottla("cluster", "features", "--upgrade", "transaction.version=2").code == faults.OK
    assert becomes(2)


def test_the_address_may_stand_in_a_property_file(
    in_process: Command, ottla_broker: InProcessBroker, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={ottla_broker.bootstrap}\nclient.id=me\n")
    assert in_process("topic", "list", "--command-config", str(file)).code == 0


def test_topics_that_keep_everything_are_confirmed(ottla: Command) -> None:
    for name in ("one", "two"):
        assert ottla("topic", "create", name, "--config", "cleanup.policy=").code == 0
    assert ottla("topic", "create", "other", "--config", "cleanup.policy=compact").code == 0
    assert "keeps everything" in ottla("topic", "describe", "one").lines[0]
    assert "keeps everything" not in ottla("topic", "describe", "other").lines[0]
    planned = ottla("topic", "confirm", "-o", "json")
    assert planned.code == faults.NOT_CONFIRMED
    week = str(7 * 24 * 3600 * 1000)
    rows = [row for row in json.loads(planned.out) if row["topic"] in {"one", "two", "other"}]
    assert rows == [
        {"topic": name, "cleanup.policy": "delete", "retention.ms": week, "retention.bytes": "-1"}
        for name in ("one", "two")
    ]
    assert json.loads(ottla("topic", "describe", "one", "-o", "json").out)[0]["configs"] == {"cleanup.policy": ""}
    assert ottla("topic", "confirm", "one", "--yes").lines[-1] == "confirmed one"
    assert json.loads(ottla("topic", "describe", "one", "-o", "json").out)[0]["configs"] == {}
    refused = ottla("topic", "confirm", "other", "--yes")
    assert (refused.code, "nothing to confirm" in refused.err) == (1, True)
    ran = ottla("topic", "confirm", "two", "--config", "cleanup.policy=compact", "--config", "retention.ms=-1", "--yes")
    assert ran.code == 0
    configs = json.loads(ottla("topic", "describe", "two", "-o", "json").out)[0]["configs"]
    assert configs == {"cleanup.policy": "compact", "retention.ms": "-1"}
    ran = ottla("topic", "confirm")
    assert (ran.code, ran.lines[0]) == (0, "no topic keeps everything")
    assert ottla("topic", "delete", "one", "two", "other", "--yes").code == 0


def test_the_offsets_topic_is_compacted_again_once_it_is_confirmed(ottla: Command, topic: str) -> None:
    assert ottla("group", "reset", "g", "--topic", topic, "--to-latest", "--yes").code == 0
    offsets = "__consumer_offsets"
    assert ottla("config", "alter", "--topic", offsets, "--config", "cleanup.policy=").code == 0
    assert ottla("topic", "confirm", "--yes").code == 0
    configs = json.loads(ottla("topic", "describe", offsets, "-o", "json").out)[0]["configs"]
    assert configs["cleanup.policy"] == "compact"
    assert ottla("group", "delete", "g", "--yes").code == 0


def test_a_name_that_collides_is_refused_in_the_brokers_words(ottla: Command, ottla_broker: InProcessBroker) -> None:
    ottla_broker.create_topic("colliding.name")
    ran = ottla("topic", "create", "colliding_name")
    assert ran.code == faults.FAILED
    assert ran.err == (
        "ottla: colliding_name: Topic 'colliding_name' collides with existing topic: colliding.name; "
        "choose a name that differs in more than '.' and '_': metrics write both as '_'\n"
    )
    ottla_broker.delete_topic("colliding.name")
