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
    #: The share of schedules in which replicas outside of the ISR may lead some topics, which may lose then what was
    #: acknowledged.
    unclean: float = 0.0
    #: The share in which brokers flush before they answer. Without it no power is cut: that may take what all had.
    flush: float = 0.0
    #: The share in which somebody creates, writes, grows, deletes, reassigns and elects beside the load.
    operator: float = 0.0
    producers: int = 2
    records: int = 150
    plain_producers: int = 1
    readers: int = 2
    members: int = 2
    #: The share of schedules in which these speak the newer protocol of groups (KIP-848).
    newer_members: float = 0.5
    #: The share in which transactional producers, and a loop that consumes, transforms and produces, are beside them.
    transactions: float = 0.0
    #: Whether somebody deletes records from the beginnings of partitions.
    trims: bool = False
    #: The share in which somebody changes a setting of topics.
    alters: float = 0.0
    #: The share in which brokers clean their logs: tables in a topic of their own, and groups' offsets.
    compacts: float = 0.0
    #: The share in which brokers have two log directories, and somebody moves replicas between them.
    carries: float = 0.0
    properties: Mapping[str, str] = field(default_factory=dict)


#: Of these only those schedules have some in which brokers flush before they answer.
POWER: Final[Mapping[str, float]] = {"power": 1.0, "power_of_all": 0.5, "disk_fails": 0.5}
_PROCESSES: Final = {"kill": 2.0, "kill_leader": 0.5, "kill_all": 0.1, "stop": 1.0, "pause": 2.0}
_CONTROLLERS: Final = {"kill_controller": 0.7, "pause_controller": 0.3, "isolate_controller": 0.3}
_LINKS: Final = {
    "isolate": 1.0,
    "isolate_leader": 0.5,
    "cut": 1.5,
    "cut_one_way": 1.5,
    "off_the_tree": 1.5,
    "off_the_brokers": 1.5,
    "slow": 1.0,
    "slow_controller": 0.3,
    "reset": 1.0,
}
_TREE: Final = {"tree_kill": 0.5, "tree_pause": 0.5, "expire": 0.7, "controller_deleted": 0.3}
_REST: Final = {"clock": 0.5, "disk_full": 0.5, "tree_full": 0.2}

ANY: Final = Profile(
    name="any",
    faults={**_PROCESSES, **_CONTROLLERS, **_LINKS, **_TREE, **_REST, **POWER},
    unclean=0.2,
    flush=0.3,
    operator=0.5,
    transactions=0.25,
    alters=0.2,
    compacts=0.2,
    carries=0.2,
)

PROFILES: Final[Mapping[str, Profile]] = {
    profile.name: profile
    for profile in (
        ANY,
        Profile(name="quiet", seconds=10.0, faults={}),
        Profile(name="changes", faults={}, operator=1.0),
        Profile(name="changes and faults", faults=ANY.faults, operator=1.0),
        Profile(name="processes", faults=_PROCESSES),
        # Leaders find out by themselves who lags before most of the dead come back.
        Profile(
            name="deaths",
            faults={"kill": 3.0, "kill_leader": 1.0},
            properties={"replica.lag.time.max.ms": "4500"},
        ),
        Profile(name="links", faults=_LINKS),
        Profile(name="pauses", faults={"pause": 3.0, "kill": 1.0}),
        Profile(
            name="controllers",
            faults={**_CONTROLLERS, "kill": 1.0, "stop": 0.5, "expire": 1.0, "off_the_tree": 1.0},
            pause_s=2.5,
            operator=1.0,
        ),
        Profile(name="tree", faults={**_TREE, "off_the_tree": 2.0, "kill": 1.0, "tree_full": 0.5}, operator=0.3),
        Profile(name="power", faults={"power": 3.0, "power_of_all": 1.5, "pause": 0.5}, flush=1.0),
        # Two of three replicas die at once, time and again: what is left may neither acknowledge nor lose anything.
        Profile(
            name="quorum loss",
            brokers=(3,),
            faults={"kill_two": 3.0, "kill": 1.0},
            pause_s=2.0,
            min_insync_replicas=(2,),
            topics=1,
        ),
        # Logs begin later and later, and files go: of leaders, of followers that were away, through crashes.
        Profile(
            name="trimmed",
            faults={**_PROCESSES, **_LINKS, "power": 1.0},
            flush=0.3,
            trims=True,
            properties={"log.segment.bytes": "6000", "log.retention.check.interval.ms": "1000"},
        ),
        # Each replica cleans its own log, and is killed, cut off, or truncated in the midst of it.
        Profile(
            name="compacted",
            faults={**_PROCESSES, **_LINKS, "power": 1.0, "power_of_all": 0.3, "kill_leader": 1.0, "disk_full": 0.5},
            pause_s=2.5,
            flush=0.5,
            compacts=1.0,
            transactions=0.3,
            operator=0.3,
            topics=1,
            producers=1,
            plain_producers=0,
            readers=1,
            records=60,
        ),
        # Replicas change their directories while they are written, cut, given up and cleaned.
        Profile(
            name="directories",
            faults={**_PROCESSES, **_LINKS, "power": 1.0, "disk_full": 1.0, "disk_fails": 0.5, "kill_leader": 1.0},
            pause_s=2.5,
            flush=0.5,
            carries=1.0,
            compacts=0.5,
            operator=0.5,
            unclean=0.2,
            transactions=0.2,
            records=80,
            members=0,
            properties={"log.segment.bytes": "6000"},
        ),
        # Somebody damages nodes of the tree by hand, and puts back what stood there.
        Profile(
            name="vandals",
            faults={"damage": 4.0, "kill_controller": 1.5, "controller_deleted": 1.0, "kill": 1.0, "off_the_tree": 1.0},
            pause_s=1.5,
            alters=0.5,
            operator=0.3,
            records=80,
            plain_producers=0,
        ),
        # Settings change while some brokers do not hear of it.
        Profile(
            name="settings",
            faults={"off_the_tree": 3.0, "expire": 1.0, "kill": 1.0, "pause": 1.0, "tree_kill": 0.5},
            seconds=30.0,
            alters=1.0,
            producers=1,
            plain_producers=0,
            records=60,
            members=0,
        ),
        # Nobody flushes: what one machine forgets the others have.
        Profile(
            name="forgetful",
            faults={"power_when_whole": 3.0, "pause_controller": 0.3, "tree_pause": 0.3},
            pause_s=2.0,
            min_insync_replicas=(2,),
            topics=1,
        ),
        Profile(
            name="disks",
            faults={"disk_full": 2.0, "disk_fails": 1.0, "kill": 1.0, "clock": 0.5, "tree_full": 0.5},
            flush=1.0,
            operator=0.3,
        ),
        Profile(
            name="unclean",
            faults={**_PROCESSES, **_LINKS},
            unclean=1.0,
            min_insync_replicas=(1,),
            operator=0.3,
        ),
        Profile(
            name="short terms",
            faults={"kill": 4.0, "pause": 2.0, "isolate": 2.0},
            pause_s=1.5,
            topics=1,
            partitions=1,
        ),
        # The same replica leads, lacks and leads again: logs part in several leader epochs.
        Profile(
            name="unclean terms",
            faults={"leave_one": 3.0, "kill": 1.0, "pause": 1.0, "isolate_leader": 3.0},
            pause_s=1.2,
            unclean=1.0,
            min_insync_replicas=(1,),
            topics=1,
            partitions=1,
            plain_producers=2,
            records=300,
        ),
        # Leaders that are replaced while producers wait at them, and hear of it while these still do.
        Profile(name="cut off", faults={"isolate": 1.0, "isolate_leader": 3.0}, pause_s=2.0, topics=1),
        # Leaders that hear of nobody for a while, and are not replaced: a tree that stood still adds that to sessions.
        Profile(
            name="silence",
            faults={"off_the_brokers": 2.0, "tree_pause": 3.0, "isolate": 1.0},
            pause_s=2.0,
            topics=1,
        ),
        # A follower that is behind needs many answers of its leader's.
        Profile(
            name="small fetches",
            faults={"kill": 2.0, "pause": 2.0, "cut": 1.0},
            properties={"replica.fetch.max.bytes": "300", "replica.fetch.response.max.bytes": "600"},
        ),
        # Requests and answers that are late or lost.
        Profile(
            name="late answers",
            faults={"slow": 3.0, "slow_controller": 2.0, "reset": 3.0, "kill": 1.0, "pause": 1.0, "cut": 1.0},
            pause_s=1.0,
        ),
        # Nobody dies: ISRs change by what leaders ask for, and answers are lost.
        Profile(
            name="lost answers",
            faults={"off_the_brokers": 3.0, "slow_controller": 2.0, "reset": 4.0},
            pause_s=0.8,
            properties={"replica.lag.time.max.ms": "2000"},
        ),
        # Leaders die while those behind them know an old watermark.
        Profile(name="slow deaths", faults={"slow": 3.0, "kill_leader": 2.0, "pause": 2.0}, pause_s=1.0, topics=1),
        # Nobody flushes: what is out of every ISR forgets what it had, and comes back.
        Profile(
            name="rejoins",
            faults={"power_outside": 4.0, "power_when_whole": 1.0, "slow": 1.0, "slow_controller": 2.0, "pause": 2.0},
            pause_s=1.0,
            min_insync_replicas=(2,),
            topics=1,
        ),
        # Controllers that live, and are the controller no more.
        Profile(
            name="deposed",
            faults={"controller_deleted": 3.0, "slow_controller": 2.0, "kill": 1.5, "expire": 1.0},
            pause_s=1.5,
            operator=0.5,
        ),
        # Hardly anything beside transactions; brokers come back often, and links are lost.
        Profile(
            name="transactions",
            faults={**_PROCESSES, **_CONTROLLERS, **_LINKS, "kill_leader": 2.0},
            pause_s=2.0,
            transactions=1.0,
            topics=1,
            partitions=1,
            producers=1,
            plain_producers=0,
            records=30,
            readers=0,
            members=0,
        ),
        # Brokers live, and are away while topics go and come again under their names: one that starts again looks at
        # what it finds, one that comes back may take it for what it is asked for. Each is a replica of every topic.
        Profile(
            name="recreated",
            brokers=(3,),
            faults={"pause": 2.0, "isolate": 3.0, "off_the_tree": 1.0},
            operator=1.0,
            topics=1,
            partitions=1,
            producers=1,
            plain_producers=0,
            records=60,
            readers=1,
            members=0,
        ),
    )
}
