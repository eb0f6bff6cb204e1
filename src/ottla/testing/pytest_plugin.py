"""Fixtures for pytest: a broker for the session and a fresh topic for each test.

- `ottla_broker`  one broker for the whole session (one for each worker under xdist)
- `ottla_own_broker`  one for this test alone: for tests that stop it, restart it or move its clock
- `topic`         the name of a new topic, deleted after the test; `@pytest.mark.ottla_topic(partitions=3,
                  configs={"cleanup.policy": "compact"})` says how it is made

`@pytest.fixture(scope="session") def ottla_properties()` overrides with which properties the broker runs. The log of
whatever brokers ran in this process during a test that fails is added to its report.

pytest loads this file in every project that has Ottla installed: nothing of the broker is loaded until a fixture asks.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing.in_process import InProcessBroker

_MARK = pytest.StashKey[int]()
#: A test's name goes into its topic's, where folders' names end at 255 characters.
_NAME_CHARACTERS_MAX = 80
_MARK_SHOWN = '@pytest.mark.ottla_topic(partitions=3, configs={"cleanup.policy": "compact"})'


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "ottla_topic(partitions=1, configs={}): how the topic of the `topic` fixture is made"
    )


@pytest.fixture(scope="session")
def ottla_properties() -> dict[str, str]:
    """Properties of the session's broker, by Kafka's names; override it in a conftest."""
    return {}


@pytest.fixture(scope="session")
def ottla_container_host() -> str | None:
    """What containers call this machine, if some are to reach the session's broker; override it in a conftest."""
    return None


@pytest.fixture(scope="session")
def ottla_broker(ottla_properties: dict[str, str], ottla_container_host: str | None) -> Iterator[InProcessBroker]:
    """A broker in this process, on a free port, with a temporary folder; the same for the whole session."""
    from ottla.testing.in_process import InProcessBroker

    with InProcessBroker(properties=ottla_properties, container_host=ottla_container_host) as running:
        yield running


@pytest.fixture
def ottla_own_broker(ottla_properties: dict[str, str]) -> Iterator[InProcessBroker]:
    """A broker of the same kind for this test alone, which may stop it, restart it or move its clock."""
    from ottla.testing.in_process import InProcessBroker

    with InProcessBroker(properties=ottla_properties) as running:
        yield running


@pytest.fixture
def topic(ottla_broker: InProcessBroker, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a topic that nobody else has, for this test alone."""
    marker = request.node.get_closest_marker("ottla_topic")
    name = _fresh_name(request.node.name)
    ottla_broker.create_topic(name, **({} if marker is None else marker.kwargs))
    yield name
    if ottla_broker.is_running and name in ottla_broker.topics():
        ottla_broker.delete_topic(name)


def _mark_fault(marker: pytest.Mark) -> str | None:
    """What an `ottla_topic` mark says that it cannot."""
    if marker.args:
        return f"its arguments are named, as in {_MARK_SHOWN}, and {marker.args[0]!r} is not"
    unknown = marker.kwargs.keys() - {"partitions", "configs"}
    if unknown:
        return f"it has no argument {min(unknown)}: write {_MARK_SHOWN}"
    partitions = marker.kwargs.get("partitions", 1)
    if not isinstance(partitions, int) or isinstance(partitions, bool) or partitions < 1:
        return f"partitions must be an int from 1, not {partitions!r}"
    configs = marker.kwargs.get("configs", {})
    if not isinstance(configs, Mapping):
        return f"configs must be a mapping of names to values, not {configs!r}"
    for name, value in configs.items():
        if not isinstance(name, str) or not isinstance(value, str):
            return f"configs must map names to text, as Kafka has it, not {name!r} to {value!r}"
    return None


def _fresh_name(test: str) -> str:
    import secrets

    plain = "".join(character if character.isascii() and character.isalnum() else "-" for character in test)
    return f"{plain[:_NAME_CHARACTERS_MAX].strip('-')}-{secrets.token_hex(3)}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_MARK] = _written()
    for marker in item.iter_markers("ottla_topic"):
        fault = _mark_fault(marker)
        if fault is not None:
            pytest.fail(f"@pytest.mark.ottla_topic: {fault}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        text = _lines_since(item.stash.get(_MARK, 0))
        if text:
            report.sections.append((f"Ottla broker log ({report.when})", text))
    return report


def _written() -> int:
    """How many lines brokers have written; nobody loads the module for a session without brokers."""
    capture = sys.modules.get("ottla.testing.capture")
    mark: int = capture.CAPTURE.mark if capture is not None else 0
    return mark


def _lines_since(mark: int) -> str:
    capture = sys.modules.get("ottla.testing.capture")
    text: str = capture.CAPTURE.since(mark) if capture is not None else ""
    return text
