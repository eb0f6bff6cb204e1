"""Files that are damaged when the broker starts: what can be rebuilt is, with a warning; what cannot is never cut."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Mapping

import pytest
from tests.testing.sim.one_broker import TP, OneBroker

from ottla.model import ErrorCode, TopicPartition
from ottla.storage.formats import offset_checkpoint
from ottla.testing.sim.reader import ReadFault, read_all

OTHER = TopicPartition("t", 1)
FOLDER = "/data/a/t-0"
PROPERTIES = {
    "log.flush.offset.checkpoint.interval.ms": "100",
    "replica.high.watermark.checkpoint.interval.ms": "100",
}
SMALL_SEGMENTS = {"index.interval.bytes": "0", "segment.index.bytes": "64"}


async def filled(one: OneBroker, configs: Mapping[str, str] | None = None) -> None:
    """A broker that was killed after its recovery points were written; both partitions hold ten batches."""
    await one.broker.started()
    assert await one.create(partitions=2, configs=configs) == ErrorCode.NONE
    for tp in (TP, OTHER):
        await one.must_produce(tp, batches=10, padding=60)
    await _checkpointed(one)
    one.broker.kill()
    one.client.close()


async def _checkpointed(one: OneBroker) -> None:
    path = "/data/a/recovery-point-offset-checkpoint"
    for _ in range(100):
        if one.disk.exists(path) and b"t 0 10" in one.disk.read_file(path):
            return
        await asyncio.sleep(0.1)
    raise AssertionError("no checkpoint says that all is flushed")


def files(one: OneBroker, suffix: str, folder: str = FOLDER) -> list[str]:
    return [f"{folder}/{name}" for name in one.disk.names(folder) if name.endswith(suffix)]


#: Of the first batch: its offset, which no checksum covers, its length, magic, checksum, attributes, sequence; its
#: records; the last bit of another's offset; a later batch.
@pytest.mark.parametrize("position", [0, 7, 8, 16, 17, 21, 50, 100, 137, 400])
def test_a_damaged_batch_below_the_recovery_point_takes_one_partition_offline(position: int) -> None:
    with OneBroker(position, PROPERTIES) as one:
        one.run(_damage_below(one, position))


async def _damage_below(one: OneBroker, position: int) -> None:
    await filled(one)
    (log,) = files(one, ".log")
    before = one.disk.read_file(log)
    one.disk.flip(log, position, 3)
    await one.broker.started()
    told = one.said("ERROR", "t-0", log, "is damaged", "nothing has been cut")
    assert len(told) == 1, told
    assert await one.produce(TP) == ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(ReadFault):
        await read_all(one.client, TP)
    await one.must_produce(OTHER)
    await one.check([OTHER])
    # The same after a clean stop: the partition that stayed closed is not taken for sound.
    await one.stop_and_start()
    assert await one.produce(TP) == ErrorCode.KAFKA_STORAGE_ERROR
    await one.check([OTHER])
    assert len(one.disk.read_file(log)) == len(before)
    one.disk.flip(log, position, 3)
    await one.restart(power=False)
    assert one.disk.read_file(log) == before
    await one.must_produce(TP)
    await one.check([TP, OTHER])


def test_a_sealed_segment_that_was_cut_short_takes_its_partition_offline() -> None:
    with OneBroker(1, PROPERTIES) as one:
        one.run(_cut_sealed(one))


async def _cut_sealed(one: OneBroker) -> None:
    await filled(one, SMALL_SEGMENTS)
    logs = files(one, ".log")
    assert len(logs) > 1
    file = one.disk.open(logs[0])
    file.truncate(file.size() - 10)
    file.close()
    await one.broker.started()
    await one.must_produce(OTHER)
    await one.check([OTHER])
    with pytest.raises(ReadFault) as refused:
        await read_all(one.client, TP)
    assert refused.value.error == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_segment_that_is_gone_from_the_middle_is_not_passed_over() -> None:
    with OneBroker(1, PROPERTIES) as one:
        one.run(_lose_middle(one))


async def _lose_middle(one: OneBroker) -> None:
    await filled(one, {"index.interval.bytes": "0", "segment.index.bytes": "24"})
    logs = sorted(files(one, ".log"))
    assert len(logs) > 2
    one.disk.remove(logs[1])
    await one.broker.started()
    await one.must_produce(OTHER)
    await one.check([OTHER])
    for _ in range(2):
        with pytest.raises(ReadFault) as refused:
            await read_all(one.client, TP)
        assert refused.value.error == ErrorCode.KAFKA_STORAGE_ERROR
    assert one.said("t-0", "a segment is missing")


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("what", ["folder", "segment", "end"])
def test_a_log_that_lost_what_was_on_disk_takes_its_partition_offline(what: str, clean: bool) -> None:
    with OneBroker(1, PROPERTIES) as one:
        one.run(_lose(one, what, clean=clean))


async def _lose(one: OneBroker, what: str, *, clean: bool) -> None:
    await filled(one)
    if clean:
        await one.stop_after_start()
    (log,) = files(one, ".log")
    if what == "folder":
        one.disk.remove_tree(FOLDER)
    elif what == "segment":
        one.disk.remove(log)
    else:
        file = one.disk.open(log)
        file.truncate(file.size() // 10 * 6)
        file.close()
    await one.broker.started()
    assert len(one.said("ERROR", "t-0", "records", "put an empty", "in its place")) == 1
    assert await one.produce(TP) == ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(ReadFault) as refused:
        await read_all(one.client, TP)
    assert refused.value.error == ErrorCode.KAFKA_STORAGE_ERROR
    await one.must_produce(OTHER)
    await one.check([OTHER])
    await one.stop_and_start()
    assert await one.produce(TP) == ErrorCode.KAFKA_STORAGE_ERROR
    # As the broker says: the partition is to begin anew.
    await one.broker.stop()
    if what != "folder":
        one.disk.remove_tree(FOLDER)
    one.disk.make_directory(FOLDER)
    await one.broker.started()
    await one.must_produce(OTHER)
    await one.check([OTHER])
    assert await one.produce(TP) == ErrorCode.NONE
    assert len(await read_all(one.client, TP)) == 1


def test_what_the_checkpoints_have_of_an_earlier_topic_keeps_no_topic_from_growing() -> None:
    """The topic of that name had a partition more, and the broker was away when the next one was made."""
    with OneBroker(1, PROPERTIES) as one:
        one.run(_grow_into_checkpoint(one))


async def _grow_into_checkpoint(one: OneBroker) -> None:
    await filled(one)
    path, grown = f"/data/a/{offset_checkpoint.RECOVERY_POINTS}", TopicPartition("t", 2)
    offset_checkpoint.write(one.disk, path, {**offset_checkpoint.read(one.disk, path), grown: 10})
    await one.broker.started()
    assert await one.create_partitions("t", 3) == ErrorCode.NONE
    await one.must_produce(grown)
    await one.restart(power=False)
    await one.check([TP, OTHER, grown])


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("clean", [True, False])
def test_damaged_indexes_are_rebuilt(suffix: str, clean: bool) -> None:
    for byte in range(0, 24, 5):
        with OneBroker(byte, PROPERTIES) as one:
            one.run(_damage_index(one, suffix, byte, clean=clean))


async def _damage_index(one: OneBroker, suffix: str, byte: int, *, clean: bool) -> None:
    await filled(one, SMALL_SEGMENTS)
    if clean:
        await one.stop_after_start()
    for path in files(one, suffix):
        if one.disk.size(path) > byte:
            one.disk.flip(path, byte, 6)
    await one.broker.started()
    for tp in (TP, OTHER):
        await one.check([tp])
        await one.must_produce(tp, batches=3)
        await one.check([tp])


@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint",
        "t-0/leader-epoch-checkpoint",
    ],
)
def test_damaged_checkpoints_are_rebuilt_with_a_warning(name: str) -> None:
    with OneBroker(1, PROPERTIES) as one:
        one.run(_damage_checkpoint(one, name))


async def _damage_checkpoint(one: OneBroker, name: str) -> None:
    await filled(one)
    one.disk.flip(f"/data/a/{name}", 2, 6)
    await one.broker.started()
    assert one.said("WARN", name.rpartition("/")[2])
    for tp in (TP, OTHER):
        await one.must_produce(tp)
    await one.check([TP, OTHER])
    await one.restart()
    await one.check([TP, OTHER])


@pytest.mark.parametrize("content", [b"{", b"\xff" * 10, b"hello world\n"])
def test_a_damaged_marker_of_a_clean_stop_counts_with_a_warning(content: bytes) -> None:
    with OneBroker(1, PROPERTIES) as one:
        one.run(_damage_marker(one, content))


async def _damage_marker(one: OneBroker, content: bytes) -> None:
    await filled(one)
    await one.stop_after_start()
    path = "/data/a/.kafka_cleanshutdown"
    assert one.disk.exists(path)
    _leave(one, path, content)
    await one.broker.started()
    assert len(one.said("WARN", ".kafka_cleanshutdown is damaged", "the stop counts as clean")) == 1
    assert not one.disk.exists(path)
    for tp in (TP, OTHER):
        await one.must_produce(tp)
    await one.check([TP, OTHER])


def test_a_damaged_journal_is_refused_in_one_line() -> None:
    for place in range(0, 1200, 37):
        with OneBroker(place, PROPERTIES) as one:
            one.run(_damage_journal(one, place))


async def _damage_journal(one: OneBroker, place: int) -> None:
    await filled(one)
    folder = "/data/a.coordination"
    (journal,) = [f"{folder}/{name}" for name in one.disk.names(folder) if name.startswith("journal.")]
    before = one.disk.read_file(journal)
    assert len(before) > 1200
    one.disk.flip(journal, place, 1)
    await one.broker.start()
    assert one.broker.refusal is not None, "the broker takes damage for the truth"
    message = str(one.broker.refusal)
    assert "\n" not in message
    assert folder in message
    one.disk.flip(journal, place, 1)
    assert one.disk.read_file(journal) == before, "what cannot be read was changed"
    await one.broker.started()
    await one.check([TP, OTHER])


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EIO], ids=errno.errorcode.get)
@pytest.mark.parametrize("folder", ["/data/a", "/data/a.coordination"])
def test_a_folder_that_cannot_be_used_refuses_the_start_in_one_line(folder: str, number: int) -> None:
    with OneBroker(1, PROPERTIES) as one:
        one.run(_refuse_unusable(one, folder, number))


async def _refuse_unusable(one: OneBroker, folder: str, number: int) -> None:
    await filled(one)
    one.disk.fail("*", f"{folder}/*", number)
    one.disk.fail("*", folder, number)
    await _refused(one, folder, number)
    await one.check([TP, OTHER])
    await one.must_produce(TP)


async def _refused(one: OneBroker, folder: str, number: int) -> None:
    await one.broker.start()
    assert one.broker.refusal is not None
    message = str(one.broker.refusal)
    assert "\n" not in message
    assert folder in message
    assert os.strerror(number) in message
    one.disk.stop_failing()
    await one.broker.started()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
@pytest.mark.parametrize("folder", ["/data/a", "/data/a.coordination"])
@pytest.mark.parametrize("operation", ["make_directory", "create", "append", "sync", "sync_directory"])
def test_a_folder_that_cannot_be_filled_refuses_the_first_start_in_one_line(
    operation: str, folder: str, number: int
) -> None:
    with OneBroker(1, PROPERTIES) as one:
        one.run(_refuse_unwritable(one, operation, folder, number))


async def _refuse_unwritable(one: OneBroker, operation: str, folder: str, number: int) -> None:
    one.disk.fail(operation, f"{folder}/*", number)
    one.disk.fail(operation, folder, number)
    await _refused(one, folder, number)
    assert await one.create() == ErrorCode.NONE
    await one.must_produce(TP)


@pytest.mark.parametrize(
    ("word", "said"),
    [(b"version=", "/data/a/meta.properties: "), (b"cluster.id=", "this broker's log directories belong to cluster ")],
)
def test_a_directory_whose_identity_is_damaged_is_not_used(word: bytes, said: str) -> None:
    with OneBroker(1, PROPERTIES) as one:
        one.run(_damage_identity(one, word, said))


async def _damage_identity(one: OneBroker, word: bytes, said: str) -> None:
    await filled(one)
    path = "/data/a/meta.properties"
    place = one.disk.read_file(path).index(word) + len(word)
    one.disk.flip(path, place, 1)
    await one.broker.start()
    assert one.broker.refusal is not None
    assert "\n" not in str(one.broker.refusal)
    assert said in str(one.broker.refusal)
    one.disk.flip(path, place, 1)
    await one.broker.started()
    await one.check([OTHER, TP])


def _without_broker(meta: bytes) -> bytes:
    return b"".join(line for line in meta.splitlines(keepends=True) if not line.startswith(b"broker.id"))


LOSSES: dict[str, Callable[[bytes], bytes | None]] = {
    "empty": lambda _: b"",
    "text": lambda _: b"hello world\n",
    "bytes": lambda _: bytes(range(256)),
    "zeros": lambda meta: bytes(len(meta)),
    "no broker.id": _without_broker,
    "gone": lambda _: None,
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_broker_whose_id_is_lost_does_not_start_under_another(loss: str) -> None:
    with OneBroker(1, PROPERTIES) as one:
        one.run(_lose_identity(one, loss))


async def _lose_identity(one: OneBroker, loss: str) -> None:
    await filled(one)
    path = "/data/a/meta.properties"
    before = one.disk.read_file(path)
    left = LOSSES[loss](before)
    _leave(one, path, left)
    for _ in range(2):  # the first refusal changes nothing that the second would go by
        await one.broker.start()
        said = str(one.broker.refusal)
        assert "\n" not in said
        assert path in said
        assert "the tree's topics lie on broker 1001: restore the file, or" in said
        assert "broker.id=1001" in said
        assert (one.disk.read_file(path) if one.disk.exists(path) else None) == left
    _leave(one, path, before)
    await one.broker.started()
    await one.check([OTHER, TP])


def _leave(one: OneBroker, path: str, content: bytes | None) -> None:
    if one.disk.exists(path):
        one.disk.remove(path)
    if content is not None:
        file = one.disk.open(path, create=True)
        file.write(content, 0)
        file.close()


def test_a_topic_id_that_cannot_be_read_is_written_again() -> None:
    with OneBroker(1, PROPERTIES) as one:
        one.run(_damage_topic_id(one))


async def _damage_topic_id(one: OneBroker) -> None:
    await filled(one)
    path = f"{FOLDER}/partition.metadata"
    before = one.disk.read_file(path)
    one.disk.flip(path, 0, 6)
    await one.broker.started()
    assert one.said("WARN", "partition.metadata")
    await one.check([OTHER, TP])
    assert one.disk.read_file(path) == before
