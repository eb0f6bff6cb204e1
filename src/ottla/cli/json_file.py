"""Reads a JSON file that the command line names."""

from __future__ import annotations

from typing import Any

from ottla.cli.faults import FAILED, NOT_FOUND, CommandFault


def read_json(path: str) -> Any:
    """Raises CommandFault where it cannot be read, and ValueError where it is not JSON."""
    import json

    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        code = NOT_FOUND if isinstance(error, FileNotFoundError) else FAILED
        raise CommandFault(f"cannot read {path or 'a file without a name'}: {error.strerror or error}", code) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
