"""Bars for long work: on standard error, and only where a person watches."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self


class Progress:
    """`with Progress("reading", total, "B") as progress: progress.add(4096)`. Costs nothing where nobody watches."""

    def __init__(self, what: str, total: int | None, unit: str, *, wanted: bool = True) -> None:
        self._bar: Any = None
        if wanted and sys.stderr.isatty():
            from tqdm import tqdm

            is_bytes = unit == "B"
            self._bar = tqdm(
                desc=what,
                total=total,
                unit=unit if is_bytes else f" {unit}",  # "6.1k records/s", but "6.1kB/s"
                unit_scale=True,
                unit_divisor=1024 if is_bytes else 1000,
                leave=False,
                file=sys.stderr,
                # Nothing is drawn for work that is over in a blink.
                delay=0.5,
            )

    @property
    def is_shown(self) -> bool:
        return self._bar is not None

    def add(self, amount: int) -> None:
        if self._bar is not None:
            self._bar.update(amount)

    def note(self, line: str) -> None:
        """A line for standard error that does not tear the bar."""
        if self._bar is None:
            print(line, file=sys.stderr)
        else:
            self._bar.write(line, file=sys.stderr)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
