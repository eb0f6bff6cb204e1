"""Packages whose names are imported when they are first used have all that they promise, and nothing else."""

from __future__ import annotations

from importlib import import_module

import pytest


@pytest.mark.parametrize("name", ["ottla.client", "ottla.client.sync", "ottla.arrow"])
def test_every_name_of_a_package_is_there_when_it_is_asked_for(name: str) -> None:
    package = import_module(name)
    assert dir(package) == sorted(package.__all__)
    assert all(getattr(package, one) is not None for one in package.__all__)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = package.nothing
