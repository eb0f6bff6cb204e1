"""Compiled code: optional, behind what is written in Python and does the same.

A wheel brings it, and an installation from source builds it where there is a C compiler. Where it is missing, or
OTTLA_PURE is set, everything works; small requests then cost a third more, and records eight times as much to decode.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from ottla.native.fetch_lane import FetchRun
    from ottla.native.lane import Run


def compiled_run() -> type[Run] | None:
    """The class that lanes are made by, or None where nothing is compiled."""
    if os.environ.get("OTTLA_PURE"):
        return None
    try:
        from ottla.native.lane import Run
    except ImportError:
        return None
    return Run


def compiled_fetch_run() -> type[FetchRun] | None:
    """The class that lanes of fetching connections are made by, or None where nothing is compiled."""
    if os.environ.get("OTTLA_PURE"):
        return None
    try:
        from ottla.native.fetch_lane import FetchRun
    except ImportError:
        return None
    return FetchRun


def compiled_records() -> ModuleType | None:
    """The module that decodes and encodes records, or None where nothing is compiled."""
    return _compiled("records")


def compiled_followed() -> ModuleType | None:
    """The module that walks through the batches that followers fetch, or None where nothing is compiled."""
    return _compiled("followed")


def compiled_indexed() -> ModuleType | None:
    """The module that makes the indexes of log files, or None where nothing is compiled."""
    return _compiled("indexed")


def compiled_batches() -> ModuleType | None:
    """The module that makes record batches of columns, or None where nothing is compiled."""
    return _compiled("batches")


def compiled_columns() -> ModuleType | None:
    """The module that makes columns of records, or None where nothing is compiled."""
    return _compiled("columns")


def compiled_avro() -> ModuleType | None:
    """The module that makes columns of Avro records, or None where nothing is compiled."""
    return _compiled("avro")


def compiled_json() -> ModuleType | None:
    """The module that makes columns of JSON records, or None where nothing is compiled."""
    return _compiled("json")


def compiled_protobuf() -> ModuleType | None:
    """The module that makes columns of Protobuf messages, or None where nothing is compiled."""
    return _compiled("protobuf")


def compiled_dumped() -> ModuleType | None:
    """The module that checks batches for a dump, and writes their lines, or None where nothing is compiled."""
    return _compiled("dumped")


def compiled_keys() -> ModuleType | None:
    """The module that reads and notes keys for the log cleaner, or None where nothing is compiled."""
    return _compiled("keys")


def _compiled(name: str) -> ModuleType | None:
    if os.environ.get("OTTLA_PURE"):
        return None
    try:
        return import_module(f"ottla.native.{name}")
    except ImportError:
        return None
