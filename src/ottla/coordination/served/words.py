"""ZooKeeper's four-letter words, as its 3.8 prints them: `ruok`, `srvr` and `mntr`, with this server's own figures.

A word is the first four bytes of a connection, where ZooKeeper's other words are refused in ZooKeeper's own sentence.
Four bytes that are no word are the length of the first frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ottla import __version__
from ottla.coordination.errors import CoordinationError
from ottla.coordination.served.connection import Connection
from ottla.coordination.served.serving import Serving
from ottla.coordination.sessions import STORE_SESSION
from ottla.coordination.tree import ZnodeTree
from ottla.ports.real.process import files_max, open_files
from ottla.steps import Steps, pieces

#: Which ZooKeeper this server is like; clients look at it before they use what is new.
VERSION: Final = f"3.8.4-ottla-{__version__}"
#: Words that ZooKeeper knows and this server does not have.
_REFUSED: Final = frozenset(
    b"conf cons crst dirs dump envi gtmk hash isro srst stat stmk wchc wchp wchs".split()
)
"""
