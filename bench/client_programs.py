"""Programs of this folder that are clients, each in a process of its own: what they compute is not the server's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench import machine

REPOSITORY = Path(__file__).resolve().parent.parent
CLIENT_SECONDS_MAX = 300.0


def figures_of(module: str, *words: object, cores: set[int] | None = None) -> list[float]:
    """What ``python -m MODULE WORDS...`` prints, which are numbers; on these cores, where some are named."""
    with subprocess.Popen(
        [sys.executable, "-m", module, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env=os.environ,
    ) as process:
        try:
            if cores is not None:
                machine.pin(process.pid, cores)
            out, errors = process.communicate(timeout=CLIENT_SECONDS_MAX)
        finally:
            process.kill()
    if process.returncode:
        raise RuntimeError(f"{module} {' '.join(map(str, words[:2]))}: {errors.strip()[-500:]}")
    return [float(word) for word in out.split()]
