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


def test_what_failed_most_comes_first() -> None:
    runs = [Run(0, 300.0, 10, []), Run(1, 310.4, 8, ["a", "b"]), Run(1, 290.0, 9, ["b"]), Run(2, 5.0, 0, [])]
    assert list(summary(runs, 3)) == [
        "| `./test`, 4 times with 3 spinning processes beside it | 1 passed; 27 tests in all; 5 to 310 s a run |",
        "  2 of 4: b",
        "  1 of 4: a",
        "  1 of 4: failed without naming a test",
    ]


def test_spinning_processes_end_with_their_block() -> None:
    with spinning(2) as processes:
        assert all(process.poll() is None for process in processes)
    assert all(process.poll() is not None for process in processes)
