"""Print files of a log directory and check them: segments, indexes, snapshots, checkpoints, meta.properties.

No broker is needed, and the files may be in use. A folder stands for all such files below it. Lines are those of
Kafka's dump tool; `-o json` prints an object a line. What is found to be wrong goes to standard error as well.
Exit code 0: all is sound; 1: damage was found; 2: a file that was named is none of these; 3: a file does not exist.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli.faults import FAILED, NOT_FOUND, OK, USAGE, CommandFault, UsageFault

if TYPE_CHECKING:
    from ottla.cli.progress import Progress
    from ottla.ports.disk import Disk
    from ottla.storage.dump import Entry, Finding


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", metavar="FILE", help="files of a log directory, or folders")
    parser.add_argument(
        "--files", dest="files_option", metavar="FILE,...", help="the same, as Kafka's script has it", default=""
    )
    parser.add_argument("--batches-only", action="store_true", help="do not open batches to show their records")
    parser.add_argument("--quiet", action="store_true", help="print only what is wrong")
    parser.add_argument("--print-data-log", action="store_true", help=argparse.SUPPRESS)  # what we do anyway
    parser.add_argument("--deep-iteration", action="store_true", help=argparse.SUPPRESS)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.progress import Progress
    from ottla.ports.real import wants_portable
    from ottla.ports.real.disk import RealDisk

    disk = RealDisk(portable=wants_portable())
    files, strange = _files(disk, [*options.files, *filter(None, options.files_option.split(","))])
    # A bar between printed lines helps nobody.
    watched = options.quiet or not sys.stdout.isatty()
    total = sum(os.path.getsize(file) for file in files)
    damage = 0
    with Progress("reading", total, "B", wanted=watched) as progress:
        for file in files:
            damage += _dump(disk, file, options, progress)
    if strange:
        what = "its name tells" if len(strange) == 1 else "their names tell"
        fault = f"not looked at, as {what} no kind of file that a log directory has: {', '.join(strange)}"
        print(f"ottla: {fault}", file=sys.stderr)
    if damage:
        print(f"ottla: {damage} faults found in {len(files)} files", file=sys.stderr)
    return FAILED if damage else USAGE if strange else OK


def _files(disk: Disk, paths: list[str]) -> tuple[list[str], list[str]]:
    """What is to be dumped, and what was named and is of no kind that could be."""
    from ottla.storage.dump import files_of, kind_of

    if not paths:
        raise UsageFault("name at least one file or folder (see ottla log dump --help)")
    found: list[str] = []
    for path in paths:
        if not os.path.exists(path):
            raise CommandFault(f"there is no {path}", NOT_FOUND)
        found += files_of(disk, path)
    if not found:
        raise CommandFault(f"no file of a log directory is below {', '.join(paths)}", NOT_FOUND)
    return [path for path in found if kind_of(path)], [path for path in found if not kind_of(path)]


def _dump(disk: Disk, path: str, options: argparse.Namespace, progress: Progress) -> int:
    """Prints one file; returns how many faults it has."""
    from ottla.storage.dump import Finding, dump_file

    damage = 0
    write = _WRITERS[options.output]
    if options.output == "table" and not options.quiet:
        print(f"Dumping {path}")
    at = 0
    for entry in dump_file(disk, path, records=not options.batches_only):
        if isinstance(entry, Finding):
            damage += entry.is_damage
            if entry.is_damage or not options.quiet:
                progress.note(f"{'damage' if entry.is_damage else 'note'}: {entry}")
            if options.output == "table":
                continue
        if not options.quiet or isinstance(entry, Finding):
            sys.stdout.write(write(path, entry))
        position = getattr(entry, "position", None)
        if position is not None and path.endswith(".log"):
            progress.add(position - at)
            at = position
    progress.add(os.path.getsize(path) - at)
    return damage


def _as_line(path: str, entry: Entry | Finding) -> str:
    from ottla.storage.dump import fields
    from ottla.storage.dump.entries import Finding, PropertyEntry, RecordEntry

    del path
    assert not isinstance(entry, Finding)
    if isinstance(entry, PropertyEntry):
        return f"{entry.name}={entry.value}\n"
    shown = " ".join(f"{name}: {_plain(value)}" for name, value in fields(entry) if value is not None)
    return f"| {shown}\n" if isinstance(entry, RecordEntry) else f"{shown}\n"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    if isinstance(value, list):
        return f"[{','.join(map(str, value))}]"
    # A record's own line breaks would make two lines of it.
    return str(value).replace("\r", "\\r").replace("\n", "\\n")


def _as_json(path: str, entry: Entry | Finding) -> str:
    import json

    return json.dumps(_structure(path, entry), ensure_ascii=False) + "\n"


def _as_yaml(path: str, entry: Entry | Finding) -> str:
    import yaml

    text: str = yaml.safe_dump([_structure(path, entry)], sort_keys=False, allow_unicode=True)
    return text


def _structure(path: str, entry: Entry | Finding) -> dict[str, Any]:
    from ottla.storage.dump import fields
    from ottla.storage.dump.entries import Finding

    made: dict[str, Any] = {"file": path, "kind": type(entry).__name__.removesuffix("Entry").lower()}
    if isinstance(entry, Finding):
        return {**made, "position": entry.position, "message": entry.message, "damage": entry.is_damage}
    named = dict(_structured_fields(fields(entry)))
    headers = getattr(entry, "headers", None)
    if headers is not None:
        named["headers"] = [[name, _text_or_base64(value)] for name, value in headers]
    return {**made, **named}


def _structured_fields(named: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for name, value in named:
        yield name, _text_or_base64(value) if isinstance(value, bytes) else value


def _text_or_base64(value: bytes | None) -> Any:
    from ottla.cli.envelope import text_or_base64

    return text_or_base64(value)


_WRITERS = {"table": _as_line, "json": _as_json, "yaml": _as_yaml}
