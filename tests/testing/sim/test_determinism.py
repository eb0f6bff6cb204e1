"""The same seed gives the same run, byte for byte: in one process, and in another whose hashes are different."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.testing.sim.power_cycles import PowerCycles

REPOSITORY = Path(__file__).resolve().parents[3]
SEEDS = (3, 7, 11)


def trace_of(seed: int) -> str:
    cycles = PowerCycles(seed)
    cycles.run()
    return cycles.trace


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_gives_one_trace_in_one_process(seed: int) -> None:
    first = trace_of(seed)
    assert first.count("\n") > 10
    assert trace_of(seed) == first


def test_a_seed_gives_one_trace_whatever_the_hash_seed() -> None:
    here = "".join(trace_of(seed) + "\n" for seed in SEEDS)
    program = "from tests.testing.sim.test_determinism import SEEDS, trace_of\nfor seed in SEEDS: print(trace_of(seed))"
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        there = subprocess.run(
            [sys.executable, "-c", program], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
        )
        assert there.stdout == here


def test_other_seeds_give_other_traces() -> None:
    assert len({trace_of(seed) for seed in SEEDS}) == len(SEEDS)
