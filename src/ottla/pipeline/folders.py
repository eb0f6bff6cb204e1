"""What a power cut leaves of folders: a name is on the medium once the folder that it is in was synced."""

from __future__ import annotations

import os
from contextlib import suppress

from ottla.ports.real.disk import RealDisk


def sync_folder(folder: str) -> None:
    """Puts the names in it on the medium."""
    RealDisk().sync_directory(folder)


def sync_names_above(folder: str) -> None:
    """Puts the name of a new folder on the medium, and those of all that it is in, which may be as new."""
    folder = os.path.abspath(folder)
    while not os.path.ismount(folder):
        folder = os.path.dirname(folder)
        with suppress(PermissionError):  # whose names we may not read, there we have made none
            sync_folder(folder)
