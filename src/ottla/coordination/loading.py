"""A start: the newest snapshot, the journals behind it, and what is wrong with any of them.

Two snapshots are kept, and the journals from the older one on: a damaged newest snapshot then costs nothing. Names are
`snapshot.<zxid of its state>` and `journal.<first zxid that it may hold>`, in 20 digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Final, NamedTuple

from ottla import logs
from ottla.coordination.errors import CoordinationError, StorageDamaged
from ottla.coordination.interface import TreeAge
from ottla.coordination.journal import JournalContents, JournalFile, read_contents
from ottla.coordination.snapshot import SnapshotFault, decode_snapshot
from ottla.coordination.tree import ZnodeTree
from ottla.coordination.znodes import CLUSTER_ID
from ottla.ports.disk import Disk
from ottla.ports.whole_files import write_whole

SNAPSHOTS_KEPT: Final = 2
_JOURNAL: Final = "journal."
_SNAPSHOT: Final = "snapshot."
_DIGITS: Final = 20

_log = logs.logger("coordination")


#: Looks at a tree as it was found.
TreeCheck = Callable[[TreeAge], None]


def nothing_to_check(_: TreeAge) -> None: ...


class LoadReport(NamedTuple):
    """What a start found."""

    snapshot_zxid: int
    txns_replayed: int
    #: Bytes of a torn tail that were cut from the journal, and the file they were put in.
    torn_bytes: int
    torn_kept_in: str | None
    #: Snapshots that could not be read.
    damaged_snapshots: tuple[str, ...]


class LoadedTree(NamedTuple):
    tree: ZnodeTree
    #: As it was found: the tree itself may have gone on when the journal is opened at last.
    zxid: int
    report: LoadReport
    #: The journal that can be written on, and its good size. None: a new one is due.
    resume: tuple[str, int] | None
    #: The journal that a torn tail is to be cut from, and what is known of it.
    torn: tuple[str, JournalContents] | None
    #: Journals that were only begun.
    hollow: tuple[str, ...]


#: The journal to write on, or why there is none yet.
Opened = tuple[JournalFile, LoadReport] | OSError


def load_and_open(disk: Disk, directory: str, check: TreeCheck) -> tuple[LoadedTree, Opened]:
    """A start. What `check` raises comes before anything is changed."""
    loaded = load(disk, directory)
    node = loaded.tree.nodes.get(CLUSTER_ID)
    check(TreeAge(None if node is None else node.ctime_ms, loaded.tree.zxid))
    return loaded, open_again(disk, directory, loaded)


def open_again(disk: Disk, directory: str, loaded: LoadedTree) -> Opened:
    try:
        return open_journal(disk, directory, loaded)
    except OSError as error:
        return error


def close_again(opened: Opened) -> None:
    """Nobody will write on it."""
    if not isinstance(opened, OSError):
        journal, _ = opened
        journal.close()


def journal_name(first_zxid: int) -> str:
    return f"{_JOURNAL}{first_zxid:0{_DIGITS}d}"


def snapshot_name(zxid: int) -> str:
    return f"{_SNAPSHOT}{zxid:0{_DIGITS}d}"


def zxids_of(names: Sequence[str], prefix: str) -> list[int]:
    found = (name[len(prefix) :] for name in names if name.startswith(prefix))
    return sorted(int(digits) for digits in found if len(digits) == _DIGITS and digits.isascii() and digits.isdigit())


def load(disk: Disk, directory: str) -> LoadedTree:
    """Reads the directory, and changes nothing. Raises StorageDamaged where acknowledged writes would be lost."""
    names = disk.names(directory)
    tree, damaged = _newest_snapshot(disk, directory, zxids_of(names, _SNAPSHOT))
    base = tree.zxid
    journals = _needed(disk, directory, zxids_of(names, _JOURNAL), base)
    hollow = _pop_hollow(journals)
    replayed = 0
    for index, (path, contents) in enumerate(journals):
        if contents.damaged_below_tail or (contents.fault and index + 1 < len(journals)):
            raise StorageDamaged(
                f"{path} is damaged at byte {contents.good_size} ({contents.fault}), below what was acknowledged "
                f"later: restore the file, or move {directory} away to start empty"
            )
        replayed += _replay(tree, contents, path, damaged)
    _check_reached(directory, tree, names)
    torn, resume = None, None
    if journals:
        path, contents = journals[-1]
        torn = journals[-1] if contents.fault is not None else None
        # A journal that the snapshot covers wholly is not written on, so that it can be pruned.
        resume = (path, contents.good_size) if tree.zxid > base else None
    return LoadedTree(tree, tree.zxid, LoadReport(base, replayed, 0, None, tuple(damaged)), resume, torn, tuple(hollow))


def _needed(disk: Disk, directory: str, firsts: Sequence[int], base: int) -> list[tuple[str, JournalContents]]:
    """The journals that may hold anything behind `base`: all but those whose next one starts there already."""
    needed: list[tuple[str, JournalContents]] = []
    for index, first in enumerate(firsts):
        if index + 1 == len(firsts) or firsts[index + 1] > base + 1:
            path = f"{directory}/{journal_name(first)}"
            needed.append((path, read_contents(disk.read_file(path), first)))
    return needed


def _pop_hollow(journals: list[tuple[str, JournalContents]]) -> list[str]:
    """Takes the last journals out as long as they were only begun; the one before is then the one in use."""
    hollow: list[str] = []
    while journals:
        path, contents = journals[-1]
        if contents.frames or contents.damaged_below_tail or (contents.fault and contents.good_size):
            break
        journals.pop()
        hollow.append(path)
    return hollow


def _newest_snapshot(disk: Disk, directory: str, zxids: Sequence[int]) -> tuple[ZnodeTree, list[str]]:
    damaged: list[str] = []
    for zxid in reversed(zxids):
        path = f"{directory}/{snapshot_name(zxid)}"
        try:
            tree = decode_snapshot(disk.read_file(path), zxid)
        except SnapshotFault as fault:
            _log.warning("snapshot is damaged: using an older one and the journals", path=path, fault=str(fault))
            damaged.append(path)
        else:
            return tree, damaged
    return ZnodeTree(), damaged


def _check_reached(directory: str, tree: ZnodeTree, names: Sequence[str]) -> None:
    """Every file name says that the transactions before it were there once."""
    known = max([*zxids_of(names, _SNAPSHOT), *(first - 1 for first in zxids_of(names, _JOURNAL)), 0])
    if tree.zxid < known:
        raise StorageDamaged(
            f"{directory} can be read up to transaction {tree.zxid} only, and has been at {known}: restore its "
            f"damaged or missing files, or move it away to start empty"
        )


def _replay(tree: ZnodeTree, contents: JournalContents, path: str, damaged_snapshots: Sequence[str]) -> int:
    count = 0
    for frame in contents.frames:
        if frame.first_zxid > tree.zxid + 1:
            instead = f" ({damaged_snapshots[0]} is damaged)" if damaged_snapshots else ""
            raise StorageDamaged(
                f"{path} goes on at transaction {frame.first_zxid}, but those from {tree.zxid + 1} on are in no "
                f"file{instead}: restore the missing files"
            )
        for zxid, txn in enumerate(frame.txns, frame.first_zxid):
            if zxid <= tree.zxid:
                continue
            try:
                tree.apply(txn.session_id, txn.ops, zxid, txn.time_ms)
            except CoordinationError as error:
                raise StorageDamaged(f"{path}: transaction {zxid} does not fit the tree ({error})") from error
            count += 1
    return count


def _set_torn_tail_aside(disk: Disk, path: str, contents: JournalContents) -> tuple[int, str | None]:
    """Keeps what is about to be cut, so that an operator can look at it. The cut comes when the file is reopened.

    Nobody can tell a frame that a crash cut short, which was never acknowledged, from one that was whole and was cut
    later: the warning says what is known.
    """
    tail = disk.read_file(path)[contents.good_size :]
    if not any(tail):
        # Nothing but zeros, or nothing at all: a file that was made longer and never written.
        return len(tail), None
    directory, _, name = path.rpartition("/")
    kept_in = f"{directory}/torn.{name}.{contents.good_size}"
    write_whole(disk, kept_in, tail)
    _log.warning(
        "cut a torn tail from the journal. A crash in the middle of a write leaves one, and nothing in it was "
        "acknowledged; if the file was damaged otherwise, acknowledged changes may be missing: those of its last write",
        path=path,
        at=contents.good_size,
        bytes=len(tail),
        fault=contents.fault,
        kept_in=kept_in,
    )
    return len(tail), kept_in


def open_journal(disk: Disk, directory: str, loaded: LoadedTree) -> tuple[JournalFile, LoadReport]:
    """The journal to write on, durable when this returns, and what became of a torn tail.

    Fine to call again where it raised OSError: what was found by `load` still holds.
    """
    for name in disk.names(directory):
        if name.endswith(".tmp"):
            disk.remove(f"{directory}/{name}")
    for path in loaded.hollow:
        with suppress(FileNotFoundError):
            disk.remove(path)
    if loaded.hollow:
        disk.sync_directory(directory)
    report = loaded.report
    if loaded.torn is not None:
        torn_bytes, kept_in = _set_torn_tail_aside(disk, *loaded.torn)
        report = report._replace(torn_bytes=torn_bytes, torn_kept_in=kept_in)
    return _journal(disk, directory, loaded), report


def _journal(disk: Disk, directory: str, loaded: LoadedTree) -> JournalFile:
    if loaded.resume:
        path, good_size = loaded.resume
        return JournalFile.reopen(disk, path, int(path[-_DIGITS:]), good_size)
    first = loaded.zxid + 1
    if first == 1:
        _sync_ancestors(disk, directory)
    journal = JournalFile.create(disk, f"{directory}/{journal_name(first)}", first)
    journal.sync_new(directory)
    return journal


def _sync_ancestors(disk: Disk, directory: str) -> None:
    """A new directory is only certain when its parent is synced, and so is each above that was made with it."""
    parent = directory.rpartition("/")[0]
    while parent:
        try:
            disk.sync_directory(parent)
        except PermissionError:
            # Then it is not ours, and was there before.
            return
        parent = parent.rpartition("/")[0]
    disk.sync_directory("/" if directory.startswith("/") else ".")


def prune(disk: Disk, directory: str) -> None:
    """Deletes snapshots but the last two, and journals that the older of them covers. A worker's."""
    names = disk.names(directory)
    snapshots = zxids_of(names, _SNAPSHOT)
    for zxid in snapshots[:-SNAPSHOTS_KEPT]:
        disk.remove(f"{directory}/{snapshot_name(zxid)}")
    if len(snapshots) < SNAPSHOTS_KEPT:
        return
    oldest_kept = snapshots[-SNAPSHOTS_KEPT]
    journals = zxids_of(names, _JOURNAL)
    for first, following in pairwise(journals):
        if following <= oldest_kept + 1:
            disk.remove(f"{directory}/{journal_name(first)}")
