"""The load generator and the null server: compiled when there is a C compiler, else their slower twins in Python."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def command(name: str, cache: Path) -> list[str]:
    """How to run ``load`` or ``null``."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not sys.platform.startswith("linux"):
        return [sys.executable, str(_HERE / f"python_{name}.py")]
    source = _HERE / "native" / f"{name}.c"
    program = cache / name
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        cache.mkdir(parents=True, exist_ok=True)
        subprocess.run([compiler, "-O2", "-o", str(program), str(source)], check=True)
    return [str(program)]


def is_native(words: list[str]) -> bool:
    return words[0] != sys.executable
