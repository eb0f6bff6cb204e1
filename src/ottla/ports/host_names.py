"""Names of hosts that no resolver can be asked for: a label is empty (`127.0.0..1`) or has more than 63 characters."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: As the system says it of a name that nobody knows.
_UNKNOWN: Final = "Name or service not known"


@contextmanager
def mistyped_as_unknown() -> Iterator[None]:
    """Python refuses such a name with a UnicodeError: here it is one that is not known, so an OSError as any other."""
    try:
        yield
    except UnicodeError as error:
        raise socket.gaierror(socket.EAI_NONAME, _UNKNOWN) from error
