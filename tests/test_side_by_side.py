"""Tests that forks run are reported as if one process had run them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

REPOSITORY = Path(__file__).resolve().parents[1]
CONFTEST = f"""
import os
import sys
import pytest
sys.path.insert(0, {str(REPOSITORY)!r})
from tests.distribution import scopes
from tests.side_by_side import Distribution

def pytest_runtestloop(session):
    if session.config.option.collectonly:
        return None
    Distribution(session, scopes(session.items)).run(2)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    return True

@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    made = tmp_path_factory.mktemp("shared")
    yield made
    (made.parent.parent / f"ended-{{os.getpid()}}").write_text("")
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST)
    return pytester


def run(suite: pytest.Pytester, *words: str) -> pytest.RunResult:
    return suite.runpytest_subprocess("-p", "no:xdist", "-p", "no:ottla", "-q", *words)


def test_what_they_find_is_said(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_one="""
        import warnings, pytest
        def test_good(): pass
        def test_bad(): print("said by it"); assert 1 == 2
        def test_left_out(): pytest.skip("not here")
        @pytest.mark.xfail
        def test_expected(): assert False
        def test_warns(): warnings.warn("beware", UserWarning)
        """,
        test_other="""
        import pytest
        @pytest.fixture
        def broken():
            yield
            raise RuntimeError("at its end")
        def test_torn_down_badly(broken): pass
        @pytest.mark.parametrize("n", range(20))
        def test_many(n): assert True
        """,
    )
    result = run(suite)
    result.assert_outcomes(passed=23, failed=1, skipped=1, xfailed=1, errors=1, warnings=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*assert 1 == 2*", "*said by it*"])
    result.stdout.fnmatch_lines(["*UserWarning: beware*"])


def test_a_file_and_a_group_are_one_workers_and_so_is_what_is_the_sessions(suite: pytest.Pytester) -> None:
    group = """
        import os, pytest
        pytestmark = pytest.mark.xdist_group("g")
        def test_who(shared, record_property): assert {0} == len(os.listdir(shared)); (shared / "{0}").write_text("")
        """
    suite.makeini("[pytest]\nmarkers =\n    xdist_group: together\n")
    suite.makepyfile(
        test_a=group.format(0),
        test_b=group.format(1),
        test_c="""
        import os
        first = []
        def test_one(shared): first.append(os.getpid())
        def test_two(shared): assert first == [os.getpid()]
        """,
    )
    base = suite.path / "base"
    result = run(suite, f"--basetemp={base}")
    result.assert_outcomes(passed=4)
    workers = {path.name.removeprefix("ended-") for path in base.glob("ended-*")}
    assert len(workers) in {1, 2}  # each has ended what it shared, and nobody twice


def test_one_that_dies_has_failed_at_its_test_and_the_others_are_run(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        **{f"test_{n}": "def test_good(): pass" for n in range(6)},
        test_dies="""
        import os
        def test_good(): pass
        def test_dies(): os._exit(3)
        def test_behind_it(): pass
        """,
    )
    result = run(suite)
    result.assert_outcomes(passed=8, failed=1)
    result.stdout.fnmatch_lines(["*the process of this test has died*"])


def test_one_that_dies_and_leaves_a_process_behind_is_missed_all_the_same(suite: pytest.Pytester) -> None:
    """That process keeps the dead one's end of the connection open, until the next test has been run."""
    suite.makeconftest(CONFTEST + "\nimport tests.side_by_side\ntests.side_by_side.LOOK_S = 0.1\n")
    suite.makepyfile(
        """
        import os, time
        def test_dies():
            if os.fork():
                os._exit(3)
            for descriptor in (1, 2):
                os.close(descriptor)
            until = time.monotonic() + 60
            while not os.path.exists("run") and time.monotonic() < until:
                time.sleep(0.01)
            os._exit(0)
        def test_behind_it():
            open("run", "w").close()
        """
    )
    run(suite).assert_outcomes(passed=1, failed=1)


def test_the_first_failure_is_the_last_where_that_is_wanted(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_0_first="def test_bad(): assert False",
        **{f"test_{n}": "import time\ndef test_good(): time.sleep(0.01)" for n in range(200)},
    )
    result = run(suite, "-x")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1
    assert outcomes.get("passed", 0) < 200


def test_ctrl_c_ends_what_is_the_sessions(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_waits="""
        import time
        from pathlib import Path
        def test_waits(shared):
            Path("waits").write_text("")
            time.sleep(600)
        """
    )
    base = suite.path / "base"
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:ottla", f"--basetemp={base}"]
    child = subprocess.Popen(command, cwd=suite.path, stdout=subprocess.PIPE, text=True, start_new_session=True)
    while not (suite.path / "waits").exists():
        assert child.poll() is None
        time.sleep(0.01)
    os.killpg(child.pid, signal.SIGINT)
    assert child.stdout is not None
    assert "KeyboardInterrupt" in child.stdout.read()
    assert child.wait(60) == pytest.ExitCode.INTERRUPTED
    assert len(list(base.glob("ended-*"))) == 1
