"""What is counted of many runs of `./test`."""

from __future__ import annotations

from tools.test_many_times import Run, failed_in, spinning, summary

OUTPUT = """\
.....F..E
=========================== short test summary info ============================
FAILED tests/a/test_a.py::test_one - AssertionError: it never came
FAILED tests/a/test_a.py::test_two[b c] - assert 1 == 2
ERROR tests/b/test_b.py::test_three - OSError
2 failed, 1234 passed, 1 error in 300.00s (0:05:00)
"""


def test_names_are_read_out_of_the_output() -> None:
    assert failed_in(OUTPUT) == [
        "tests/a/test_a.py::test_one",
        "tests/a/test_a.py::test_two[b c]",
        "tests/b/test_b.py::test_three",
    ]
    assert failed_in("1234 passed in 300.00s\n") == []


def test_a_table_has_what_failed_most_first() -> None:
    runs = [Run(0, 300.0, 9_991, []), Run(1, 310.4, 8, ["a[x|y]", "b"]), Run(1, 290.0, 9, ["b"]), Run(2, 5.0, 0, [])]
    heading, rule, row = summary(runs, ["tests/a", "-k", "one or two"], 3)
    assert heading.count("|") == rule.count("|") == 8
    assert row == (
        "| `./test tests/a -k 'one or two'` beside 3 spinning processes | 4 | 1 | 10,008 | 295 | 310 "
        "| `b` 2; `a[x\\|y]` 1; no test by name 1 |"
    )
    (*_, row) = summary(runs[:1], [], 0)
    assert row == "| `./test` | 1 | 1 | 9,991 | 300 | 300 | nothing |"


def test_spinning_processes_end_with_their_block() -> None:
    with spinning(2) as processes:
        assert all(process.poll() is None for process in processes)
    assert all(process.poll() is not None for process in processes)
