"""A table's log once more, as Delta Lake's: whatever reads Delta reads the table (`@table(format="delta")`).

    <table>/_delta_log/00000000000000000007.json    version 7: the files that one of our commits adds and removes

The log of `log` decides; this one follows it, and says in each commit (`txn`, under the name `ottla`) as far as which
of our versions. A run that died between the two goes on from there when it starts, so that Delta's readers see each
row once, as ours do. Both logs name the same Parquet files: none is written twice.

Protocol: reader 1, writer 2, which every reader of Delta has. Nothing but a pipeline may write here.
"""

from __future__ import annotations

import json
import os
import uuid
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import quote

from ottla.pipeline.errors import BadDefinition, BadState
from ottla.pipeline.tables.log import Commit, TableFile, TableLog, linked

DELTA: Final = "_delta_log"
#: The application whose transactions' versions are ours.
_APPLICATION: Final = "ottla"
#: Commits between two of Delta's checkpoints: a reader reads so many small files at most.
CHECKPOINT_EVERY: Final = 100
_DIGITS: Final = 20
_TYPES: Final = frozenset(
    ("string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp")
)
#: What Delta takes in no column's name.
_NOT_IN_NAMES: Final = frozenset(" ,;{}()\n\t=")
_OPERATIONS: Final = {
    "append": "WRITE",
    "upsert": "MERGE",
    "replace": "WRITE",
    "compact": "OPTIMIZE",
    "retain": "DELETE",
}


def check_delta(what: str, schema: Any) -> None:
    """Raises BadDefinition where Delta cannot have such a table. `schema` is Spark's."""
    if find_spec("deltalake") is None:
        raise BadDefinition(f"{what}: format=\"delta\" needs deltalake: pip install 'ottla[spark]'")
    for field in schema.jsonValue()["fields"]:
        _check_field(what, field, field["name"])


def publish(log: TableLog) -> int:
    """Brings Delta's log up to ours; how many commits it wrote. Raises BadState where another program wrote there."""
    state = log.state()
    if state.version < 0 or state.schema is None:
        return 0
    folder = log.path(DELTA)
    os.makedirs(folder, exist_ok=True)
    newest = _newest(folder)
    if newest < 0:
        # One commit with all that is there: ours of before may be forgotten already.
        table = str(uuid.uuid4())
        files = tuple(state.files.values())
        written_ms = max((one.written_ms for one in files), default=0)
        whole = Commit(kind="append", written_ms=written_ms, added=files, schema=state.schema)
        first = _actions(table, state.version, whole, is_first=True)
        _write(folder, 0, first)
        return 1
    table, published = _said(folder, newest)
    commits = log.commits(published, state.version)
    for number, commit in enumerate(commits, 1):
        actions = _actions(table, published + number, commit, is_first=False)
        _write(folder, newest + number, actions)
        if (newest + number) % CHECKPOINT_EVERY == 0:
            _checkpoint(log.folder)
    return len(commits)


def _actions(table: str, version: int, commit: Commit, *, is_first: bool) -> list[dict[str, Any]]:
    from ottla import __version__

    changes = commit.kind != "compact"
    found: list[dict[str, Any]] = [
        {
            "commitInfo": {
                "timestamp": commit.written_ms,
                "operation": _OPERATIONS[commit.kind],
                "operationParameters": {},
                "engineInfo": f"Ottla {__version__}",
                "ottlaTable": table,
            }
        }
    ]
    if is_first:
        found.append({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})
    if commit.schema is not None:
        found.append({"metaData": _metadata(table, commit.schema, commit.written_ms)})
    found.append({"txn": {"appId": _APPLICATION, "version": version, "lastUpdated": commit.written_ms}})
    if commit.query is not None and commit.batch is not None:
        found.append({"txn": {"appId": commit.query, "version": commit.batch, "lastUpdated": commit.written_ms}})
    found += [{"add": _added(file, changes)} for file in commit.added]
    found += [
        {"remove": {"path": _uri(path), "deletionTimestamp": commit.written_ms, "dataChange": changes}}
        for path in commit.removed
    ]
    return found


def _metadata(table: str, schema: dict[str, Any], now_ms: int) -> dict[str, Any]:
    return {
        "id": table,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": now_ms,
    }


def _added(file: TableFile, changes: bool) -> dict[str, Any]:
    return {
        "path": _uri(file.path),
        "partitionValues": {},
        "size": file.bytes,
        "modificationTime": file.written_ms,
        "dataChange": changes,
        "stats": json.dumps({"numRecords": file.rows}),
    }


def _uri(path: str) -> str:
    return quote(path, safe="/=")


def _write(folder: str, version: int, actions: list[dict[str, Any]]) -> None:
    text = "".join(f"{json.dumps(action)}\n" for action in actions).encode()
    try:
        linked(_name(folder, version), text)
    except FileExistsError:
        raise _other_writer(folder, version) from None


def _newest(folder: str) -> int:
    """The last version; -1 before the first."""
    stems = (name.removesuffix(".json") for name in os.listdir(folder) if name.endswith(".json"))
    return max((int(stem) for stem in stems if len(stem) == _DIGITS and stem.isdecimal()), default=-1)


def _said(folder: str, version: int) -> tuple[str, int]:
    """The table's id, and the version of ours that a commit says."""
    name = _name(folder, version)
    try:
        with open(name, encoding="utf-8") as file:
            actions = [json.loads(line) for line in file if line.strip()]
        table = next(one["commitInfo"]["ottlaTable"] for one in actions if "commitInfo" in one)
        transactions = (one["txn"] for one in actions if "txn" in one)
        return str(table), next(int(one["version"]) for one in transactions if one["appId"] == _APPLICATION)
    except (ValueError, KeyError, TypeError, StopIteration):
        raise _other_writer(folder, version) from None


def _other_writer(folder: str, version: int) -> BadState:
    return BadState(
        f"{folder} has a version {version} that no pipeline wrote, and its files may be others than the table's: "
        f"delete {folder}, and the next run writes it anew"
    )


def _name(folder: str, version: int) -> str:
    return os.path.join(folder, f"{version:0{_DIGITS}}.json")


def _checkpoint(table: str) -> None:
    """Delta's own files beside its log, so that readers need not read all of it; what is older than a month goes."""
    from deltalake import DeltaTable

    found = DeltaTable(table)
    found.create_checkpoint()
    found.cleanup_metadata()


def _check_field(what: str, field: dict[str, Any], path: str) -> None:
    if _NOT_IN_NAMES & set(field["name"]):
        raise BadDefinition(
            f"{what}: Delta takes no column of the name {path!r}: give it another one by alias, without spaces and "
            "any of ,;{}()="
        )
    _check_type(what, field["type"], path)


def _check_type(what: str, kind: Any, path: str) -> None:
    if isinstance(kind, str):
        if kind not in _TYPES and not kind.startswith("decimal("):
            raise BadDefinition(f"{what}: Delta has no type {kind}, which the column {path} has: cast it")
    elif kind["type"] == "struct":
        for field in kind["fields"]:
            _check_field(what, field, f"{path}.{field['name']}")
    elif kind["type"] == "array":
        _check_type(what, kind["elementType"], path)
    elif kind["type"] == "map":
        _check_type(what, kind["keyType"], path)
        _check_type(what, kind["valueType"], path)
    else:
        raise BadDefinition(f"{what}: Delta has no type {kind['type']}, which the column {path} has: cast it")
