"""Finds the verb, and imports nothing else."""

from __future__ import annotations

import sys


def main(argv: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    from ottla.cli import up

    return up.run(arguments[1:])
