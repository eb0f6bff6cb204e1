"""What is wrong with a partition, in plain words, each with the next step: a pure look at what brokers have said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ottla.cli.counting import counted

#: A follower that runs asks again within half a second (`replica.fetch.wait.max.ms`); after so long it does not.
FETCHES_WITHIN_MS: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerView:
    """As the leader knows it."""

    end: int
    #: When it last asked, and when it last had all that there was, so long ago; None: never in this leadership.
    fetched_ms_ago: int | None
    caught_up_ms_ago: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    topic: str
    partition: int
    leader: int | None
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
    #: For a write with acks=all, capped by the replicas.
    needed: int
    controller: int | None
    #: Registered brokers, and those of them that do not answer.
    live: Sequence[int]
    silent: Sequence[int]
    #: Brokers with a log directory that failed, and its path.
    failed_directories: Mapping[int, str] = field(default_factory=dict)
    #: Leader and leader epoch as other brokers name them, where they differ.
    others_say: Mapping[int, tuple[int | None, int]] = field(default_factory=dict)
    leader_end: int | None = None
    followers: Mapping[int, FollowerView] = field(default_factory=dict)
    moving: bool = False

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


def faults(view: PartitionView) -> list[str]:
    """Nothing where all is well."""
    return [*_of_leader(view), *_of_min_isr(view), *_of_followers(view), *_of_views(view)]


def _brokers(ids: Sequence[int]) -> str:
    named = ", ".join(map(str, ids))
    return f"broker {named}" if len(ids) == 1 else f"brokers {named}"


def _of_leader(view: PartitionView) -> Iterator[str]:
    if view.controller is None:
        yield (
            "there is no controller: nobody is elected, and no in-sync set changes, until a broker can be one. Look "
            "whether the brokers reach the tree (`zookeeper.connect`): their logs say what hinders them"
        )
    if view.leader is None:
        yield _why_leaderless(view)
    elif view.leader not in view.live:
        yield f"broker {view.leader} leads, and is not registered any more: another one is about to be elected"
    elif view.leader in view.silent:
        yield (
            f"broker {view.leader} leads, and does not answer: it is paused, overloaded or cut off. Its session with "
            "the tree ends if that lasts, and another one leads; look at its log"
        )


def _why_leaderless(view: PartitionView) -> str:
    dead = [broker for broker in view.isr if broker not in view.live]
    failed = [broker for broker in view.isr if broker in view.failed_directories]
    others = [broker for broker in view.replicas if broker not in view.isr and broker in view.live]
    if len(dead) + len(failed) < len(view.isr):
        able = [broker for broker in view.isr if broker not in (*dead, *failed)]
        return (
            f"nobody leads, though {_brokers(able)} could: the controller is about to elect one, or cannot write to "
            "the tree; its log says why"
        )
    what = "all of its in-sync replicas are dead" if not failed else "none of its in-sync replicas can serve it"
    start = f"start {_brokers(dead)}" if dead else ""
    mend = ", ".join(f"mend {view.failed_directories[broker]} on broker {broker} and restart it" for broker in failed)
    step = " or ".join(part for part in (start, mend) if part)
    if not others:
        return f"offline: {what} ({list(view.isr)}), and no other replica lives. Next: {step}"
    return (
        f"offline: {what} ({list(view.isr)}), and only they have every acknowledged record. Next: {step}. If they are "
        f"lost for good, `ottla elect --unclean --topic {view.topic}:{view.partition} --yes` has {_brokers(others)} "
        "lead, and what only the lost ones had is gone"
    )


def _of_min_isr(view: PartitionView) -> Iterator[str]:
    if view.leader is not None and len(view.isr) < view.needed:
        yield (
            f"writes with acks=all are refused: {len(view.isr)} in sync, and min.insync.replicas wants {view.needed}. "
            "Next: get followers back, as below"
        )


def _of_followers(view: PartitionView) -> Iterator[str]:
    if view.leader is None:
        return
    for broker in view.replicas:
        if broker not in view.isr:
            yield f"replica {broker} is not in sync: {_why_out(view, broker)}"


def _why_out(view: PartitionView, broker: int) -> str:
    if broker not in view.live:
        return f"broker {broker} is down (not registered). Next: start it"
    if broker in view.failed_directories:
        path = view.failed_directories[broker]
        return f"log directory {path} of broker {broker} has failed. Next: mend the disk, and restart the broker"
    if broker in view.silent:
        return (
            f"broker {broker} is registered and does not answer: it is paused, overloaded or cut off. Look at its log"
        )
    follower = view.followers.get(broker)
    if follower is None or view.leader_end is None:
        return f"broker {broker} lives, and its leader, broker {view.leader}, does not say how far it is"
    if follower.fetched_ms_ago is None or follower.fetched_ms_ago > FETCHES_WITHIN_MS:
        asked = "never" if follower.fetched_ms_ago is None else f"not for {follower.fetched_ms_ago / 1000:.0f} s"
        return (
            f"it has {asked} asked its leader, broker {view.leader}, for records: it does not reach it, or its fetcher "
            f"has failed. Next: look for `is not reached` or `fetch` in the log of broker {broker}"
        )
    behind = view.leader_end - follower.end
    if behind > 0:
        moved = "; the partition is being moved there" if view.moving else ""
        return (
            f"it fetches, and lacks {counted(behind, 'record')}: it is catching up{moved}. If that does not get less, "
            "it is slower than the writers, or throttled (`*.replication.throttled.*`)"
        )
    controller = "" if view.controller is None else f", broker {view.controller}"
    return (
        "it has all records, and joins when the controller has written that to the tree. If it stays so, look at the "
        f"log of the controller{controller}"
    )


def _of_views(view: PartitionView) -> Iterator[str]:
    for broker, (leader, epoch) in view.others_say.items():
        if epoch < view.leader_epoch:
            named = "nobody" if leader is None else f"broker {leader}"
            yield (
                f"broker {broker} has not heard of it yet: it names {named} as the leader, under leader epoch {epoch}. "
                "If that lasts, the controller does not reach it"
            )
