"""The server's own ways to share partitions among the members of a consumer group.

- `model.py`    what an assignor is given and gives back
- `ranges.py`   `range`
- `uniform.py`  `uniform`
- `ordering.py` sorting in steps
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from ottla.groups.consumer.assignors import ranges, uniform
from ottla.groups.consumer.assignors.model import Candidate, Demand, Targets
from ottla.steps import Steps

#: By the names that members and `group.consumer.assignors` say.
ASSIGNORS: Final[Mapping[str, Callable[[Demand], Steps[Targets]]]] = MappingProxyType(
    {"uniform": uniform.assign, "range": ranges.assign}
)

__all__ = ["ASSIGNORS", "Candidate", "Demand", "Targets"]
