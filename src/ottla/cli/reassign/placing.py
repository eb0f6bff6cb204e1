"""On which brokers partitions shall be: as few moves as lead to even numbers, and copies on different racks.

A replica that is where it may be stays there. What is missing goes to the brokers that have least; then brokers that
have more than their even share give to those that have less, one replica of a partition at a time.
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
        self._racks = racks
        self._wanted = {tp: copies or len(replicas) for tp, replicas in sorted(current.items())}
        assert all(wanted <= len(racks) for wanted in self._wanted.values())
        self._found = {
            tp: [broker for broker in current[tp] if broker in racks][:wanted] for tp, wanted in self._wanted.items()
        }
        self._loads = dict.fromkeys(racks, 0)
        self._leads = dict.fromkeys(racks, 0)
        for replicas in self._found.values():
            for broker in replicas:
                self._loads[broker] += 1
            for broker in replicas[:1]:
                self._leads[broker] += 1

    def placed(self) -> dict[TopicPartition, list[int]]:
        for tp, replicas in self._found.items():
            while len(replicas) < self._wanted[tp]:
                chosen = min(self._others(replicas), key=lambda broker: self._cost(broker, replicas))
                self._leads[chosen] += not replicas
                self._loads[chosen] += 1
                replicas.append(chosen)
        share = -(-sum(self._wanted.values()) // len(self._racks))
        while any(self._gives_one_away(replicas, share) for replicas in self._found.values()):
            pass
        return self._found

    def _gives_one_away(self, replicas: list[int], share: int) -> bool:
        for place, broker in reversed([*enumerate(replicas)]):  # leaders stay where they can
            takers = [other for other in self._others(replicas) if self._loads[other] < share]
            if self._loads[broker] > share and takers:
                rest = [other for other in replicas if other != broker]
                chosen = min(takers, key=lambda other: self._cost(other, rest))
                replicas[place] = chosen
                self._loads[broker] -= 1
                self._loads[chosen] += 1
                return True
        return False

    def _others(self, replicas: Sequence[int]) -> list[int]:
        return [broker for broker in self._racks if broker not in replicas]

    def _cost(self, broker: int, beside: Sequence[int]) -> Any:
        on_their_rack = self._racks[broker] in {self._racks[other] for other in beside}
        return on_their_rack, self._loads[broker], self._leads[broker], broker
