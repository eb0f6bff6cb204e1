import errno
import os
from pathlib import Path

import pytest
from tests.system_calls import called_in

from ottla.pipeline.places import read_json, write_json


@pytest.fixture
def done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return called_in(tmp_path, monkeypatch)


def test_a_note_outlives_the_machine_with_its_name(tmp_path: Path, done: list[str]) -> None:
    """How far dead letters were sent again, or which files a backfill replaces, is in the note alone: a name that is
    not on the medium is the old note's after a power cut."""
    path = str(tmp_path / "replay" / "letters.json")
    write_json(path, {"done": [2]})
    first = ["fsync", "replace", "fsync"]
    assert done == [*first, "fsync"]  # with the folder's own name
    write_json(path, {"done": [3]})
    assert done[4:] == first
    assert read_json(path) == {"done": [3]}


def test_what_is_shown_of_a_run_costs_no_flush(tmp_path: Path, done: list[str]) -> None:
    path = str(tmp_path / "status.json")
    write_json(path, {"rows": 1}, flushed=False)
    write_json(path, {"rows": 2}, flushed=False)
    assert done == ["replace", "replace"]
    assert read_json(path) == {"rows": 2}


def test_what_cannot_be_written_leaves_the_old_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "note.json")
    write_json(path, {"kept": True})

    def full(_: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    called_in(tmp_path, monkeypatch, fault=full)
    with pytest.raises(OSError, match="No space left"):
        write_json(path, {"kept": False})
    assert os.listdir(tmp_path) == ["note.json"]
    assert read_json(path) == {"kept": True}
