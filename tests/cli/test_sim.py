"""`ottla sim`: what it is given."""

from __future__ import annotations

import os

import pytest

from ottla.cli import faults, sim
from tests.cli.conftest import Command


def test_no_more_processes_than_there_is_work_for() -> None:
    assert sim.processes(1000, 1) == 1
    assert sim.processes(1, 1000) == 1
    assert sim.processes(2**40, 2**40) == sim.JOBS_PER_PROCESSOR_MAX * (os.cpu_count() or 1)


@pytest.mark.parametrize(
    ("option", "text"),
    [("--seeds", "0"), ("--jobs", "0"), ("--first", "x"), ("--first", "9" * 5000), ("--profile", "x")],
)
def test_what_cannot_be_meant(in_process: Command, option: str, text: str) -> None:
    ran = in_process("sim", option, text)
    assert (ran.code, ran.out) == (faults.USAGE, "")
    assert "int value" not in ran.err
