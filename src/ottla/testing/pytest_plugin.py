"""Fixtures for pytest: a broker for the session and a fresh topic for each test.

- `ottla_broker`  one broker for the whole session (one for each worker under xdist)
- `ottla_own_broker`  one for this test alone: for tests that stop it, restart it or move its clock
- `topic`         the name of a new topic, deleted after the test; `@pytest.mark.ottla_topic(partitions=3,
                  configs={"cleanup.policy": "compact"})` says how it is made
- `ottla_cluster` brokers and their tree as processes, for this test alone: for tests that kill leaders, pause brokers
                  and cut links; three, or what `@pytest.mark.ottla_cluster(n=5)` says

`@pytest.fixture(scope="session") def ottla_properties()` overrides with which properties the broker runs. The log of
whatever brokers ran in this process during a test that fails is added to its report, and the end of its cluster's.

pytest loads this file in every project that has Ottla installed: nothing of the broker is loaded until a fixture asks.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing.in_process import InProcessBroker
    from ottla.testing.processes import Cluster

_CLUSTER = pytest.StashKey["Cluster"]()
_MARK = pytest.StashKey[int]()
#: A test's name goes into its topic's, where folders' names end at 255 characters.
_NAME_CHARACTERS_MAX = 80
#: Of a cluster's log: a report is to be read.
_LINES_MAX = 200
_MARK_SHOWN = '@pytest.mark.ottla_topic(partitions=3, configs={"cleanup.policy": "compact"})'
_CLUSTER_MARK_SHOWN = '@pytest.mark.ottla_cluster(n=5, properties={"min.insync.replicas": "2"})'


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "ottla_topic(partitions=1, configs={}): how the topic of the `topic` fixture is made"
    )
    config.addinivalue_line("markers", "ottla_cluster(n=3, properties={}): the brokers of the `ottla_cluster` fixture")


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
def ottla_cluster(ottla_properties: dict[str, str], request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Broker processes and one for their tree, for this test alone: it may kill, pause, cut off and restart them."""
    from ottla.testing.processes import Cluster

    marker = request.node.get_closest_marker("ottla_cluster")
    wanted = {} if marker is None else marker.kwargs
    properties = {**ottla_properties, **wanted.get("properties", {})}
    with Cluster(wanted.get("n", 3), properties=properties) as running:
        request.node.stash[_CLUSTER] = running
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


def _topic_mark_fault(marker: pytest.Mark) -> str | None:
    """What an `ottla_topic` mark says that it cannot."""
    return (
        _arguments_fault(marker, ("partitions", "configs"), _MARK_SHOWN)
        or _count_fault(marker, "partitions")
        or _mapping_fault(marker, "configs")
    )


def _cluster_mark_fault(marker: pytest.Mark) -> str | None:
    """What an `ottla_cluster` mark says that it cannot."""
    return (
        _arguments_fault(marker, ("n", "properties"), _CLUSTER_MARK_SHOWN)
        or _count_fault(marker, "n")
        or _mapping_fault(marker, "properties")
    )


_MARK_FAULTS = {"ottla_topic": _topic_mark_fault, "ottla_cluster": _cluster_mark_fault}


def _arguments_fault(marker: pytest.Mark, known: tuple[str, ...], shown: str) -> str | None:
    if marker.args:
        return f"its arguments are named, as in {shown}, and {marker.args[0]!r} is not"
    unknown = marker.kwargs.keys() - set(known)
    return f"it has no argument {min(unknown)}: write {shown}" if unknown else None


def _count_fault(marker: pytest.Mark, name: str) -> str | None:
    count = marker.kwargs.get(name, 1)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        return f"{name} must be an int from 1, not {count!r}"
    return None


def _mapping_fault(marker: pytest.Mark, name: str) -> str | None:
    given = marker.kwargs.get(name, {})
    if not isinstance(given, Mapping):
        return f"{name} must be a mapping of names to values, not {given!r}"
    for key, value in given.items():
        if not isinstance(key, str) or not isinstance(value, str):
            return f"{name} must map names to text, as Kafka has it, not {key!r} to {value!r}"
    return None


def _fresh_name(test: str) -> str:
    import secrets

    plain = "".join(character if character.isascii() and character.isalnum() else "-" for character in test)
    return f"{plain[:_NAME_CHARACTERS_MAX].strip('-')}-{secrets.token_hex(3)}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_MARK] = _written()
    for name, fault_of in _MARK_FAULTS.items():
        for marker in item.iter_markers(name):
            fault = fault_of(marker)
            if fault is not None:
                pytest.fail(f"@pytest.mark.{name}: {fault}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        text = _lines_since(item.stash.get(_MARK, 0))
        if text:
            report.sections.append((f"Ottla broker log ({report.when})", text))
        cluster = item.stash.get(_CLUSTER, None)
        if cluster is not None:
            report.sections.append((f"Ottla cluster log ({report.when})", "\n".join(cluster.log[-_LINES_MAX:])))
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
