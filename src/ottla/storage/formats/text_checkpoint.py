"""The frame that Kafka's text checkpoints share: a version line, a line with the count, then one entry a line.

Fields are separated by blanks. The count guards against a file that was cut; Kafka also refuses more lines than the
count, and so do we. Kafka creates checkpoints empty, so an empty file is a checkpoint without entries.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.storage.formats.errors import FormatError

VERSION = 0
_INT64_MAX = 2**63 - 1
_INT32_MAX = 2**31 - 1


def encode_lines(entries: Iterable[str]) -> bytes:
    lines = list(entries)
    return "\n".join([str(VERSION), str(len(lines)), *lines, ""]).encode("utf-8")


def decode_lines(data: bytes, fields: int) -> list[list[str]]:
    """The entries, each split into exactly `fields` words."""
    if not data:
        return []
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise FormatError("the checkpoint is not text") from error
    if lines[-1] == "":
        lines.pop()
    if len(lines) < 2:
        raise FormatError("the checkpoint ends before its count")
    version = parse_number(lines[0], "version", _INT32_MAX)
    if version != VERSION:
        raise FormatError(f"the checkpoint has version {version}, and only version {VERSION} is known")
    count = parse_number(lines[1], "count", _INT32_MAX)
    if count != len(lines) - 2:
        raise FormatError(f"the checkpoint announces {count} entries and has {len(lines) - 2}")
    entries = [line.split() for line in lines[2:]]
    for number, words in enumerate(entries, start=3):
        if len(words) != fields:
            raise FormatError(f"line {number} of the checkpoint has {len(words)} fields instead of {fields}")
    return entries


def parse_number(word: str, what: str, highest: int = _INT64_MAX) -> int:
    """A plain decimal number from 0 to `highest`. Python's own int() takes blanks, underscores and other scripts."""
    word = word.strip()
    if not (word.isascii() and word.isdigit() and len(word) <= 19) or (value := int(word)) > highest:
        raise FormatError(f"the {what} {word[:40]!r} is not a number from 0 to {highest}")
    return value
