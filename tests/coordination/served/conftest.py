"""Served trees for the tests of this folder: in a simulated world, and in a process of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.coordination.served.simulated import SimulatedTree
from tools.ottla_server import TreeProcess, ottla_tree

from ottla.ports.memory import World
from ottla.ports.memory.loop import cancel_all


@pytest.fixture(scope="session")
def shared_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TreeProcess]:
    """One that all tests of a process share; each uses nodes of its own."""
    process = ottla_tree(tmp_path_factory.mktemp("shared") / "tree")
    with process:
        yield process


@pytest.fixture
def own_process(tmp_path: Path) -> Iterator[TreeProcess]:
    """One that the test starts, stops and kills."""
    process = ottla_tree(tmp_path / "tree")
    yield process
    process.kill()


@pytest.fixture
def simulated() -> Iterator[SimulatedTree]:
    """A tree in a world of its own, not yet started."""
    tree = SimulatedTree(World(1))
    yield tree
    cancel_all(tree.world.loop)
    tree.world.loop.close()
