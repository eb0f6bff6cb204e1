"""What the controller's turns share: the context, the way into the tree, and the way out to brokers.

The order is the same everywhere: the tree first, then the context, then what brokers are to hear of it. Nothing in a
turn waits for a broker: orders are left with the announcer, and answers come back as a turn of their own
(`turns/answers.py`). A turn that fails on the way leaves `stale` set, and the next one begins by reading the tree anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from ottla import logs
from ottla.controller.announcing.announcer import Announcer
from ottla.controller.deciding.audience import Partitions, everything, role_orders, settings_update, shown_partitions
from ottla.controller.deciding.context import ClusterContext, TopicContext, VersionedState
from ottla.controller.deciding.elections import Election, elections
from ottla.controller.deciding.makings import Makings
from ottla.controller.deciding.rules import ControllerSettings
from ottla.controller.waiting import UnderWay
from ottla.controller.writing import ControllerWrites
from ottla.coordination.errors import BadVersion, CoordinationError
from ottla.coordination.interface import Coordination
from ottla.coordination.znodes import decode_state, state_path
from ottla.metadata.updates import PartitionState
from ottla.model import BrokerId
from ottla.ports.clock import Clock
from ottla.ports.entropy import Entropy
from ottla.steps import Steps, in_turns

log = logs.logger("controller")

T = TypeVar("T")

#: How often an election is decided anew on a state that somebody else wrote meanwhile. More is a fault of somebody's.
_TRIES_MAX: Final = 5


class ControllerCore:
    def __init__(
        self,
        coordination: Coordination,
        clock: Clock,
        entropy: Entropy,
        announcer: Announcer,
        settings: ControllerSettings,
    ) -> None:
        self.coordination = coordination
        self._clock = clock
        self.entropy = entropy
        self.announcer = announcer
        self.settings = settings
        self.context = ClusterContext()
        #: Until the controller is claimed nothing gets through.
        self.writes = ControllerWrites(coordination, -2)
        #: The context may not be what the tree holds.
        self.stale = True
        #: Partitions that are hidden until their leaders serve them.
        self.makings = Makings()
        #: What requests wait for outside their turns.
        self.under_way = UnderWay()
        #: Topics that were refused when they were in the tree already, and are to go from there.
        self.undone: set[str] = set()

    async def do(self, steps: Steps[T]) -> T:
        """Long work of a turn. Nothing else changes the context meanwhile: there is one turn at a time."""
        return await in_turns(steps, self._clock.monotonic_ms)

    # Announcing to brokers. None of these waits for them.

    def update(
        self,
        *,
        topics_deleted: Sequence[str] = (),
        topic_configs: Mapping[str, Mapping[str, str]] | None = None,
        broker_configs: Mapping[str, Mapping[str, str]] | None = None,
        group_configs: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Has all brokers know settings and deletions."""
        order = settings_update(
            self.context,
            topics_deleted=topics_deleted,
            topic_configs=topic_configs,
            broker_configs=broker_configs,
            group_configs=group_configs,
        )
        self.announcer.announce([order])

    async def lead(self, partitions: Partitions, *, is_new: bool = False) -> None:
        """Has brokers take on the roles of their replicas."""
        self.announcer.announce(await self.do(role_orders(self.context, partitions, is_new=is_new)))

    async def show(self, partitions: Partitions) -> None:
        """Has clients see partitions, but for those that are being made or deleted."""
        hidden, deleting = self.makings.hidden, self.context.deleting
        visible = (
            (topic, [number for number in numbers if number not in hidden(topic.name)])
            for topic, numbers in partitions
            if topic.name not in deleting
        )
        self.show_states(await self.do(self.context.states_of(visible)))

    def show_states(self, states: Sequence[PartitionState]) -> None:
        if states:
            self.announcer.announce([shown_partitions(self.context, states)])

    async def announce_all(self, brokers: Sequence[BrokerId]) -> None:
        """Everything, to brokers that know nothing, or something older."""
        orders = await self.do(everything(self.context, self.makings, self.settings.broker_id, brokers))
        self.announcer.announce(orders)

    # Elections.

    async def elect(
        self, partitions: Iterable[tuple[TopicContext, Iterable[int]]], *, new_epochs: bool = False
    ) -> list[tuple[TopicContext, list[int]]]:
        """Gives partitions whose leader is gone another one, or none; returns those that changed.

        With `new_epochs` leaders stay, under a new epoch. An election that finds another state in the tree than it was
        decided on is decided anew on that one, and the others of its set do not wait for it.
        """
        due = await self.do(self._elections(partitions, new_epochs=new_epochs))
        changed: list[tuple[TopicContext, list[int]]] = []
        for _ in range(_TRIES_MAX):
            late: list[Election] = []
            for election, fault in zip(due, await self.writes.write([[each.op] for each in due]), strict=True):
                if fault is None:
                    after = election.after
                    election.topic.states[election.partition] = VersionedState(after.state, after.version + 1)
                    changed.append((election.topic, [election.partition]))
                elif isinstance(fault, BadVersion):
                    late.append(election)
                else:
                    self._not_written(election, fault)
            if not late:
                return changed
            changed += await self._read_again(late)
            again = [(election.topic, [election.partition]) for election in late]
            due = await self.do(self._elections(again, new_epochs=False))
        for election in due:
            self._not_written(election, "it changes all the time")
        return changed

    def _elections(self, partitions: Partitions, *, new_epochs: bool) -> Steps[list[Election]]:
        unclean = self.settings.unclean_leader_election
        return elections(self.context, partitions, unclean_default=unclean, new_epochs=new_epochs)

    async def _read_again(self, late: Sequence[Election]) -> list[tuple[TopicContext, list[int]]]:
        """Takes over states that somebody else wrote; returns their partitions."""
        paths = [state_path(election.topic.name, election.partition) for election in late]
        for election, path, found in zip(late, paths, await self.coordination.get_many(paths), strict=True):
            if found is None:
                self.stale = True
                del election.topic.states[election.partition]
            else:
                data, stat = found
                election.topic.states[election.partition] = VersionedState(decode_state(path, data), stat.version)
        return [(election.topic, [election.partition]) for election in late]

    def _not_written(self, election: Election, fault: CoordinationError | str) -> None:
        log.warning(
            "an election was not written", topic=election.topic.name, partition=election.partition, fault=str(fault)
        )
        self.stale = True
