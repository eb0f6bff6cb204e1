"""What of a partition's folder is produced again: all that a consumer would have seen, in the order of the log."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.records.generated_records import NOW
from tests.records.test_first_messages import entry
from tests.records.test_old_messages import written
from tests.storage.test_dump_older_kafka import segment

from ottla.ports.real.disk import RealDisk
from ottla.records.control import ControlType, control_batch
from ottla.records.record import Record, encode_batch
from ottla.storage.dump.importable import ImportableLog, partitions_below

DISK = RealDisk()


def folder(tmp_path: Path, name: str) -> Path:
    made = tmp_path / name
    made.mkdir()
    return made


def values(path: Path) -> list[bytes | None]:
    (files,) = partitions_below(DISK, str(path))
    log = ImportableLog(DISK, files)
    assert not [one for one in log.check() if one.is_damage]
    return [one.value for one in log.data()]


def transactional(offset: int, producer: int, *texts: bytes) -> bytes:
    records = [Record(offset + number, NOW, None, text) for number, text in enumerate(texts)]
    return encode_batch(
        records, base_offset=offset, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True
    )


def marker(offset: int, producer: int, kind: ControlType) -> bytes:
    return control_batch(
        kind, timestamp=NOW, producer_id=producer, producer_epoch=0, coordinator_epoch=0, base_offset=offset
    )


def test_partitions_are_found_below_a_folder_or_in_it(tmp_path: Path) -> None:
    for name in ("orders-10", "orders-2", "orders-3.0123456789abcdef-delete", "empty-0", "elsewhere"):
        made = folder(tmp_path, name)
        if name != "empty-0":
            segment(made, b"", 5)
            segment(made, b"", 0)
            (made / "debug.log").write_text("no segment")
            (made / f"{7:020d}.log.deleted").write_text("none any more")
    found = partitions_below(DISK, str(tmp_path))
    assert [(one.topic, one.partition) for one in found] == [("orders", 2), ("orders", 10)]
    assert [Path(file).name for file in found[0].files] == [f"{0:020d}.log", f"{5:020d}.log"]
    (alone,) = partitions_below(DISK, str(tmp_path / "elsewhere") + "/")
    assert (alone.topic, alone.partition) == (None, None)


def test_what_kafka_0_7_left_comes_first(tmp_path: Path) -> None:
    segment(tmp_path, written(1))
    segment(tmp_path, entry(b"oldest"), 70, "kafka")
    assert values(tmp_path) == [b"oldest", b"first", b"second", None, b""]


def test_aborted_and_open_transactions_stay_behind(tmp_path: Path) -> None:
    """Two producers at once, over two segments; the first one's later transaction is committed."""
    segment(
        tmp_path,
        transactional(0, 1, b"aborted")
        + transactional(1, 2, b"committed")
        + transactional(2, 1, b"aborted too")
        + marker(3, 2, ControlType.COMMIT),
    )
    segment(
        tmp_path,
        marker(4, 1, ControlType.ABORT)
        + transactional(5, 1, b"second try")
        + encode_batch([Record(6, NOW, None, b"plain")], base_offset=6)
        + marker(7, 1, ControlType.COMMIT)
        + transactional(8, 2, b"never ended"),
        4,
    )
    assert values(tmp_path) == [b"committed", b"second try", b"plain"]


def checked(path: Path) -> ImportableLog:
    (files,) = partitions_below(DISK, str(path))
    log = ImportableLog(DISK, files)
    assert list(log.check()) == []
    return log


def test_a_file_that_is_gone_after_the_check_is_no_end_of_the_records(tmp_path: Path) -> None:
    """As a broker removes old ones that is at work there, or a disk that fails: what was to be sent is not all sent."""
    segment(tmp_path, encode_batch([Record(0, NOW, None, b"first")], base_offset=0))
    segment(tmp_path, encode_batch([Record(1, NOW, None, b"second")], base_offset=1), 1)
    log = checked(tmp_path)
    (tmp_path / f"{1:020d}.log").unlink()
    records = log.data()
    assert next(records).value == b"first"
    with pytest.raises(OSError, match=f"cannot read {tmp_path}/{1:020d}.log: No such file"):
        next(records)


def test_a_file_that_ends_earlier_than_it_was_checked_is_no_end_of_the_records(tmp_path: Path) -> None:
    batches = [encode_batch([Record(offset, NOW, None, b"%d" % offset)], base_offset=offset) for offset in range(2)]
    segment(tmp_path, b"".join(batches))
    log = checked(tmp_path)
    segment(tmp_path, batches[0])
    records = log.data()
    assert next(records).value == b"0"
    with pytest.raises(OSError, match="has changed since it was checked"):
        next(records)


def test_what_was_added_since_the_check_is_left_out(tmp_path: Path) -> None:
    """Of a transaction that began since nobody knows yet that it is aborted."""
    segment(tmp_path, transactional(0, 1, b"committed") + marker(1, 1, ControlType.COMMIT))
    log = checked(tmp_path)
    with open(tmp_path / f"{0:020d}.log", "ab") as file:
        file.write(transactional(2, 1, b"to be aborted"))
    assert [one.value for one in log.data()] == [b"committed"]
