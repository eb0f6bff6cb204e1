"""The folder of a pipeline: what is where, and that only one run at a time is in it.

pipeline.json         whose it is
tables/<table>/       rows (docs/formats/pipeline-tables.md)
checkpoints/<flow>/   Spark's
status/<flow>.json    what `ottla pipeline status` shows
replay/<topic>.json   how far dead letters were sent again
lock                  held while the pipeline runs
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ottla.pipeline.errors import BadState
from ottla.pipeline.folders import sync_names_above
from ottla.ports.real.whole_file import write_file

_PIPELINE: Final = "pipeline.json"


class Places:
    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)

    def table(self, name: str) -> str:
        return os.path.join(self.folder, "tables", name)

    def checkpoint(self, name: str) -> str:
        return os.path.join(self.folder, "checkpoints", name)

    def status(self, name: str) -> str:
        return os.path.join(self.folder, "status", f"{name}.json")

    def replay(self, topic: str) -> str:
        return os.path.join(self.folder, "replay", f"{topic}.json")

    def names_with_status(self) -> list[str]:
        try:
            names = os.listdir(os.path.join(self.folder, "status"))
        except FileNotFoundError:
            return []
        return sorted(name.removesuffix(".json") for name in names if name.endswith(".json"))

    @contextmanager
    def held(self, pipeline: str) -> Iterator[None]:
        """By one run at a time. Raises BadState where another has it, or where it is another pipeline's."""
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, "lock"), "a+", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.seek(0)
                raise BadState(
                    f"{self.folder} is in use by another run (process {lock.read(20).strip() or 'unknown'}): "
                    "stop it, or give this one another --folder"
                ) from None
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            self._claim(pipeline)
            yield

    @contextmanager
    def replaying(self) -> Iterator[None]:
        """By one replay at a time; the pipeline may run beside it."""
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, "replay-lock"), "a+", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise BadState(f"another replay is at work in {self.folder}: wait for its end") from None
            yield

    def _claim(self, pipeline: str) -> None:
        path = os.path.join(self.folder, _PIPELINE)
        there = read_json(path)
        if there is None:
            write_json(path, {"pipeline": pipeline})
        elif there.get("pipeline") != pipeline:
            raise BadState(
                f"{self.folder} belongs to the pipeline {there.get('pipeline')!r}, and this is {pipeline!r}: "
                "give it another --folder, or the file its old name"
            )


def query_of(checkpoint: str) -> str | None:
    """The id that Spark has given the query of a checkpoint; None before its first start."""
    try:
        with open(os.path.join(checkpoint, "metadata"), encoding="utf-8") as file:
            found = json.loads(file.read())["id"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise BadState(
            f"{checkpoint}/metadata is damaged ({error}): restore it, or delete the flow's folders"
        ) from error
    return str(found)


def offsets_of(checkpoint: str) -> list[dict[str, Any]]:
    """Where the sources of a flow stand after its last finished micro-batch."""
    try:
        finished = [int(name) for name in os.listdir(os.path.join(checkpoint, "commits")) if name.isdecimal()]
    except FileNotFoundError:
        return []
    return offsets_in(checkpoint, max(finished)) if finished else []


def offsets_in(checkpoint: str, batch: int) -> list[dict[str, Any]]:
    """Up to where a micro-batch reads its sources."""
    with open(os.path.join(checkpoint, "offsets", str(batch)), encoding="utf-8") as file:
        lines = file.read().splitlines()[2:]  # behind the version and Spark's own metadata
    return [one for one in (json.loads(line) for line in lines if line.startswith("{")) if isinstance(one, dict)]


def read_json(path: str) -> dict[str, Any] | None:
    """None where there is no file."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise BadState(f"{path} is damaged ({error}): restore or delete it") from error
    if not isinstance(found, dict):
        raise BadState(f"{path} holds no object: restore or delete it")
    return found


def write_json(path: str, content: dict[str, Any], *, flushed: bool = True) -> None:
    """In place of what was there: a reader sees the old or the new. `flushed` is for what must survive the machine."""
    folder = os.path.dirname(path)
    is_new = not os.path.isdir(folder)
    os.makedirs(folder, exist_ok=True)
    write_file(path, json.dumps(content).encode(), flushed=flushed)
    if is_new and flushed:
        sync_names_above(folder)
