from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.formats.registry_server import RegistryServer, registry_server


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with registry_server() as served:
        yield served
