"""Writes a file of a person's or a pipeline's, which no broker has: a reader sees the old one or the new one, whole.

A broker's own files are written through its disk (`ports/whole_files.py`).
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Final

from ottla.ports.real.disk import RealDisk

#: To tell drafts apart: processes in two containers have one folder and the same number.
_CHANCE_BYTES: Final = 4


def write_file(path: str, data: bytes, mode: int = 0o666, *, flushed: bool = True) -> None:
    """`mode` is for one that is new. A link stays one, and what is no file (a pipe, /dev/null) is written into.

    `flushed` is for what must be whole after a power cut too. Raises OSError, and the old file is as it was.
    """
    path = os.path.realpath(path)
    there = _mode_of(path)
    if there is not None and not stat.S_ISREG(there):
        with open(path, "wb") as special:
            special.write(data)
        return
    draft = f"{path}.{os.urandom(_CHANCE_BYTES).hex()}.new"
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
            if there is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(there))
            file.write(data)
            if flushed:
                file.flush()
                os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    if flushed:
        with suppress(OSError):  # the file is there; not all file systems sync a folder
            RealDisk().sync_directory(os.path.dirname(path))


def _mode_of(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None
