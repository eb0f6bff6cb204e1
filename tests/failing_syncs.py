"""Processes whose disk does not sync, or takes its time: a library in front of the C library (`failing_syncs.c`)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def failing_syncs(folder: Path, monkeypatch: pytest.MonkeyPatch, below: Path, *, slow_ms: int | None = None) -> Path:
    """Has syncs of what lies below a folder fail, or last that much longer, in processes that begin from now on, while
    the file that is returned is there. `folder` is for the library."""
    compiler = shutil.which("cc")
    if compiler is None or not Path("/proc/self/fd").exists():
        pytest.skip("no C compiler, or not Linux")
    library, marker = folder / "failing_syncs.so", folder / "syncs-fail"
    source = Path(__file__).with_name("failing_syncs.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", str(source), "-o", str(library), "-ldl"], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("FAILING_SYNCS_BELOW", str(below))
    monkeypatch.setenv("FAILING_SYNCS_WHILE", str(marker))
    if slow_ms is not None:
        monkeypatch.setenv("FAILING_SYNCS_MS", str(slow_ms))
    return marker
