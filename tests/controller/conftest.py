from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.controller.cluster import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.close()
