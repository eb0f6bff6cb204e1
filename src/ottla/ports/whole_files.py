"""Files that are written whole: each is either the old one or the new one, never a mixture, whenever the power goes.

The new bytes go to `<path>.tmp`, are synced, take the old file's name, and the folder is synced, so that the rename
itself is certain once this returns.
"""

from __future__ import annotations

import os.path
from contextlib import suppress

from ottla.ports.disk import Disk

TEMPORARY_SUFFIX = ".tmp"


def write_atomically(disk: Disk, path: str, data: bytes) -> None:
    """Replaces the file durably. On OSError the old file is as it was."""
    replace_file(disk, path, data)
    disk.sync_directory(os.path.dirname(path))


def replace_file(disk: Disk, path: str, data: bytes) -> None:
    """The same without the last step, for a caller that syncs the folder itself after several files."""
    temporary = path + TEMPORARY_SUFFIX
    try:
        write_whole(disk, temporary, data)
        disk.rename(temporary, path)
    except OSError:
        with suppress(OSError):
            disk.remove(temporary)
        raise


def write_whole(disk: Disk, path: str, data: bytes) -> None:
    """A file with these bytes, which are on the medium; its name is certain once the folder is synced."""
    file = disk.open(path, create=True)
    try:
        # A crash may have left an earlier attempt, longer than this one.
        file.truncate(0)
        file.append([data])
        file.sync()
    finally:
        file.close()


def sync_file(disk: Disk, path: str) -> None:
    """What a file that is there has is on the medium; one that is not has nothing to lose."""
    with suppress(FileNotFoundError):
        file = disk.open_read_only(path)
        try:
            file.sync()
        finally:
            file.close()
