"""Records of consumer groups: byte for byte Apache Kafka's (java/GroupRecords.java), and read back as they were."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.java import java_command

from ottla.coordinators.journal import JournalRecord
from ottla.groups.consumer import records, replay
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import ClassicProtocol, Member, ResolvedRegex
from ottla.groups.consumer.states import MemberState
from ottla.groups.records.kinds import CONSUMER_GROUP_KINDS, BadRecord, kind_of
from ottla.metadata.cache import MetadataCache
from ottla.model import TopicId

HERE = Path(__file__).parent
PROGRAM = HERE / "java" / "GroupRecords.java"
GOLDEN = HERE / "kafka-4.3-records.txt"

ONE = TopicId(bytes.fromhex("0000000000000001 0102030405060708"))
TWO = TopicId(bytes.fromhex("0000000000000002 ffffffffffffffff"))
PLAIN = Member(
    id="m",
    client_id="client",
    client_host="/127.0.0.1",
    rebalance_timeout_ms=45_000,
    topic_names=frozenset({"a", "b"}),
)
FULL = Member(
    id="m-é",
    epoch=9,
    previous_epoch=8,
    state=MemberState.UNREVOKED_PARTITIONS,
    instance_id="i",
    rack_id="r",
    client_id="c",
    client_host="h",
    rebalance_timeout_ms=1,
    topic_regex="x.*",
    assignor="range",
    assigned={ONE: {0: 3, 5: 9}, TWO: {4: 9}},
    pending_revocation={ONE: {1: 2}},
    classic=ClassicProtocol(6000, (("range", b"\0\1\2"), ("sticky", b""))),
)


def ours() -> dict[str, JournalRecord]:
    """The same facts as in GroupRecords.java."""
    gone = records.member_tombstones("g", "m")
    resolved = ResolvedRegex(frozenset({"ab", "b", "aa"}), 7, 1_700_000_000_456)
    return {
        "group-epoch": records.group_epoch("grüppe", 17, -42),
        "group-epoch-0": records.group_epoch("g", 1, 0),
        "group-epoch-gone": records.group_epoch_tombstone("g"),
        "topics-gone": records.partition_metadata_tombstone("g"),
        "target-epoch": records.target_epoch("g", 5, 1_700_000_000_123),
        "target-epoch-gone": records.target_epoch_tombstone("g"),
        "target": records.target("g", "m", {ONE: frozenset({0, 2, 300}), TWO: frozenset({1})}),
        "target-empty": records.target("g", "m", {}),
        "target-gone": gone[1],
        "member-gone": gone[2],
        "current-gone": gone[0],
        "regex": records.regex("g", "a.*|b", resolved),
        "regex-gone": records.regex_tombstone("g", "a.*|b"),
        "member": records.member("g", PLAIN),
        "current": records.current("g", PLAIN),
        "member-full": records.member("g", FULL),
        "current-full": records.current("g", FULL),
    }


def golden() -> dict[str, JournalRecord]:
    found = {}
    for line in GOLDEN.read_text().splitlines():
        name, key, value = line.split(" ")
        found[name] = JournalRecord(bytes.fromhex(key), None if value == "-" else bytes.fromhex(value))
    return found


def test_all_kinds_are_there() -> None:
    assert set(records.KEY_TYPES) == CONSUMER_GROUP_KINDS
    assert {kind_of(record.key) for record in golden().values()} == CONSUMER_GROUP_KINDS


@pytest.mark.parametrize("name", sorted(golden()))
def test_a_record_is_the_one_that_kafka_writes(name: str) -> None:
    assert ours()[name] == golden()[name]


@pytest.mark.java
@pytest.mark.slow  # the jars stay as they are
def test_kafka_still_writes_the_golden_records(kafka_jars: Path) -> None:
    assert oracle(kafka_jars, "", []) == GOLDEN.read_text().splitlines()


@pytest.mark.java
def test_kafka_reads_what_we_write(kafka_jars: Path) -> None:
    lines = [f"{one.key.hex()} {'-' if one.value is None else one.value.hex()}" for one in ours().values()]
    said = dict(zip(ours(), oracle(kafka_jars, "\n".join(lines), ["read"]), strict=True))
    decoder = json.JSONDecoder()
    key, end = decoder.raw_decode(said["current-full"])
    value, _ = decoder.raw_decode(said["current-full"], end + 1)
    assert key == {"groupId": "g", "memberId": "m-é"}
    assert value["state"] == 1
    assert value["memberEpoch"] == 9
    assert value["assignedPartitions"][0]["assignmentEpochs"] == [3, 9]


def oracle(jars: Path, stdin: str, arguments: list[str]) -> list[str]:
    path = ":".join(str(jar) for jar in sorted(jars.glob("*.jar")))
    command = java_command(path, str(PROGRAM), *arguments, flags=("-Dstdout.encoding=UTF-8",))
    done = subprocess.run(command, input=stdin.encode(), capture_output=True, check=True, timeout=120)
    return done.stdout.decode().splitlines()


def applied(group: ConsumerGroup, record: JournalRecord) -> bool:
    kind = kind_of(record.key)
    _, key = replay.group_of(kind, record.key, 2)
    return replay.apply(group, kind, key, record.value)


@pytest.mark.parametrize("member", [PLAIN, FULL], ids=["plain", "full"])
def test_a_member_is_read_back_as_it_was(member: Member) -> None:
    group = ConsumerGroup("g", MetadataCache())
    assert applied(group, records.member("g", member))
    assert applied(group, records.current("g", member))
    assert group.members == {member.id: member}


def test_a_group_is_read_back_as_it_was() -> None:
    group = ConsumerGroup("g", MetadataCache())
    resolved = ResolvedRegex(frozenset({"aa"}), 7, 8)
    for record in [
        records.group_epoch("g", 4, 99),
        records.target("g", "m", {ONE: frozenset({1})}),
        records.target_epoch("g", 3, 5),
        records.regex("g", "a.*", resolved),
    ]:
        assert applied(group, record)
    assert (group.epoch, group.metadata_hash, group.assignment_epoch) == (4, 99, 3)
    assert group.target == {"m": {ONE: frozenset({1})}}
    assert group.regexes == {"a.*": resolved}
    tombstones = list(group.tombstones())
    assert [applied(group, record) for record in tombstones] == [True] * (len(tombstones) - 1) + [False]
    assert (group.target, group.regexes, group.assignment_epoch) == ({"m": {ONE: frozenset({1})}}, {}, -1)


def test_partitions_without_epochs_have_the_members() -> None:
    """So they were stored before Kafka 4.3."""
    value = "000000000009000000080002" + ONE.hex() + "030000000000000005000100"
    group = ConsumerGroup("g", MetadataCache())
    assert applied(group, JournalRecord(records.current("g", PLAIN).key, bytes.fromhex(value)))
    assert group.members["m"].assigned == {ONE: {0: 9, 5: 9}}


def test_a_state_that_nobody_knows_yet_is_read_as_unknown() -> None:
    value = bytearray(records.current("g", PLAIN).value or b"")
    value[10] = 77
    group = ConsumerGroup("g", MetadataCache())
    assert applied(group, JournalRecord(records.current("g", PLAIN).key, bytes(value)))
    assert group.members["m"].state is MemberState.UNKNOWN


@given(st.sampled_from(sorted(golden())), st.data())
def test_damaged_records_are_refused_or_read_and_nothing_else(name: str, data: st.DataObject) -> None:
    record = golden()[name]
    key, value = bytearray(record.key), bytearray(record.value or b"")
    for part, start in ((key, 2), (value, 0)):
        for _ in range(data.draw(st.integers(0, 3))):
            if len(part) > start:
                part[data.draw(st.integers(start, len(part) - 1))] = data.draw(st.integers(0, 255))
        del part[data.draw(st.integers(start, len(part))) :]
    group = ConsumerGroup("g", MetadataCache())
    try:
        applied(group, JournalRecord(bytes(key), None if record.value is None else bytes(value)))
    except BadRecord:
        assert not group.members
