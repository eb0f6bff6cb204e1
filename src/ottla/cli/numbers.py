"""Numbers on the command line. A type here raises ArgumentTypeError, which argparse turns into its one line."""

from __future__ import annotations

import argparse
from typing import Final

#: How long work that has an end waits for a broker that has gone away: a restart is over by then.
GIVE_UP_MS: Final = 30_000


def _whole(text: str, least: int, most: int) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text[:40]}' is not a whole number") from None
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"{number} is not between {least} and {most}")
    return number


def port_number(text: str) -> int:
    return _whole(text, 0, 65535)


def count(text: str) -> int:
    """At least 1."""
    return _whole(text, 1, 2**63 - 1)


def partition_number(text: str) -> int:
    return _whole(text, 0, 2**31 - 1)


def partition_numbers(text: str) -> list[int]:
    """`0,1,5`"""
    return [partition_number(number) for number in text.split(",")]


def partition_count(text: str) -> int:
    return _whole(text, 1, 2**31 - 1)


def replica_count(text: str) -> int:
    return _whole(text, 1, 2**15 - 1)


def milliseconds(text: str) -> int:
    return _whole(text, 0, 2**31 - 1)


def byte_count(text: str) -> int:
    return _whole(text, 0, 2**31 - 1)


def seconds(text: str) -> float:
    """A pause: from a hundredth of a second to an hour."""
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text[:40]}' is not a number of seconds") from None
    if not 0.01 <= number <= 3600:
        raise argparse.ArgumentTypeError(f"{number} is not between 0.01 and 3600 seconds")
    return number


def offset_number(text: str) -> int:
    return _whole(text, 0, 2**63 - 1)


def signed_count(text: str) -> int:
    return _whole(text, -(2**63), 2**63 - 1)
