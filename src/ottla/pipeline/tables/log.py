"""Which files a table is made of: a folder with one small file for each version.

    <table>/_ottla/00000000000000000012.json    the commit that made version 12
    <table>/_ottla/00000000000000000099.state   all that is known at version 99: a reader begins here
    <table>/data/<attempt>/part-....parquet     rows; a file counts from the commit that adds it

A commit comes into being by one `link` of a file that is whole and on the medium, so a reader sees all of it or
nothing, and of two writers of one version one is refused. A commit that a query made names the query and its
micro-batch: a batch that is planned again after a crash finds itself, and writes nothing.

Invariants: versions have no gaps; `batches` only rise; a file is added once and removed once, never before it is added.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

from ottla.pipeline.errors import ANEW, BadState
from ottla.pipeline.folders import sync_folder, sync_names_above

LOG: Final = "_ottla"
DATA: Final = "data"
VERSION_OF_FORMAT: Final = 1
#: Commits between two states: a reader that begins reads so many small files at most.
STATE_EVERY: Final = 50
_DIGITS: Final = 20
#: How the names end of files that are being written, and what tells them apart.
_DRAFT: Final = ".new"
_CHANCE_BYTES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """A Parquet file. Its path is below the table's folder."""

    path: str
    rows: int
    bytes: int
    #: When its youngest rows were written.
    written_ms: int
    #: Of a table with keys: which part of the keys it holds.
    bucket: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What makes a version of the one before."""

    #: append, upsert, replace, compact, retain.
    kind: str
    written_ms: int
    #: The id in the query's checkpoint, and its micro-batch; None where no stream wrote.
    query: str | None = None
    batch: int | None = None
    added: tuple[TableFile, ...] = ()
    #: Paths.
    removed: tuple[str, ...] = ()
    #: What a stream reads of this version, where that is not `added`.
    changes: tuple[TableFile, ...] | None = None
    #: Spark's JSON of all columns that rows of the table may have.
    schema: dict[str, Any] | None = None
    #: By which rows replace others, where that is not known yet; none: rows are added.
    keys: tuple[str, ...] | None = None
    #: What is counted, by name; added to what was counted before.
    counts: dict[str, int] = field(default_factory=dict)
    #: The youngest time that the table has, by the column of an `expect_on_time`; in microseconds since 1970.
    youngest_us: dict[str, int] = field(default_factory=dict)

    @property
    def for_streams(self) -> tuple[TableFile, ...]:
        """New rows, to a flow that reads the table as a stream. What a backfill replaces is none of its business."""
        if self.kind not in {"append", "upsert"}:
            return ()
        return self.added if self.changes is None else self.changes

    def as_json(self) -> dict[str, Any]:
        return {"format": VERSION_OF_FORMAT, **asdict(self)}

    @classmethod
    def parsed(cls, text: bytes, where: str) -> Self:
        with _explained(where):
            fields = _known(text, where)
            changes = fields.get("changes")
            return cls(
                **{
                    **fields,
                    "added": _files(fields["added"]),
                    "removed": tuple(fields["removed"]),
                    "changes": None if changes is None else _files(changes),
                    "keys": _keys(fields),
                }
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """A table at one version; -1 before the first commit."""

    version: int = -1
    files: dict[str, TableFile] = field(default_factory=dict)
    #: The last micro-batch of each query that wrote.
    batches: dict[str, int] = field(default_factory=dict)
    schema: dict[str, Any] | None = None
    #: By which rows replace others; None where no commit has said it.
    keys: tuple[str, ...] | None = None
    counts: dict[str, int] = field(default_factory=dict)
    youngest_us: dict[str, int] = field(default_factory=dict)
    #: The last `written_ms` of files that `retain` has taken out.
    retained_ms: int | None = None

    def has(self, query: str, batch: int) -> bool:
        return self.batches.get(query, -1) >= batch

    def after(self, commit: Commit) -> TableState:
        files = {path: file for path, file in self.files.items() if path not in set(commit.removed)}
        batches = self.batches
        if commit.query is not None and commit.batch is not None:
            assert not self.has(commit.query, commit.batch)
            batches = {**batches, commit.query: commit.batch}
        youngest = dict(self.youngest_us)
        for column, time_us in commit.youngest_us.items():
            youngest[column] = max(time_us, youngest.get(column, time_us))
        retained = [] if self.retained_ms is None else [self.retained_ms]
        if commit.kind == "retain":
            retained += [self.files[path].written_ms for path in commit.removed]
        return TableState(
            version=self.version + 1,
            files=files | {file.path: file for file in commit.added},
            batches=batches,
            schema=commit.schema if commit.schema is not None else self.schema,
            keys=commit.keys if commit.keys is not None else self.keys,
            counts={
                name: self.counts.get(name, 0) + commit.counts.get(name, 0)
                for name in (*self.counts, *(one for one in commit.counts if one not in self.counts))
            },
            youngest_us=youngest,
            retained_ms=max(retained, default=None),
        )

    def as_json(self) -> dict[str, Any]:
        fields = asdict(self)
        return {"format": VERSION_OF_FORMAT, **fields, "files": list(fields["files"].values())}

    @classmethod
    def parsed(cls, text: bytes, where: str) -> Self:
        with _explained(where):
            fields = _known(text, where)
            files = {file.path: file for file in _files(fields["files"])}
            return cls(**{**fields, "files": files, "keys": _keys(fields)})


class TableLog:
    """One table's, as one process reads and writes it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._log = os.path.join(folder, LOG)
        self._state = TableState()

    def path(self, file: str) -> str:
        return os.path.join(self.folder, file)

    def state(self) -> TableState:
        """As the folder says it now."""
        if self._state.version < 0 or self._is_forgotten():
            self._state = self._from_the_last_state()
        while True:
            commit = self._read(self._state.version + 1)
            if commit is not None:
                self._state = self._state.after(commit)
            elif self._is_forgotten():  # meanwhile, and perhaps with it what follows
                self._state = self._from_the_last_state()
            else:
                return self._state

    def state_at(self, version: int) -> TableState:
        """As it was at a version. Raises BadState where that is not known any more."""
        state = self._from_the_last_state(version)
        for commit in self.commits(state.version, version):
            state = state.after(commit)
        return state

    def commit(self, commit: Commit) -> TableState:
        """Makes the next version. What it adds must be on the medium. Raises BadState where another was first."""
        version = self._state.version + 1
        os.makedirs(self._log, exist_ok=True)
        name = self._name(version)
        text = json.dumps(commit.as_json()).encode()
        try:
            linked(name, text)
        except FileExistsError:
            raise BadState(
                f"{self.folder}: somebody else has written version {version} meanwhile: only one pipeline may write "
                "a table"
            ) from None
        if version == 0:
            sync_names_above(self._log)
        self._state = self._state.after(commit)
        if version % STATE_EVERY == STATE_EVERY - 1:
            with contextlib.suppress(FileExistsError):
                linked(f"{name.removesuffix('.json')}.state", json.dumps(self._state.as_json()).encode())
        return self._state

    def commits(self, after: int, until: int) -> list[Commit]:
        """Those of the versions behind `after`, up to `until`. Raises BadState where one is gone."""
        found = []
        for version in range(after + 1, until + 1):
            commit = self._read(version)
            if commit is None:
                raise BadState(f"{self.folder} has no version {version} any more, which a flow has not read: {ANEW}")
            found.append(commit)
        return found

    def forget(self, until: int) -> None:
        """Commits below `until` that a state covers are deleted; the newest state and what follows it stay.

        The oldest go first: where a commit is there, so is the next one.
        """
        states = self._versions(".state")
        if not states:
            return
        bound = min(until, states[-1])
        for ending, versions in ((".json", self._versions(".json")), (".state", states[:-1])):
            for version in versions:
                if version < bound:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(self._name(version, ending))

    def oldest(self) -> int:
        """The first version whose commit is still there."""
        return min(self._versions(".json"), default=0)

    def _is_forgotten(self) -> bool:
        """Whether the version that is known is there no more."""
        if self._state.version < 0:
            return bool(self._versions(".json"))
        return not os.path.exists(self._name(self._state.version))

    def _from_the_last_state(self, until: int | None = None) -> TableState:
        while True:
            states = self._versions(".state")
            for version in reversed(states):
                if until is not None and version > until:
                    continue
                name = self._name(version, ".state")
                with contextlib.suppress(FileNotFoundError):
                    return TableState.parsed(_content(name), name)
            first = self._versions(".json")[:1]
            if not first or first[0] == 0:
                return TableState()
            if self._versions(".state") == states:  # else it was written, and commits were forgotten, just now
                raise BadState(f"{self._log} begins with version {first[0]}, and no state is there: restore its files")

    def _read(self, version: int) -> Commit | None:
        name = self._name(version)
        try:
            return Commit.parsed(_content(name), name)
        except FileNotFoundError:
            return None

    def _versions(self, ending: str) -> list[int]:
        try:
            names = os.listdir(self._log)
        except FileNotFoundError:
            return []
        stems = (name.removesuffix(ending) for name in names if name.endswith(ending))
        return sorted(int(stem) for stem in stems if len(stem) == _DIGITS and stem.isdecimal())

    def _name(self, version: int, ending: str = ".json") -> str:
        return os.path.join(self._log, f"{version:0{_DIGITS}}{ending}")


def at_version(log: TableLog, version: int) -> TableState:
    """The table as it was. Raises BadState for a version that is not there, or no more."""
    newest = TableLog(log.folder).state().version
    if not 0 <= version <= newest:
        raise BadState(f"{log.folder} has no version {version}: it ends with {newest}")
    with contextlib.suppress(BadState):  # commits are gone that lead to it
        state = log.state_at(version)
        if all(os.path.exists(log.path(path)) for path in state.files):
            return state
    raise BadState(
        f"{log.folder} has no version {version} any more: files that nobody reads are deleted after an hour; it ends "
        f"with {newest}"
    )


def _content(name: str) -> bytes:
    with open(name, "rb") as file:
        return file.read()


def linked(name: str, text: bytes) -> None:
    """A file that is whole as soon as it has its name. Raises FileExistsError."""
    # By chance, since processes in two containers have one number.
    draft = f"{name}.{os.urandom(_CHANCE_BYTES).hex()}{_DRAFT}"
    try:
        with open(draft, "xb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, name)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
    sync_folder(os.path.dirname(name))


def delete_drafts(folder: str, before_ms: int) -> None:
    """Those of `linked` that were left behind in a folder."""
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        path = os.path.join(folder, name)
        with contextlib.suppress(FileNotFoundError):
            if name.endswith(_DRAFT) and os.path.getmtime(path) * 1000 < before_ms:
                os.unlink(path)


def _known(text: bytes, where: str) -> dict[str, Any]:
    fields = json.loads(text)
    version = fields.pop("format")
    if version != VERSION_OF_FORMAT:
        raise BadState(f"{where} is of format {version!r}: a newer version of Ottla wrote it, which must read it")
    if not isinstance(fields.get("youngest_us"), dict):  # of before each column had its own
        fields["youngest_us"] = {}
    return dict(fields)


def _files(listed: list[Mapping[str, Any]]) -> tuple[TableFile, ...]:
    return tuple(TableFile(**one) for one in listed)


def _keys(fields: Mapping[str, Any]) -> tuple[str, ...] | None:
    found = fields.get("keys")
    return None if found is None else tuple(found)


@contextlib.contextmanager
def _explained(where: str) -> Any:
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadState(
            f"{where} is damaged ({error}): restore it, or delete the table's folder and run anew"
        ) from error
