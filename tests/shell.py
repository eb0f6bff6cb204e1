"""A shell in which `ottla` is this checkout's, for tests that type in what a page says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
#: No line of a page takes nearly so long.
SECONDS_MAX = 120


def settings(*prefixes: str) -> set[str]:
    """Variables that would steer what is tested. That nothing compiled is used holds for what tests start, too."""
    return {name for name in os.environ if name.startswith(prefixes)} - {"OTTLA_PURE"}


def without_settings(*prefixes: str) -> dict[str, str]:
    without = settings(*prefixes)
    return {name: value for name, value in os.environ.items() if name not in without}


def write_program(folder: Path) -> None:
    """Puts an `ottla` into the folder that is this one, by this interpreter."""
    folder.mkdir(parents=True)
    program = folder / "ottla"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ottla "$@"\n')
    program.chmod(0o755)


def fresh_shell(folder: Path) -> dict[str, str]:
    """The environment of somebody whose home the folder is, and who has used no cluster yet."""
    write_program(folder / "bin")
    kept = without_settings("KAFKA_", "OTTLA_", "XDG_")
    path = f"{folder}/bin:{os.environ['PATH']}"
    return {**kept, "PATH": path, "PYTHONPATH": str(REPOSITORY / "src"), "HOME": str(folder)}


def typed(line: str, environment: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """What came of a line that was typed in, in that folder."""
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", line],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        cwd=folder,
        env=environment,
    )
