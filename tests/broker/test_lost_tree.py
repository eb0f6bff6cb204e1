"""The coordination tree is emptied, gone or older than it was: settings are lost, and no record may be with them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.testing.sim.one_broker import TP, OneBroker

from ottla.coordination.journal import JournalContents, read_contents
from ottla.coordination.znodes import encode_config, topic_config_path
from ottla.model import ZERO_TOPIC_ID, ErrorCode, TopicPartition
from ottla.protocol.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.storage.formats import tree_sign

TREE = "/data/a.coordination"
TWO = {"log.dirs": "/data/a,/data/b"}
#: Retention and compaction come soon and often.
EAGER = {
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "200",
    "log.segment.delete.delay.ms": "0",
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.flush.offset.checkpoint.interval.ms": "100",
}
SMALL = {"index.interval.bytes": "0", "segment.index.bytes": "64"}
LONG_AGO = 1_000_000


async def filled(one: OneBroker) -> None:
    """Old records, which only the topics' own settings keep."""
    await one.broker.started()
    assert await one.create("t", configs={"retention.ms": "-1", **SMALL}) == ErrorCode.NONE
    for _ in range(20):
        assert await one.produce(TP, timestamp=LONG_AGO) == ErrorCode.NONE
    await asyncio.sleep(3.0)
    assert await kept_from(one) == 0


async def kept_from(one: OneBroker) -> int:
    assert one.broker.broker is not None
    (log,) = (log for log in one.broker.broker.logs() if log.tp == TP)
    return log.start_offset


async def alter(one: OneBroker, topic: str, **configs: str) -> ErrorCode:
    changes = [
        AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value) for name, value in configs.items()
    ]
    resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=changes)
    answer = await one.client.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
    return ErrorCode(answer.responses[0].error_code)


def remove_all(one: OneBroker) -> None:
    for name in one.disk.names(TREE):
        one.disk.remove(f"{TREE}/{name}")
    one.disk.sync_directory(TREE)


def empty_all(one: OneBroker) -> None:
    for name in one.disk.names(TREE):
        cut(one, f"{TREE}/{name}", 0)
        if name.startswith("snapshot."):
            one.disk.remove(f"{TREE}/{name}")


def remove_folder(one: OneBroker) -> None:
    one.disk.remove_tree(TREE)
    one.disk.sync_directory("/data")


def cut(one: OneBroker, path: str, size: int) -> None:
    file = one.disk.open(path)
    file.truncate(size)
    file.close()


@pytest.mark.parametrize("lose", [remove_all, empty_all, remove_folder])
@pytest.mark.parametrize("clean", [False, True], ids=["killed", "stopped"])
def test_what_a_lost_setting_was_to_keep_is_kept(lose: Any, clean: bool) -> None:
    with OneBroker(1, EAGER) as one:
        one.run(_lose_the_tree(one, lose, clean=clean))


async def _lose_the_tree(one: OneBroker, lose: Any, *, clean: bool) -> None:
    await filled(one)
    if clean:
        await one.broker.stop()
    else:
        one.broker.kill()
    one.client.close()
    lose(one)
    await one.broker.started()
    await asyncio.sleep(3.0)
    assert await kept_from(one) == 0
    await one.check()
    (line,) = one.said("ERROR", "coordination tree")
    assert TREE in line
    assert "cleanup.policy" in line
    # It holds over restarts, and each start says so.
    await one.stop_and_start()
    await asyncio.sleep(3.0)
    await one.restart()
    await asyncio.sleep(3.0)
    assert await kept_from(one) == 0
    assert len(one.said("WARN ", "keep everything", "topics=1")) == 3
    assert len(one.said("ERROR", "coordination tree")) == 1
    assert one.broker.broker is not None
    assert "ottla_topics_kept 1" in one.broker.broker.registry.render()
    # Another setting confirms nothing; the policy does.
    assert await alter(one, "t", max_message_bytes="100000") == ErrorCode.NONE
    await asyncio.sleep(3.0)
    assert await kept_from(one) == 0
    assert await alter(one, "t", cleanup_policy="delete") == ErrorCode.NONE
    await asyncio.sleep(3.0)
    assert await kept_from(one) > 0
    await one.stop_and_start()
    assert len(one.said("WARN ", "keep everything")) == 3


# A tree that is older than it was.


async def settled(one: OneBroker) -> None:
    """A setting was changed, the signs know of it, and the broker was killed."""
    await filled(one)
    assert await alter(one, "t", retention_ms="-1", max_message_bytes="100000") == ErrorCode.NONE
    await asyncio.sleep(6.0)
    one.broker.kill()
    one.client.close()


def journal_of(one: OneBroker) -> tuple[str, JournalContents]:
    """The one that is written to, and what it holds."""
    name = max(name for name in one.disk.names(TREE) if name.startswith("journal."))
    path = f"{TREE}/{name}"
    return path, read_contents(one.disk.read_file(path), int(name.removeprefix("journal.")))


async def never_starts(one: OneBroker) -> str:
    """However often it is tried: no try writes what the next one would take for the truth."""
    journal, _ = journal_of(one)
    before = one.disk.read_file(journal)
    for _ in range(5):
        await one.broker.start()
        assert one.broker.refusal is not None
        assert one.disk.read_file(journal) == before
    assert "\n" not in str(one.broker.refusal)
    return str(one.broker.refusal)


@pytest.mark.parametrize("short", [0, 1, 13], ids=["between frames", "torn", "torn in its head"])
def test_a_tree_that_is_behind_its_sign_is_not_taken_for_the_truth(short: int) -> None:
    with OneBroker(1, EAGER) as one:
        one.run(_cut_the_journal(one, short))


async def _cut_the_journal(one: OneBroker, short: int) -> None:
    await settled(one)
    path, contents = journal_of(one)
    whole = one.disk.read_file(path)
    cut(one, path, contents.frames[-1].end - short if short else contents.frames[-2].end)
    said = await never_starts(one)
    assert "acknowledged changes" in said
    assert f"{TREE} can be read up to" in said
    file = one.disk.open(path)
    file.truncate(0)
    file.append([whole])
    file.close()
    await one.broker.started()
    await one.check()


def test_an_operator_may_go_on_with_an_older_tree() -> None:
    with OneBroker(1, EAGER) as one:
        one.run(_go_on_with_the_older(one))


async def _go_on_with_the_older(one: OneBroker) -> None:
    await settled(one)
    path, contents = journal_of(one)
    cut(one, path, contents.frames[-2].end)
    await never_starts(one)
    one.disk.remove(f"/data/a/{tree_sign.FILE_NAME}")
    await one.broker.started()
    await one.check()
    await one.restart()
    await one.check()


def test_a_snapshot_that_is_gone_with_its_journals_leaves_a_tree_that_is_behind() -> None:
    """What is left are an older snapshot and no journal: file names alone tell nothing."""
    with OneBroker(1, EAGER) as one:
        one.run(_lose_the_newest(one))


async def _lose_the_newest(one: OneBroker) -> None:
    await filled(one)
    await one.stop_and_start()
    await one.stop_and_start()
    await asyncio.sleep(6.0)
    one.broker.kill()
    one.client.close()
    names = one.disk.names(TREE)
    oldest = min(name for name in names if name.startswith("snapshot."))
    for name in names:
        if name not in {oldest, ".lock"}:
            one.disk.remove(f"{TREE}/{name}")
    await one.broker.start()
    assert "can be read up to transaction" in str(one.broker.refusal)


def test_a_torn_tail_says_what_is_known() -> None:
    with OneBroker(1, EAGER) as one:
        one.run(_tear_above_the_sign(one))


async def _tear_above_the_sign(one: OneBroker) -> None:
    await filled(one)
    await asyncio.sleep(6.0)
    assert await alter(one, "t", max_message_bytes="100000") == ErrorCode.NONE
    one.broker.kill()
    one.client.close()
    path, contents = journal_of(one)
    cut(one, path, contents.frames[-1].end - 1)
    await one.broker.started()
    (line,) = one.said("WARN ", "torn tail")
    assert "acknowledged changes may be missing" in line


# What is there of several directories, and what starts are cut short.


def test_the_disk_with_the_tree_was_replaced_by_an_empty_one() -> None:
    with OneBroker(1, {**EAGER, **TWO, "node.id": "1"}) as one:
        one.run(_replace_the_first_disk(one))


async def _replace_the_first_disk(one: OneBroker) -> None:
    await one.broker.started()
    names = ["t", "u", "v", "w"]
    for name in names:
        assert await one.create(name, configs={"retention.ms": "-1", **SMALL}) == ErrorCode.NONE
        for _ in range(20):
            assert await one.produce(TopicPartition(name, 0), timestamp=LONG_AGO) == ErrorCode.NONE
    await asyncio.sleep(1.0)
    one.broker.kill()
    one.client.close()
    second = [TopicPartition(name, 0) for name in names if one.disk.exists(f"/data/b/{name}-0")]
    assert len(second) == 2
    one.disk.remove_tree("/data/a")
    one.disk.remove_tree(TREE)
    await one.broker.started()
    await asyncio.sleep(3.0)
    (line,) = one.said("ERROR", "coordination tree", "unsigned=/data/a", "signed=/data/b")
    assert "topics=2" in line
    await one.check(second)


@pytest.mark.parametrize("lose", [remove_all, remove_folder])
def test_an_adoption_that_is_cut_short_keeps_everything_all_the_same(lose: Any) -> None:
    for operation in range(1, 400, 3):
        with OneBroker(operation, EAGER) as one:
            one.run(_adoption_cut_short(one, lose, operation))
            if one.broker.lives == 2:
                break
    else:
        raise AssertionError("a start takes more operations than are tried")
    assert operation > 30


async def _adoption_cut_short(one: OneBroker, lose: Any, operation: int) -> None:
    await filled(one)
    await one.broker.stop()
    one.client.close()
    lose(one)
    one.disk.crash_at(operation)
    await asyncio.wait([one.broker.start()])
    if one.broker.serving.is_set():
        one.disk.crash_at(0)
    else:
        await one.broker.started()
    await asyncio.sleep(3.0)
    assert one.said("WARN ", "keep everything", "topics=1")
    assert await kept_from(one) == 0
    await one.check()


@pytest.mark.parametrize("content", [b"", b"zxid=x\nversion=0\n", b"\xff" * 20_000])
def test_a_damaged_sign_is_a_sign(content: bytes) -> None:
    with OneBroker(1, EAGER) as one:
        one.run(_damaged_sign(one, content))


async def _damaged_sign(one: OneBroker, content: bytes) -> None:
    await settled(one)
    path = f"/data/a/{tree_sign.FILE_NAME}"
    cut(one, path, 0)
    file = one.disk.open(path)
    file.append([content])
    file.close()
    await one.broker.started()
    assert one.said("WARN ", "sign", "damaged")
    assert not one.said("ERROR", "coordination tree")
    assert tree_sign.decode(one.disk.read_file(path)).zxid > 0
    cut(one, path, 0)
    one.broker.kill()
    one.client.close()
    remove_all(one)
    await one.broker.started()
    assert one.said("ERROR", "coordination tree")


def test_what_clients_ask_for_is_done_in_topics_that_keep_everything() -> None:
    with OneBroker(1, EAGER) as one:
        one.run(_ask_for_deletion(one))


async def _ask_for_deletion(one: OneBroker) -> None:
    await filled(one)
    one.broker.kill()
    one.client.close()
    remove_all(one)
    await one.broker.started()
    asked = [DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=15)])]
    answer = await one.client.ask(DeleteRecordsRequest(topics=asked, timeout_ms=1000), 2)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    await asyncio.sleep(3.0)
    assert await kept_from(one) == 15
    answer = await one.client.ask(
        DeleteTopicsRequest(topics=[DeleteTopicState(name="t", topic_id=ZERO_TOPIC_ID)], timeout_ms=1000), 6
    )
    assert answer.responses[0].error_code == ErrorCode.NONE
    await asyncio.sleep(1.0)
    assert [name for name in one.disk.names("/data/a") if name.startswith("t-")] == []
    # A topic of that name begins with the settings that it is made with.
    assert await one.create("t") == ErrorCode.NONE
    await one.stop_and_start()
    assert len(one.said("WARN ", "keep everything")) == 1


def test_holes_of_a_log_whose_policy_nobody_knows_are_not_taken_for_damage() -> None:
    """Compaction left them; the topic was registered without its policy, and the broker was killed again."""
    with OneBroker(1, EAGER) as one:
        one.run(_holes(one))


async def _holes(one: OneBroker) -> None:
    await filled(one)
    await one.broker.stop()
    one.client.close()
    logs = sorted(name for name in one.disk.names("/data/a/t-0") if name.endswith(".log"))
    assert len(logs) > 2
    one.disk.remove(f"/data/a/t-0/{logs[1]}")
    one.disk.sync_directory("/data/a/t-0")
    remove_all(one)
    for _ in range(2):
        if one.disk.exists("/data/a/recovery-point-offset-checkpoint"):
            one.disk.remove("/data/a/recovery-point-offset-checkpoint")
        await one.broker.started()
        assert await kept_from(one) == 0
        assert await one.metadata("t") == [ErrorCode.NONE]
        one.broker.kill()
        one.client.close()
    assert [name for name in one.disk.names("/data/a/t-0") if name.endswith(".torn")] == []


def test_settings_that_cannot_be_read_cost_no_records() -> None:
    """An override that this version refuses, in a tree of another one: the others beside it were to keep records."""
    with OneBroker(1, EAGER) as one:
        one.run(_unsound(one))


async def _unsound(one: OneBroker) -> None:
    await filled(one)
    assert one.broker.broker is not None
    tree = one.broker.broker.tree
    assert tree is not None
    await tree.set(topic_config_path("t"), encode_config({"retention.ms": "-1", "segment.ms": "soon"}))
    await one.restart()
    await asyncio.sleep(3.0)
    assert await kept_from(one) == 0
    assert one.said("WARN ", "settings are not used", "segment.ms")
    await one.check()
