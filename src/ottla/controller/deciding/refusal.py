"""Why a request, or one item of it, was not done."""

from __future__ import annotations

from ottla.model import ErrorCode


class Refusal(Exception):
    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or error.name)
        self.error = error
        self.message = message
