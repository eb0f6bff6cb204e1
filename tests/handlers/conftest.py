"""The same broker and raw sockets as the server's tests use, and a broker for tests of groups."""

from __future__ import annotations

from tests.handlers.groups import client, grouped
from tests.server.conftest import make_broker, peer, running

__all__ = ["client", "grouped", "make_broker", "peer", "running"]
