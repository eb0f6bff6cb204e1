"""Write an example of a pipeline, to be changed.

ottla pipeline init orders.py
"""

from __future__ import annotations

import argparse
import os
from typing import TextIO

from ottla.cli.faults import EXISTS, OK, CommandFault


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", default="pipeline.py", help="(default: pipeline.py)")


def run(options: argparse.Namespace) -> int:
    from ottla.pipeline.example import TEXT

    try:
        with open(options.file, "x", encoding="utf-8") as file:
            _write(file, TEXT)
    except FileExistsError:
        raise CommandFault(f"{options.file} is there already: name another file", EXISTS) from None
    except OSError as error:
        raise CommandFault(f"cannot write {options.file}: {error.strerror or error}") from error
    print(f"{options.file} is written; it reads the topic orders. Run it: ottla pipeline run {options.file}")
    return OK


def _write(file: TextIO, text: str) -> None:
    """All of it or nothing: half an example would keep the next try from its name."""
    try:
        file.write(text)
        file.flush()
    except OSError:
        os.unlink(file.name)
        raise
