"""The group coordinator, made when it is first needed.

Its code takes forty milliseconds to import, which a broker without groups starts without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.groups.coordinator import GroupCoordinator


class GroupsOnDemand:
    def __init__(self, make: Callable[[], GroupCoordinator]) -> None:
        self._make = make
        #: None while nobody has asked for it: there are no groups.
        self.made: GroupCoordinator | None = None

    def get(self) -> GroupCoordinator:
        if self.made is None:
            self.made = self._make()
        return self.made
