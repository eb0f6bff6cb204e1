"""Print files of a log directory and check them: segments, indexes, snapshots, checkpoints, meta.properties.

No broker is needed, and the files may be in use. A folder stands for all such files below it. Lines are those of
Kafka's dump tool; `-o json` prints an object a line. What is found to be wrong goes to standard error as well.
--quiet only checks, and is several times as fast.
Exit code 0: all is sound; 1: damage was found; 2: a file was not looked at, since it is none of these or cannot be
read; 3: a file does not exist.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli.faults import FAILED, NOT_FOUND, OK, USAGE, CommandFault, UsageFault

if TYPE_CHECKING:
    from json import JSONEncoder

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
    from ottla.cli.counting import counted
    from ottla.cli.progress import Progress
    from ottla.ports.real import wants_portable
    from ottla.ports.real.disk import RealDisk

    disk = RealDisk(portable=wants_portable())
    files, unread = _files(disk, [*options.files, *filter(None, options.files_option.split(","))])
    # A bar between printed lines helps nobody.
    watched = options.quiet or not sys.stdout.isatty()
    damage = 0
    with Progress("reading", sum(map(_size, files)), "B", wanted=watched) as progress:
        for file in files:
            damage += _dump(disk, file, options, progress, unread)
    for line in unread:
        print(f"ottla: {line}", file=sys.stderr)
    if damage:
        was = "was" if damage == 1 else "were"
        print(f"ottla: {counted(damage, 'fault')} {was} found in {counted(len(files), 'file')}", file=sys.stderr)
    return FAILED if damage else USAGE if unread else OK


def _size(path: str) -> int:
    """For the bar; a file that has gone meanwhile is met again."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _files(disk: Disk, paths: list[str]) -> tuple[list[str], list[str]]:
    """What is to be dumped; and what is not looked at, with the reason."""
    from ottla.storage.dump import Finding, files_of, kind_of

    if not paths:
        raise UsageFault("name at least one file or folder (see ottla log dump --help)")
    found: list[str] = []
    unread: list[str] = []
    for path in paths:
        try:
            os.lstat(path)  # a link that leads nowhere is there, and cannot be read
        except (FileNotFoundError, NotADirectoryError) as error:
            raise CommandFault(f"there is no file or folder {path}", NOT_FOUND) from error
        except (OSError, ValueError) as error:
            unread.append(f"cannot read {path}: {getattr(error, 'strerror', None) or error}")
            continue
        for each in files_of(disk, path):
            if isinstance(each, Finding):
                unread.append(_unreadable(each))
            elif kind_of(each):
                found.append(each)
            else:
                unread.append(f"not looked at, since no file of a log directory has such a name: {each}")
    if not found and not unread:
        raise CommandFault(f"no file of a log directory is below {', '.join(paths)}", NOT_FOUND)
    return found, unread


def _unreadable(finding: Finding) -> str:
    return f"cannot read {finding.path}: {finding.message}"


def _dump(disk: Disk, path: str, options: argparse.Namespace, progress: Progress, unread: list[str]) -> int:
    """Prints one file; returns how many faults it has."""
    from ottla.storage.dump import Finding, check_file, dump_file, dump_lines

    records, form = not options.batches_only, options.output
    if options.quiet:
        lines: Iterator[str | Entry | Finding] = check_file(disk, path, records=records, passed=progress.add)
    elif form == "table":
        print(f"Dumping {path}")
        lines = dump_lines(disk, path, records=records)
    else:
        lines = dump_file(disk, path, records=records)
    damage = 0
    write = sys.stdout.write
    for line in lines:
        if isinstance(line, str):
            write(line)
            continue
        if isinstance(line, Finding):
            if line.is_unread:
                unread.append(_unreadable(line))
                continue
            damage += line.is_damage
            if line.is_damage or not options.quiet:
                progress.note(f"{'damage' if line.is_damage else 'note'}: {line}")
        if form != "table":
            write(_WRITERS[form](path, line))
    if not options.quiet:
        progress.add(_size(path))
    return damage


def _as_json(path: str, entry: Entry | Finding) -> str:
    return _json_encoder().encode(_structure(path, entry)) + "\n"


@cache
def _json_encoder() -> JSONEncoder:
    """One for all: making it costs as much as using it."""
    from json import JSONEncoder

    return JSONEncoder(ensure_ascii=False)


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


_WRITERS = {"json": _as_json, "yaml": _as_yaml}
