"""Profiles of faults: what happens in a schedule, how often, and with what load beside it.

A schedule is drawn from a profile and a seed. `any` is what fresh schedules are drawn from; the others make one kind of
bug likely, for the bugs that tests plant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    name: str
    brokers: tuple[int, ...] = (3, 3, 3, 4, 5)
    replication_factor: int = 3
    min_insync_replicas: tuple[int, ...] = (1, 2, 2)
    topics: int = 2
    partitions: int = 2
    #: Virtual seconds in which faults happen.
    seconds: float = 60.0
    #: Between two faults, on the average.
    pause_s: float = 4.0
    #: Faults by name (`faults.py`), and how likely each is beside the others.
    faults: Mapping[str, float] = field(default_factory=dict)
    #: Whether replicas outside of the ISR may lead: then what was acknowledged may be lost.
    unclean: bool = False
    #: Whether brokers flush before they answer. Without it no power cut is drawn: it may take what all had.
    flush: bool = False
    producers: int = 2
    records: int = 150
    plain_producers: int = 1
    readers: int = 2
    members: int = 2
    #: Whether somebody creates, grows, reassigns, elects and deletes beside the load.
    operator: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


_PROCESSES: Final = {"kill": 3.0, "stop": 1.0, "pause": 2.0}
_LINKS: Final = {
    "isolate": 1.5,
    "cut": 1.5,
    "cut_one_way": 1.5,
    "off_the_tree": 1.5,
    "off_the_brokers": 1.5,
    "slow": 1.0,
    "reset": 1.0,
}
_TREE: Final = {"tree_kill": 0.5, "tree_pause": 0.5}
_REST: Final = {"clock": 0.5, "disk_full": 0.5}

ANY: Final = Profile(name="any", faults={**_PROCESSES, **_LINKS, **_TREE, **_REST})

PROFILES: Final[Mapping[str, Profile]] = {
    profile.name: profile
    for profile in (
        ANY,
        Profile(name="quiet", seconds=10.0, faults={}),
        Profile(name="changes", faults={}, operator=True),
        Profile(name="changes and faults", faults=ANY.faults, operator=True),
        Profile(name="processes", faults=_PROCESSES),
        Profile(name="links", faults=_LINKS),
        Profile(name="pauses", faults={"pause": 3.0, "kill": 1.0}),
        Profile(name="tree", faults={**_TREE, "off_the_tree": 2.0, "kill": 1.0}),
        Profile(name="power", faults={"power": 3.0, "power_of_all": 1.5, "pause": 0.5}, flush=True),
        Profile(name="disks", faults={"disk_full": 2.0, "disk_fails": 1.0, "kill": 1.0}, flush=True),
        Profile(name="unclean", faults={**_PROCESSES, **_LINKS}, unclean=True, min_insync_replicas=(1,)),
        Profile(
            name="short terms",
            faults={"kill": 4.0, "pause": 2.0, "isolate": 2.0},
            pause_s=1.5,
            topics=1,
            partitions=1,
        ),
    )
}
