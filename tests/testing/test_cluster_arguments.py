"""What a cluster for tests is given is checked before a process is started: an error names the argument."""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

import ottla.testing
from ottla.client.errors import BadArgument
from ottla.testing import InProcessBroker, StartFailed


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n": "3"}, "n must be an int, not a str"),
        ({"n": 0}, "n must be from 1"),
        ({"n": 1000}, "n must be from 1"),
        ({"properties": {"min.insync.replicas": 2}}, "the value of min.insync.replicas must be a str, not an int"),
        ({"properties": ["a"]}, "properties must be a mapping"),
        ({"properties": {"listeners": "PLAINTEXT://:9092"}}, "each broker of the cluster has its own listeners"),
        (
            {"properties": {"advertised.listeners": "PLAINTEXT://host.docker.internal:9092"}},
            "each broker of the cluster has its own advertised.listeners",
        ),
        ({"properties": {"broker.rack": "a"}}, "each broker of the cluster has its own broker.rack.*: say racks"),
        ({"racks": {9: "a"}}, "racks: the broker must be from 1 to 3, not 9"),
        ({"racks": {1: 5}}, "the rack of broker 1 must be a str, not an int"),
    ],
)
def test_what_a_cluster_is_made_of(given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadArgument, match=said):
        ottla.testing.cluster(**given)


@pytest.mark.parametrize("given", ["5", None, True, float("nan")])
def test_how_long_to_wait_for_lag(ottla_broker: InProcessBroker, given: Any) -> None:
    with pytest.raises(BadArgument, match="timeout must be"):
        ottla_broker.wait_for_lag("nobody", timeout=given)


def test_what_is_raised_can_be_imported() -> None:
    for name in ottla.testing.__all__:
        assert getattr(ottla.testing, name).__name__ == name
    with pytest.raises(ottla.testing.ConfigError), ottla.testing.broker(properties={"num.partitions": "x"}):
        pass
    assert issubclass(ottla.testing.StillBehind, TimeoutError)


def test_of_a_cluster_that_cannot_be_started_nothing_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    before = set(threading.enumerate())
    with pytest.raises(StartFailed, match="tree cannot be started: No such file"), ottla.testing.cluster(1):
        pass
    assert list(tmp_path.iterdir()) == []
    assert set(threading.enumerate()) <= before
