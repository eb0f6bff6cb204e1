"""Tests side by side: one process finds them all, and forks of it run them.

A worker takes a scope (`tests/distribution.py`), runs it from its first test to its last, and then takes the next one.
What is the session's lives as long as the worker. Where one dies, its test has failed, and another takes its place.

Workers that find the tests themselves, as those of pytest-xdist do, spend thirteen seconds of a processor on that.
"""

from __future__ import annotations

import os
import random
import signal
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
from _pytest.runner import CallInfo

#: How often it is looked whether a worker has died without closing its end.
LOOK_S: Final = 5.0

Scope = Sequence[int]


class Worker:
    """A fork, as its parent sees it."""

    def __init__(self, pid: int, connection: Connection[Any, Any]) -> None:
        self.pid = pid
        self.connection = connection
        #: What it was given last, and the test of that which it runs.
        self.scope: Scope = ()
        self.running: int | None = None

    def give(self, scope: Scope) -> None:
        """Nothing, where it is to end."""
        self.scope = scope or self.scope
        with suppress(OSError):  # it has ended, and the other end is closed
            self.connection.send(scope)

    def has_died(self) -> bool:
        return os.waitpid(self.pid, os.WNOHANG)[0] == self.pid


class Distribution:
    """The parent: deals out scopes, and reports what workers say as if it had run the tests itself."""

    def __init__(self, session: pytest.Session, scopes: Sequence[Scope]) -> None:
        self._session = session
        self._hook = session.config.hook
        self._waiting = deque(scopes)
        self._workers: list[Worker] = []
        self._started = 0
        self._unrun = {index for scope in scopes for index in scope}

    def run(self, count: int) -> None:
        _folders(self._session.config).getbasetemp()  # is made once, and not by each of them
        try:
            for _ in range(min(count, len(self._waiting))):
                self._start()
            while self._workers:
                self._listen()
            assert self._is_over() or not self._unrun, "each test is run"
        finally:
            for worker in self._workers:  # something has gone wrong, or somebody has pressed Ctrl-C
                worker.connection.close()
                os.kill(worker.pid, signal.SIGTERM)
            for worker in self._workers:
                os.waitpid(worker.pid, 0)

    def _start(self) -> None:
        ours, theirs = Pipe()
        self._started += 1
        pid = os.fork()
        if pid == 0:
            for worker in self._workers:
                worker.connection.close()
            ours.close()
            _work(self._session, theirs, f"worker-{self._started}")
        theirs.close()
        self._workers.append(Worker(pid, ours))

    def _listen(self) -> None:
        ready = wait([worker.connection for worker in self._workers], LOOK_S)
        for worker in list(self._workers):
            if worker.connection in ready:
                try:
                    kind, said = worker.connection.recv()
                except (EOFError, ConnectionResetError):
                    os.waitpid(worker.pid, 0)
                    self._is_gone(worker)
                else:
                    self._hear(worker, kind, said)
            elif not ready and not worker.connection.poll() and worker.has_died():
                self._is_gone(worker)  # and a process that it has left behind keeps its end open

    def _hear(self, worker: Worker, kind: str, said: Any) -> None:
        if kind == "wants":
            worker.running = None
            worker.give(self._waiting.popleft() if self._waiting and not self._is_over() else ())
        elif kind == "runs":
            worker.running = said
            self._unrun.discard(said)
        elif kind == "reports":
            for data in said:
                self._hook.pytest_runtest_logreport(report=self._report(worker, data))
            if self._is_over():
                for one in self._workers:
                    one.give(())
        elif kind == "warning":
            text, name, file, line, when, nodeid = said
            warning = warnings.WarningMessage(text, type(name, (Warning,), {}), file, line)
            self._hook.pytest_warning_recorded.call_historic(
                kwargs={"warning_message": warning, "when": when, "nodeid": nodeid, "location": None}
            )

    def _report(self, worker: Worker, data: Any) -> Any:
        if not isinstance(data, tuple) or worker.running is None:
            return self._hook.pytest_report_from_serializable(config=self._session.config, data=data)
        item = self._session.items[worker.running]
        when, duration, start, stop = data
        return pytest.TestReport(
            item.nodeid, item.location, {}, "passed", None, when, duration=duration, start=start, stop=stop
        )

    def _is_over(self) -> bool:
        return bool(self._session.shouldfail or self._session.shouldstop)

    def _is_gone(self, worker: Worker) -> None:
        """One that has nothing more to do goes when it has been told so; any other has died at its test."""
        self._workers.remove(worker)
        worker.connection.close()
        if worker.running is None:
            return
        item = self._session.items[worker.running]
        report = pytest.TestReport(
            item.nodeid, item.location, {}, "failed", "the process of this test has died", "call"
        )
        self._hook.pytest_runtest_logreport(report=report)
        if behind := worker.scope[worker.scope.index(worker.running) + 1 :]:
            self._waiting.appendleft(behind)
        if self._waiting and not self._is_over():
            self._start()


class Speaker:
    """A worker's plugin: what happens goes to the parent."""

    def __init__(self, config: pytest.Config, connection: Connection[Any, Any]) -> None:
        self._config = config
        self._connection = connection
        self._reports: list[Any] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Most have nothing to say but that all is well; all of a test's go at once."""
        if report.passed and not (report.sections or report.user_properties or hasattr(report, "wasxfail")):
            self._reports.append((report.when, report.duration, report.start, report.stop))
        else:
            data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
            self._reports.append(data)

    def pytest_runtest_logfinish(self) -> None:
        self._connection.send(("reports", self._reports))
        self._reports = []

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, when: str, nodeid: str) -> None:
        name = warning_message.category.__name__
        place = (warning_message.filename, warning_message.lineno)
        self._connection.send(("warning", (str(warning_message.message), name, *place, when, nodeid)))


def _work(session: pytest.Session, connection: Connection[Any, Any], name: str) -> NoReturn:
    last = None
    try:
        _become_a_worker(session.config, connection, name)
        for index, following in _tests(connection):
            last = session.items[index]
            # Behind a scope's last test stands the session: what is the session's stays, all else goes.
            nextitem = session if following is None else session.items[following]
            session.config.hook.pytest_runtest_protocol(item=last, nextitem=nextitem)
    except (KeyboardInterrupt, EOFError, OSError):
        pass  # the parent has ended, or is about to
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        if last is not None:
            with suppress(OSError):
                _end(session, last)
        os._exit(0)


def _tests(connection: Connection[Any, Any]) -> Iterator[tuple[int, int | None]]:
    """Those that are to be run, each with the next one of its scope, until nothing is left or nothing is wanted."""
    while True:
        connection.send(("wants", None))
        scope = connection.recv()
        for test in zip(scope, [*scope[1:], None], strict=True):
            if connection.poll():
                return
            connection.send(("runs", test[0]))
            yield test
        if not scope:
            return


def _become_a_worker(config: pytest.Config, connection: Connection[Any, Any], name: str) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    random.seed()
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(Speaker(config, connection))
    capturing: Any = config.pluginmanager.getplugin("capturemanager")
    capturing.stop_global_capturing()  # into files whose positions all forks share
    capturing.start_global_capturing()
    capturing.suspend_global_capture()
    folders = _folders(config)
    folders._basetemp = Path(folders.getbasetemp(), name)
    folders._basetemp.mkdir(mode=0o700)


def _folders(config: pytest.Config) -> pytest.TempPathFactory:
    found: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]
    return found


def _end(session: pytest.Session, last: pytest.Item) -> None:
    """Fixtures of the session end; what goes wrong there is said of the last test."""
    call = CallInfo.from_call(lambda: session._setupstate.teardown_exact(None), when="teardown")
    report = session.config.hook.pytest_runtest_makereport(item=last, call=call)
    if report.failed:
        session.config.hook.pytest_runtest_logreport(report=report)
        session.config.hook.pytest_runtest_logfinish(nodeid=last.nodeid, location=last.location)
