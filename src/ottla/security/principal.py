"""The user that a connection speaks for."""

from __future__ import annotations

from typing import Final, NamedTuple


class Principal(NamedTuple):
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


#: Everyone on a listener without authentication.
ANONYMOUS: Final = Principal("User", "ANONYMOUS")
