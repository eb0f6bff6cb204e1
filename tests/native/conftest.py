"""The same brokers and raw sockets as the server's tests use, with compiled code whatever the environment says."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.server.conftest import make_broker, peer, running

__all__ = ["make_broker", "peer", "running"]

#: Why the tests of a module of compiled code are skipped.
NOTHING_COMPILED = "nothing is compiled: it takes a C compiler and Python's headers at installation"
#: OTTLA_PURE was set when the modules were imported that decide then what they use: they use nothing compiled.
IS_PURE = bool(os.environ.get("OTTLA_PURE"))


@pytest.fixture(scope="module", autouse=True)
def compiled() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OTTLA_PURE", raising=False)
        yield
