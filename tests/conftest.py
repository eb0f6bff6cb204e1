"""What every test may use: a broker of ours as a process, Kafka's jars, and CI's rule that nothing is skipped there."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

REPOSITORY = Path(__file__).resolve().parent.parent
if str(REPOSITORY) not in sys.path:  # tools/ and bench/ are no part of the installed package
    sys.path.insert(0, str(REPOSITORY))

from tools.kafka_jars import CLIENTS_39, KAFKA, JarSet, JarsUnavailable, jars  # noqa: E402
from tools.kafka_tools import KafkaTools  # noqa: E402
from tools.ottla_server import ottla_up  # noqa: E402
from tools.server_process import ServerProcess  # noqa: E402

from ottla import logs  # noqa: E402
from tests.searches import left_out  # noqa: E402

if TYPE_CHECKING:
    from tests.interop.broker import Broker

ON_CI = os.environ.get("CI", "").lower() == "true"

# However slow the machine is, a random search finds the same: neither an example nor the making of it has a time limit.
# `./test` draws few examples, and the same ones each time; `./test --slow` draws all of them, and others each time.
settings.register_profile("all", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", settings.get_profile("all"), max_examples=20, derandomize=True)

#: Servers that run during a test; the tail of what they wrote goes with the test's failure.
WATCHED = pytest.StashKey[list[ServerProcess]]()


def pytest_configure(config: pytest.Config) -> None:
    heed_interrupts()
    config.stash[WATCHED] = []
    if not config.option.markexpr:
        config.option.markexpr = "not slow"  # long searches run when they are asked for by name
    settings.load_profile("few" if config.option.markexpr == "not slow" else "all")


def heed_interrupts() -> None:
    """A script's shell has what it starts in the background ignore SIGINT, and `nohup` SIGHUP: so would all that the
    tests start. What has a handler is as usual in them."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    from tests.distribution import FilesAndGroups

    return FilesAndGroups(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        from tests.distribution import in_order

        in_order(items)
    for item in left_out(items):
        item.add_marker("slow")
    if config.option.markexpr == "slow":
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker("slow")


#: New objects before the new ones are looked through; then how often before older ones are. A test makes and drops
#: hundreds of thousands, and Python's own 700 costs a simulation a twentieth of its time.
COLLECTED_AFTER = (10_000, 20, 20)
#: Objects that stay to the end, as they were counted behind the collection of the tests.
KEPT = pytest.StashKey[int]()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Modules and items stay to the end: nobody need go through all of them for garbage, neither now nor later.

    A third of what finding the tests takes was spent on that.
    """
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    gc.set_threshold(*COLLECTED_AFTER)
    session.config.stash[KEPT] = gc.get_freeze_count()
    return result


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Whatever goes in steps thaws all that is frozen when it is done: from file to file it is frozen again.

    Without that each `gc.collect()` of later tests took 0.2 s.
    """
    if nextitem is not None and nextitem.path != item.path and gc.get_freeze_count() < item.config.stash[KEPT]:
        gc.collect()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    try:
        report = yield
    except SystemError:
        # Python 3.11 itself, where two threads read sources at once (as for a traceback): "AST constructor recursion
        # depth mismatch". Unsaid, it would end the whole run, and nobody would learn what had failed.
        report = pytest.TestReport.from_item_and_call(item, call)
    if report.failed:
        for server in item.config.stash[WATCHED]:
            report.sections.append((f"what the server on {server.bootstrap} wrote", server.log_tail()))
    if ON_CI and report.skipped and not hasattr(report, "wasxfail"):
        _refuse_skip(report)
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """What fails in one of several workers is said at once: a run that is cut short has no summary of it."""
    if report.failed and hasattr(report, "node"):
        crash = getattr(report.longrepr, "reprcrash", None)
        said = report.longreprtext[-200:] if crash is None else f"{crash.path}:{crash.lineno}: {crash.message[:200]}"
        print(f"\nfailed just now: {report.nodeid} ({report.when}): {' '.join(said.split())}", flush=True)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if ON_CI and report.skipped:
        _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"CI skips nothing, but this said: {reason}"


def found_jars(wanted: JarSet) -> Path:
    """The folder of ``wanted``, or a skip that says what is missing."""
    try:
        return jars(wanted)
    except JarsUnavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def kafka_jars() -> Path:
    """Apache Kafka 4.3's jars: broker, tools and client."""
    return found_jars(KAFKA)


@pytest.fixture(scope="session")
def kafka39_jars() -> Path:
    """The client of Kafka 3.9, the last that knows ZooKeeper mode's requests."""
    return found_jars(CLIENTS_39)


@pytest.fixture(scope="session")
def kafka_tools(kafka_jars: Path) -> Iterator[KafkaTools]:
    """Kafka's command line tools in one warm virtual machine."""
    with KafkaTools(kafka_jars) as tools:
        yield tools


@pytest.fixture(scope="session")
def apache_kafka(
    tmp_path_factory: pytest.TempPathFactory, kafka_jars: Path, watch_server: WatchServer
) -> Iterator[Broker]:
    """One Apache Kafka for the tests of a worker, which have topics and groups of their own and leave it running."""
    from tests.interop.broker import kafka_broker

    properties = {
        "log.cleaner.backoff.ms": "100",
        "log.retention.ms": "-1",  # some records are of years ago
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
    }
    broker = kafka_broker(tmp_path_factory.mktemp("apache") / "kafka", kafka_jars, properties)
    with watch_server(broker.server), broker.server:
        yield broker


#: Called with a server: attaches its output to whatever fails inside the block, and leaves no process behind.
WatchServer = Callable[[ServerProcess], AbstractContextManager[ServerProcess]]


@pytest.fixture(scope="session")
def watch_server(request: pytest.FixtureRequest) -> WatchServer:
    watched = request.config.stash[WATCHED]

    @contextmanager
    def watch(server: ServerProcess) -> Iterator[ServerProcess]:
        watched.append(server)
        try:
            yield server
        finally:
            server.kill()
            watched.remove(server)

    return watch


@pytest.fixture
def log_lines() -> Iterator[list[str]]:
    """What is logged during the test, also where a broker of an earlier one still keeps the log for itself.

    Warnings that an earlier test has brought about are not held back.
    """
    lines: list[str] = []
    before = logs.configure(sink=lines.append)
    yield lines
    logs.restore(before)


@pytest.fixture
def own_log_lines() -> Iterator[list[str]]:
    """What the test's own thread logs: for one that says what is *not* logged.

    Brokers of earlier tests run on in threads of their own, and a member of a group that nobody uses any more may fall
    silent at any time.
    """
    lines: list[str] = []
    own = threading.get_ident()

    def take(line: str) -> None:
        if threading.get_ident() == own:
            lines.append(line)

    before = logs.configure(sink=take)
    yield lines
    logs.restore(before)


@pytest.fixture(scope="session")
def ottla_process(tmp_path_factory: pytest.TempPathFactory, watch_server: WatchServer) -> Iterator[str]:
    """The address of an ``ottla up`` that runs as its own process for the whole session."""
    with watch_server(ottla_up(tmp_path_factory.mktemp("ottla") / "data")) as server, server:
        yield server.bootstrap
