"""`leader-epoch-checkpoint`: where in this partition each leader's epoch began.

An entry is `epoch startOffset`; both rise from line to line, which is what makes the look-up "where does epoch e end"
(the start of the next one) well defined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.ports.disk import Disk
from ottla.ports.whole_files import write_atomically
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.reading import read_decoded
from ottla.storage.formats.text_checkpoint import decode_lines, encode_lines, parse_number

FILE_NAME: Final = "leader-epoch-checkpoint"

_EPOCH_MAX: Final = 2**31 - 1


def encode(entries: Sequence[tuple[int, int]]) -> bytes:
    return encode_lines(f"{epoch} {start}" for epoch, start in entries)


def decode(data: bytes) -> list[tuple[int, int]]:
    """(epoch, start offset) pairs; FormatError where epochs do not rise or offsets go back."""
    entries: list[tuple[int, int]] = []
    for epoch_word, start_word in decode_lines(data, 2):
        epoch = parse_number(epoch_word, "epoch", _EPOCH_MAX)
        start = parse_number(start_word, "start offset")
        if entries and (epoch <= entries[-1][0] or start < entries[-1][1]):
            raise FormatError(f"epoch {epoch} at {start} follows epoch {entries[-1][0]} at {entries[-1][1]}")
        entries.append((epoch, start))
    return entries


def read(disk: Disk, path: str) -> list[tuple[int, int]]:
    """The entries, none where there is no file; FormatError names the file."""
    found = read_decoded(disk, path, decode)
    return [] if found is None else found


def write(disk: Disk, path: str, entries: Sequence[tuple[int, int]]) -> None:
    write_atomically(disk, path, encode(entries))
