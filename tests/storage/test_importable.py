"""What of a partition's folder is produced again: all that a consumer would have seen, in the order of the log."""

from __future__ import annotations

from pathlib import Path

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
