"""A table's log: versions without gaps, micro-batches once, states instead of many commits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ottla.pipeline.errors import BadState
from ottla.pipeline.tables.log import STATE_EVERY, Commit, TableFile, TableLog, TableState, at_version


def file(name: str) -> TableFile:
    return TableFile(path=f"data/{name}", rows=1, bytes=10, written_ms=5)


def append(batch: int, query: str = "q") -> Commit:
    return Commit(
        kind="append", written_ms=5, query=query, batch=batch, added=(file(f"f{batch}"),), counts={"in": 2, "out": 1}
    )


def with_files(log: TableLog, *names: str) -> None:
    Path(log.folder, "data").mkdir()
    for name in names:
        Path(log.folder, "data", name).touch()


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    return TableLog(str(tmp_path / "orders"))


def test_an_empty_folder_is_a_table_without_versions(log: TableLog) -> None:
    assert log.state() == TableState()


def test_what_was_committed_is_read_by_others(log: TableLog) -> None:
    for batch in range(3):
        log.commit(append(batch))
    log.commit(Commit(kind="compact", written_ms=6, added=(file("all"),), removed=("data/f0", "data/f1")))
    other = TableLog(log.folder).state()
    assert other == log.state()
    assert (other.version, set(other.files), other.batches) == (3, {"data/f2", "data/all"}, {"q": 2})
    assert other.counts == {"in": 6, "out": 3}
    assert (other.has("q", 2), other.has("q", 3), other.has("r", 0)) == (True, False, False)
    with_files(log, "f0", "f1")
    assert set(at_version(log, 1).files) == {"data/f0", "data/f1"}
    with pytest.raises(BadState, match="has no version 4"):
        at_version(log, 4)


def test_versions_that_a_state_leads_to_are_there_when_the_first_commits_are_gone(log: TableLog) -> None:
    for batch in range(STATE_EVERY + 3):
        log.commit(append(batch))
    log.forget(STATE_EVERY + 1)
    with_files(log, *(f"f{number}" for number in range(STATE_EVERY + 3)))
    newest = log.state().version
    assert at_version(log, newest) == log.state()
    assert len(at_version(log, newest - 1).files) == STATE_EVERY + 2
    with pytest.raises(BadState, match="has no version 7"):
        at_version(log, 7)
    log.commit(Commit(kind="compact", written_ms=6, added=(file("all"),), removed=("data/f0", "data/f1")))
    Path(log.folder, "data", "f0").unlink()  # as upkeep does an hour later
    with pytest.raises(BadState, match=f"has no version {newest} any more"):
        at_version(log, newest)


def test_of_two_writers_one_is_refused(log: TableLog) -> None:
    other = TableLog(log.folder)
    log.state(), other.state()
    log.commit(append(0))
    with pytest.raises(BadState, match="somebody else has written version 0"):
        other.commit(append(0))
    assert other.state() == log.state()


def test_a_state_stands_for_the_commits_before_it(log: TableLog) -> None:
    for batch in range(STATE_EVERY + 2):
        log.commit(append(batch))
    before = log.state()
    log.forget(STATE_EVERY + 1)
    # The newest state is that of version STATE_EVERY - 1; what follows it stays.
    assert log.oldest() == STATE_EVERY - 1
    assert TableLog(log.folder).state() == before
    with pytest.raises(BadState, match="has no version 3 any more"):
        log.commits(2, 3)
    with pytest.raises(BadState, match="has no version 3"):
        at_version(log, 3)


@pytest.mark.parametrize("begun", [0, STATE_EVERY])
def test_commits_that_are_forgotten_while_they_are_read(
    log: TableLog, monkeypatch: pytest.MonkeyPatch, begun: int
) -> None:
    """A reader in their middle finds none behind the one that it has read, and takes that for no newest version."""
    for batch in range(begun + 10):
        log.commit(append(batch))
    reader, read, newest = TableLog(log.folder), TableLog._read, begun + STATE_EVERY + 2

    def while_forgotten(one: TableLog, version: int) -> Commit | None:
        if one is reader and version == begun + 5 and log.state().version < newest:
            for batch in range(begun + 10, newest + 1):
                log.commit(append(batch))
            log.forget(newest)
        return read(one, version)

    monkeypatch.setattr(TableLog, "_read", while_forgotten)
    assert reader.state() == log.state()
    assert log.state().version == newest


def test_a_first_state_that_comes_while_the_folder_is_listed(log: TableLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for batch in range(10):
        log.commit(append(batch))
    reader, versions = TableLog(log.folder), TableLog._versions

    def listed_before(one: TableLog, ending: str) -> list[int]:
        found = versions(one, ending)
        if one is reader and log.state().version < STATE_EVERY:
            for batch in range(10, STATE_EVERY + 3):
                log.commit(append(batch))
            log.forget(STATE_EVERY)
        return found

    monkeypatch.setattr(TableLog, "_versions", listed_before)
    assert reader.state() == log.state()


def test_of_two_processes_with_one_number_one_is_refused(log: TableLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in two containers: the other writes the same version while this one's is on its way to the medium."""
    other, flush = TableLog(log.folder), os.fsync

    def flush_behind_the_other(fd: int) -> None:
        monkeypatch.setattr(os, "fsync", flush)
        other.commit(append(0, "other"))
        flush(fd)

    monkeypatch.setattr(os, "fsync", flush_behind_the_other)
    with pytest.raises(BadState, match="somebody else has written version 0"):
        log.commit(append(0))
    assert TableLog(log.folder).state() == other.state()


def test_a_table_that_is_new_outlives_the_machine_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that has committed does not write its rows again: its checkpoint may be there without the table."""
    storage = tmp_path / "storage"
    table = TableLog(str(storage / "gold" / "orders"))
    synced, flush = list[str](), os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.readlink(f"/proc/self/fd/{fd}")), flush(fd))[1])
    table.commit(append(0))
    assert {str(tmp_path), str(storage), str(storage / "gold"), table.folder} <= set(synced)
    synced.clear()
    table.commit(append(1))
    assert synced[1:] == [f"{table.folder}/_ottla"], "once"


def test_a_commit_for_which_there_is_no_room_leaves_nothing(log: TableLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.commit(append(0))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        log.commit(append(1))
    assert os.listdir(Path(log.folder) / "_ottla") == [f"{0:020}.json"]


def test_streams_see_rows_that_are_new(log: TableLog) -> None:
    replaced = Commit(kind="replace", written_ms=5, added=(file("a"),))
    upserted = Commit(kind="upsert", written_ms=5, added=(file("bucket"),), changes=(file("rows"),))
    assert append(0).for_streams == (file("f0"),)
    assert replaced.for_streams == ()
    assert upserted.for_streams == (file("rows"),)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"format": 1}', b'{"format": 1, "kind": 3, "added": 4}'])
def test_a_damaged_commit_is_named(log: TableLog, text: bytes) -> None:
    log.commit(append(0))
    name = Path(log.folder) / "_ottla" / f"{0:020}.json"
    name.write_bytes(text)
    with pytest.raises(BadState, match=r"0000\.json is damaged .*: restore it, or delete the table's folder"):
        TableLog(log.folder).state()


def test_a_commit_of_a_later_format_is_refused(log: TableLog) -> None:
    log.commit(append(0))
    name = Path(log.folder) / "_ottla" / f"{0:020}.json"
    name.write_text(name.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(BadState, match="is of format 2: a newer version of Ottla wrote it"):
        TableLog(log.folder).state()
