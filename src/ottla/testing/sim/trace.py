"""What happened in a run, a line an event, in virtual time: evidence when a seed fails, and proof that it repeats."""

from __future__ import annotations

from hashlib import sha256

from ottla.ports.memory.clock import Timeline


class Trace:
    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.lines: list[str] = []

    @property
    def seconds(self) -> float:
        return self._timeline.seconds

    def say(self, who: str, what: str) -> None:
        self.lines.append(f"{self._timeline.seconds:12.6f} {who}: {what}")

    def log_line(self, line: str, process: str | None = None) -> None:
        """A broker's own log line."""
        self.say("log" if process is None else f"log of {process}", line.rstrip("\n"))

    def text(self) -> str:
        return "\n".join(self.lines)

    def digest(self) -> str:
        return sha256(self.text().encode()).hexdigest()

    def tail(self, count: int = 60) -> str:
        return "\n".join(self.lines[-count:])
