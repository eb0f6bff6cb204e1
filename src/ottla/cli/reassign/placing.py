"""On which brokers partitions shall be: as few moves as lead to even numbers, and copies on different racks.

A replica that is where it may be stays there. What is missing goes to the brokers that have least; of two copies on one
rack one goes to a rack that has none; then brokers that have more than their even share give to those that have less,
one replica of a partition at a time. Racks come before numbers: no copy goes where its partition would be on fewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.model import TopicPartition


def placed(
    current: Mapping[TopicPartition, Sequence[int]], racks: Mapping[int, str | None], copies: int | None = None
) -> dict[TopicPartition, list[int]]:
    """`racks` names the brokers that may be used, which are enough for all copies; `copies` of each partition, or as
    many as it has."""
    return _Placing(current, racks, copies).placed()


class _Placing:
    def __init__(
        self, current: Mapping[TopicPartition, Sequence[int]], racks: Mapping[int, str | None], copies: int | None
    ) -> None:
        # They count only when every broker has one, as where a topic is made.
        self._racks = dict.fromkeys(racks) if None in racks.values() else racks
        self._wanted = {tp: copies or len(replicas) for tp, replicas in sorted(current.items())}
        assert all(wanted <= len(racks) for wanted in self._wanted.values())
        self._found = {tp: self._kept(current[tp], wanted) for tp, wanted in self._wanted.items()}
        self._loads = dict.fromkeys(racks, 0)
        self._leads = dict.fromkeys(racks, 0)
        for replicas in self._found.values():
            for broker in replicas:
                self._loads[broker] += 1
            for broker in replicas[:1]:
                self._leads[broker] += 1

    def _kept(self, replicas: Sequence[int], wanted: int) -> list[int]:
        """Those that may stay, in their order; of too many the first of each rack before others."""
        usable = [broker for broker in replicas if broker in self._racks]
        first_on_rack = {self._racks[broker]: broker for broker in reversed(usable)}.values()
        by_worth = sorted(usable, key=lambda broker: broker not in first_on_rack)
        return [broker for broker in usable if broker in by_worth[:wanted]]

    def placed(self) -> dict[TopicPartition, list[int]]:
        for tp, replicas in self._found.items():
            while len(replicas) < self._wanted[tp]:
                chosen = min(self._others(replicas), key=lambda broker: self._cost(broker, replicas))
                self._leads[chosen] += not replicas
                self._loads[chosen] += 1
                replicas.append(chosen)
        for replicas in self._found.values():
            while self._comes_apart(replicas):
                pass
        share, left = divmod(sum(self._wanted.values()), len(self._racks))
        # Nobody has more than an even share, and then nobody less. Those that give and those that take only become
        # fewer meanwhile: what could not be given is not looked at again.
        for limit in (share + (left > 0), share):
            for replicas in self._found.values():
                while self._gives_one_away(replicas, limit):
                    pass
        return self._found

    def _comes_apart(self, replicas: list[int]) -> bool:
        """One copy leaves a rack that has another of them, for a rack that has none."""
        used = [self._racks[broker] for broker in replicas]
        free = [broker for broker, rack in self._racks.items() if rack not in used]
        shared = [place for place, rack in enumerate(used) if used.count(rack) > 1]
        if free and shared:
            self._replace(replicas, shared[-1], free)
        return bool(free and shared)

    def _gives_one_away(self, replicas: list[int], limit: int) -> bool:
        for place in reversed(range(len(replicas))):  # leaders stay where they can
            if self._loads[replicas[place]] > limit and (takers := self._takers(replicas, place, limit)):
                self._replace(replicas, place, takers)
                return True
        return False

    def _takers(self, replicas: Sequence[int], place: int, limit: int) -> list[int]:
        """Those that have less, with which the partition is on as many racks as before."""
        rest = {self._racks[broker] for at, broker in enumerate(replicas) if at != place}
        is_alone = self._racks[replicas[place]] not in rest
        return [
            broker
            for broker in self._others(replicas)
            if self._loads[broker] < limit and not (is_alone and self._racks[broker] in rest)
        ]

    def _replace(self, replicas: list[int], place: int, takers: Sequence[int]) -> None:
        rest = [broker for at, broker in enumerate(replicas) if at != place]
        chosen = min(takers, key=lambda broker: self._cost(broker, rest))
        for broker, change in ((replicas[place], -1), (chosen, 1)):
            self._loads[broker] += change
            self._leads[broker] += change * (place == 0)
        replicas[place] = chosen

    def _others(self, replicas: Sequence[int]) -> list[int]:
        return [broker for broker in self._racks if broker not in replicas]

    def _cost(self, broker: int, beside: Sequence[int]) -> Any:
        on_their_rack = self._racks[broker] in {self._racks[other] for other in beside}
        return on_their_rack, self._loads[broker], self._leads[broker], broker
