"""What a reset comes to: for each group and partition where it is and where it will be, within what is there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.cli.faults import CommandFault, UsageFault
from ottla.cli.offsets import EARLIEST, LATEST, offsets_of
from ottla.model import TopicPartition

if TYPE_CHECKING:
    from ottla.cli.group.scopes import Scope
    from ottla.cli.offsets import Offsets
    from ottla.client.admin.admin import Admin


class OffsetChange(NamedTuple):
    group: str
    partition: TopicPartition
    #: None where nothing was committed.
    current: int | None
    new: int
    start: int
    end: int
    #: What was asked for, where that is not there and `new` is the nearest that is.
    asked: int | None


async def changes(
    client: Admin, partitions: Mapping[str, Iterable[TopicPartition]], scope: Scope, committed: Mapping[str, Offsets]
) -> list[OffsetChange]:
    everything = list(dict.fromkeys(tp for listed in partitions.values() for tp in listed))
    await _refuse_leaderless(client, everything)
    starts = await offsets_of(client.cluster, dict.fromkeys(everything, EARLIEST))
    ends = await offsets_of(client.cluster, dict.fromkeys(everything, LATEST))
    at_time: Offsets = {}
    if scope.to_time_ms is not None:
        found = await offsets_of(client.cluster, dict.fromkeys(everything, scope.to_time_ms))
        # Where no record is as young, the group goes on with the next one.
        at_time = {tp: ends[tp] if offset < 0 else offset for tp, offset in found.items()}
    planned = []
    for group, listed in partitions.items():
        from_file = _of_file(scope, group)
        for tp in listed:
            current = committed[group].get(tp)
            if scope.to_earliest:
                asked = starts[tp]
            elif scope.to_latest:
                asked = ends[tp]
            elif scope.to_time_ms is not None:
                asked = at_time[tp]
            elif from_file is not None:
                asked = from_file[tp]
            elif scope.shift_by is not None:
                asked = _shifted(group, tp, current, scope.shift_by)
            elif scope.to_offset is not None:
                asked = scope.to_offset
            else:
                asked = ends[tp] if current is None else current
            new = min(max(asked, starts[tp]), ends[tp])
            clipped = asked if asked != new else None
            planned.append(OffsetChange(group, tp, current, new, starts[tp], ends[tp], clipped))
    return planned


def _shifted(group: str, tp: TopicPartition, current: int | None, by: int) -> int:
    if current is None:
        raise CommandFault(
            f"{group} has committed nothing in {tp}: there is nothing to shift; leave it out with --topic TOPIC:N,..., "
            "or place it with --to-earliest or --to-latest"
        )
    return current + by


def _of_file(scope: Scope, group: str) -> Offsets | None:
    return (
        None if scope.rows is None else {row.partition: row.offset for row in scope.rows if row.group in {group, None}}
    )


def partitions_of_file(scope: Scope, groups: list[str], *, all_groups: bool) -> dict[str, list[TopicPartition]]:
    """For each group its partitions in the file. A file without groups is for one group alone."""
    assert scope.rows is not None
    if scope.rows[0].group is None and (all_groups or len(groups) != 1):
        raise UsageFault("the file names no groups (group,topic,partition,offset): name the one that it is for")
    found: dict[str, list[TopicPartition]] = {}
    for group in groups:
        listed = _of_file(scope, group) or {}
        if listed:
            found[group] = sorted(listed)
        elif not all_groups:
            raise CommandFault(f"the file has no row for the group {group}")
    return found


async def _refuse_leaderless(client: Admin, partitions: list[TopicPartition]) -> None:
    """Early: a question to a partition without a leader waits until it has one."""
    from ottla.client.admin.group_lag import led_partitions

    led = set(await led_partitions(client.cluster, partitions))
    missing = [str(tp) for tp in partitions if tp not in led]
    if missing:
        raise CommandFault(
            f"{', '.join(missing[:5])}: not there, or without a leader now (`ottla topic describe` shows them); "
            "leave them out with --topic TOPIC:N,..."
        )
