"""What the system is asked for about one folder. Brokers on other threads of the process write too, and not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def called_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, fault: Callable[[str], None] | None = None
) -> list[str]:
    """The names of calls of `fsync` and `replace`, in order. `fault` is told each before it is made, and may raise."""
    calls: list[str] = []
    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, _noted(name, getattr(os, name), folder, calls, fault))
    return calls


def _noted(
    name: str, real: Callable[..., Any], folder: Path, calls: list[str], fault: Callable[[str], None] | None
) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        if _place(given[-1]).startswith(str(folder)):
            calls.append(name)
            if fault is not None:
                fault(name)
        return real(*given)

    return call


def _place(given: Any) -> str:
    return os.readlink(f"/proc/self/fd/{given}") if isinstance(given, int) else os.fspath(given)
