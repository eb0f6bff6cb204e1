"""What a served tree counts of its work, for the four-letter words."""

from __future__ import annotations


class Figures:
    __slots__ = ("answered", "latency_ms_max", "latency_ms_min", "latency_ms_sum", "received", "rejected", "sent")

    def __init__(self) -> None:
        #: Frames that came, and that were made: answers and notifications.
        self.received = 0
        self.sent = 0
        #: Connections over a limit.
        self.rejected = 0
        #: Requests that were answered, and how long they took; the least is -1 before the first.
        self.answered = 0
        self.latency_ms_min = -1
        self.latency_ms_max = 0
        self.latency_ms_sum = 0

    def answer(self, took_ms: int) -> None:
        self.answered += 1
        self.latency_ms_sum += took_ms
        self.latency_ms_max = max(self.latency_ms_max, took_ms)
        if took_ms < self.latency_ms_min or self.latency_ms_min < 0:
            self.latency_ms_min = took_ms

    @property
    def latency_ms_mean(self) -> float:
        return self.latency_ms_sum / self.answered if self.answered else 0.0
