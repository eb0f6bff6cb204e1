"""`ottla sim`: what it is given, and what it says."""

from __future__ import annotations

import os
import re

import pytest

from ottla.cli import faults, sim
from ottla.testing.sim.schedule import ClusterSchedule
from ottla.testing.sim.wire import Unreachable
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


def test_what_schedules_have_shown(in_process: Command) -> None:
    ran = in_process("sim", "--profile", "quiet", "--seeds", "1", "--first", "1")
    assert (ran.code, ran.err) == (faults.OK, "")
    first, calls, *kinds = ran.out.splitlines()
    # Nothing happens to a cluster there: such schedules do not count.
    assert first == "1 schedule, 0 of them with elections, truncations or ISR changes"
    found = re.fullmatch(r"([\d,]+) call-backs in [\d.]+ s; ([\d,]+) records acknowledged, none lost", calls)
    assert found is not None
    assert all(int(number.replace(",", "")) > 100 for number in found.groups())
    assert any(line.startswith("lives of brokers") for line in kinds)


def test_the_first_that_finds_something_ends_it_and_names_its_seed(
    in_process: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: ClusterSchedule) -> None:
        raise Unreachable("planted")

    monkeypatch.setattr(ClusterSchedule, "_strike", broken)
    ran = in_process("sim", "--profile", "quiet", "--seeds", "5", "--first", "3")
    assert ran.code == faults.FAILED
    assert "seed 3, profile 'quiet'" in ran.out
    assert ran.out.endswith("ottla sim --seeds 1 --first 3 --profile 'quiet' --trace\n")
    traced = in_process("sim", "--profile", "quiet", "--seeds", "1", "--first", "3", "--trace")
    assert traced.code == faults.FAILED
    assert traced.out.splitlines()[-1].startswith("seed 3 found ")
