"""A broker as a process for all of these tests, and tests that are coroutines.

``OTTLA_INTEROP_TARGET=kafka`` runs them against Apache Kafka instead: what fails there is a wrong test, or a wrong
client.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import os
from collections.abc import Iterator

import pytest
from tools.kafka_jars import JarsUnavailable, jars
from tools.kafka_server import QUICK_KAFKA_FLAGS, kafka_server

from ottla.client.admin.admin import Admin
from tests.conftest import WatchServer

TARGET = os.environ.get("OTTLA_INTEROP_TARGET", "ottla")
#: Few tests take seconds, on a machine that has nothing else to do; this ends one that hangs, with a trace of where.
SECONDS_MAX = 180.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine function on a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    async def bounded() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await pyfuncitem.obj(**arguments)

    asyncio.run(bounded())
    return True


@pytest.fixture(scope="session")
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, watch_server: WatchServer
) -> Iterator[str]:
    if TARGET == "ottla":
        yield request.getfixturevalue("ottla_process")
        return
    try:
        folder = jars()
    except JarsUnavailable as missing:
        pytest.skip(str(missing))
    with (
        watch_server(kafka_server(tmp_path_factory.mktemp("kafka"), folder=folder, flags=QUICK_KAFKA_FLAGS)) as server,
        server,
    ):
        yield server.bootstrap


_numbers = itertools.count()


@pytest.fixture
def new_name(request: pytest.FixtureRequest) -> str:
    """A topic's name that no other test uses."""
    return f"{request.function.__name__.removeprefix('test_')[:80]}-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def topic(bootstrap: str, new_name: str) -> str:
    """A fresh topic of one partition."""
    asyncio.run(make_topic(bootstrap, new_name))
    return new_name


@pytest.fixture
def wide_topic(bootstrap: str, new_name: str) -> str:
    """A fresh topic of four partitions."""
    asyncio.run(make_topic(bootstrap, new_name, partitions=4))
    return new_name


async def make_topic(bootstrap: str, name: str, partitions: int = 1, **configs: str) -> None:
    named: dict[str, str | None] = {"retention.ms": "-1"}
    named.update({key.replace("_", "."): value for key, value in configs.items()})
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.create_topic(name, partitions, 1, named)
