"""The configuration as it is now: dynamic changes put a new one in its place while the broker runs."""

from __future__ import annotations

from ottla.config.broker import Config


class LiveConfig:
    __slots__ = ("current",)

    def __init__(self, current: Config) -> None:
        self.current = current
