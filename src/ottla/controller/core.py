"""What the controller's turns share: the context, the way into the tree, and the way out to brokers.

The order is the same everywhere: the tree first, then the context, then what brokers are to hear of it. Nothing in a
turn waits for a broker: orders are left with the announcer, and answers come back as a turn of their own
(`turns/answers.py`). A turn that fails on the way leaves `stale` set, and the next one begins by reading the tree anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from ottla import logs
from ottla.controller.announcing.announcer import Announcer
from ottla.controller.deciding.audience import Partitions, everything, role_orders, settings_update, shown_partitions
from ottla.controller.deciding.context import ClusterContext, TopicContext, VersionedState
from ottla.controller.deciding.elections import AfterChange, Election, Strategy, elections
from ottla.controller.deciding.makings import Makings
from ottla.controller.deciding.rules import ControllerSettings
from ottla.controller.loading import READ_AT_ONCE, leave_alone, load_states
from ottla.controller.numbers import ControllerNumbers
from ottla.controller.waiting import UnderWay
from ottla.controller.writing import ControllerWrites
from ottla.coordination.errors import BadVersion, CoordinationError
from ottla.coordination.interface import Coordination
from ottla.coordination.znodes import LeaderAndIsr
from ottla.metadata.updates import PartitionState
from ottla.model import NO_BROKER, BrokerId, ErrorCode, TopicPartition
from ottla.ports.clock import Clock
from ottla.ports.entropy import Entropy
from ottla.steps import Steps, in_turns, pieces

log = logs.logger("controller")

T = TypeVar("T")

#: How often an election is decided anew on a state that somebody else wrote meanwhile. More is a fault of somebody's.
_TRIES_MAX: Final = 5


class ElectionResults(NamedTuple):
    """What became of elections."""

    #: Partitions that have another state than before, whoever wrote it.
    changed: list[tuple[TopicContext, list[int]]]
    #: Those that somebody asked for, and that were not done.
    refused: dict[TopicPartition, ErrorCode]


class ControllerCore:
    def __init__(
        self,
        coordination: Coordination,
        clock: Clock,
        entropy: Entropy,
        announcer: Announcer,
        settings: ControllerSettings,
        numbers: ControllerNumbers,
    ) -> None:
        self.coordination = coordination
        self.clock = clock
        self.numbers = numbers
        self.entropy = entropy
        self.announcer = announcer
        self.settings = settings
        self.context = ClusterContext()
        #: Until the controller is claimed nothing gets through.
        self.writes = ControllerWrites(coordination, -2)
        #: The context may not be what the tree holds.
        self.stale = True
        #: Partitions whose state in the tree cannot be read: it is looked at again now and then.
        self.unreadable: set[TopicPartition] = set()
        #: Partitions that are hidden until their leaders serve them.
        self.makings = Makings()
        #: What requests wait for outside their turns.
        self.under_way = UnderWay()
        #: Topics that were refused when they were in the tree already, and are to go from there.
        self.undone: set[str] = set()

    async def do(self, steps: Steps[T]) -> T:
        """Long work of a turn. Nothing else changes the context meanwhile: there is one turn at a time."""
        return await in_turns(steps, self.clock.monotonic_ms)

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

    @property
    def after_change(self) -> AfterChange:
        """What becomes of partitions whose brokers or directories have changed."""
        settings = self.settings
        return AfterChange(settings.broker_id, unclean_default=settings.unclean_leader_election)

    async def elect(
        self, partitions: Iterable[tuple[TopicContext, Iterable[int]]], strategy: Strategy | None = None
    ) -> ElectionResults:
        """Writes what the strategy says of these partitions; without one, what follows from changes of brokers.

        An election that finds another state in the tree than it was decided on is decided anew on that one, and the
        others of its set do not wait for it.
        """
        strategy = strategy or self.after_change
        began_ms = self.clock.monotonic_ms()
        due, refused = await self.do(elections(self.context, partitions, strategy))
        changed: list[tuple[TopicContext, list[int]]] = []
        written: list[Election] = []
        for tries in range(_TRIES_MAX):
            late: list[Election] = []
            for election, fault in zip(due, await self.writes.write([[each.op] for each in due]), strict=True):
                if fault is None:
                    after = election.after
                    election.topic.states[election.partition] = VersionedState(after.state, after.version + 1)
                    changed.append((election.topic, [election.partition]))
                    written.append(election)
                elif isinstance(fault, BadVersion):
                    late.append(election)
                else:
                    refused[election.tp] = self._not_written(election, fault)
            if not late:
                break
            if tries == _TRIES_MAX - 1:
                refused |= {each.tp: self._not_written(each, "it changes all the time") for each in late}
                break
            readable = await self.read_again([election.tp for election in late])
            refused |= {each.tp: ErrorCode.UNKNOWN_SERVER_ERROR for each in late if each.tp not in readable}
            again = [(each.topic, [each.partition]) for each in late if each.tp in readable]
            changed += again
            due, more = await self.do(elections(self.context, again, strategy))
            refused |= more
        if written:
            self.numbers.elections.took(self.clock.monotonic_ms() - began_ms)
            self._say_what_was_elected(written)
        return ElectionResults(changed, refused)

    async def read_again(self, partitions: Sequence[TopicPartition]) -> set[TopicPartition]:
        """Takes over states that somebody else wrote, and returns those partitions.

        What is gone is seen to from the tree, and what cannot be read is left alone.
        """
        taken: set[TopicPartition] = set()
        decoded: dict[bytes, LeaderAndIsr] = {}
        for some in pieces(partitions, READ_AT_ONCE):
            for tp, found in await load_states(self.coordination, some, decoded, leave_alone):
                topic = self.context.topics.get(tp.topic)
                if topic is None:
                    continue
                if found is None:
                    self.stale = True
                    topic.states.pop(tp.partition, None)
                    continue
                state, stat = found
                if state is not None:
                    topic.states[tp.partition] = VersionedState(state, stat.version)
                    topic.damaged.discard(tp.partition)
                    taken.add(tp)
                else:
                    topic.damaged.add(tp.partition)
                    self.unreadable.add(tp)
        return taken

    def _say_what_was_elected(self, written: Sequence[Election]) -> None:
        unclean = [election for election in written if election.is_unclean]
        leaderless = [election for election in written if election.after.state.leader == NO_BROKER]
        self.numbers.unclean_elections += len(unclean)
        log.info("elected", partitions=len(written), first=str(written[0].tp))
        if unclean:
            log.warning(
                "leaders were elected from outside the in-sync set: what only others have is lost",
                partitions=len(unclean),
                first=str(unclean[0].tp),
            )
        if leaderless:
            first = leaderless[0]
            log.error(
                "partitions have no leader: no replica that is in sync lives, and the topic allows no other",
                partitions=len(leaderless),
                first=str(first.tp),
                isr=list(first.after.state.isr),
            )

    def _not_written(self, election: Election, fault: CoordinationError | str) -> ErrorCode:
        log.warning(
            "an election was not written", topic=election.topic.name, partition=election.partition, fault=str(fault)
        )
        self.stale = True
        return ErrorCode.UNKNOWN_SERVER_ERROR
