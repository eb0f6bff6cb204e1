"""Random lives of a group in virtual time: whatever its members, its coordinator and its journal do, some things hold.

- Never two owners of a partition in one generation, and a generation's shares never change.
- Never a commit accepted from another generation than the group's.
- No committed offset is lost, however often the coordinator is started anew.
- When the faults are over the group becomes stable, or empty if nobody is left.
"""

from __future__ import annotations

import os
from random import Random

import pytest
from tests.groups.world import GROUP, SESSION_MS, Answer, World, commit_error

from ottla.model import ErrorCode
from ottla.protocol.generated.join_group import JoinGroupResponse
from ottla.protocol.generated.sync_group import SyncGroupResponse

PARTITIONS = 6
MEMBERS = 4
STEPS = 120
SEEDS = range(int(os.environ.get("OTTLA_GROUP_SEEDS", "60")))
DELAY_MS = 500
#: Sessions, rebalances and the delays before them: nothing is waited for longer.
ROUNDS_MAX = 300


class Client:
    """A member as real ones behave, driven a step at a time."""

    def __init__(self, world: World, history: History, instance: str | None) -> None:
        self.world = world
        self.history = history
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self.owned: tuple[int, ...] | None = None
        self.joining: Answer[JoinGroupResponse] | None = None
        self.syncing: Answer[SyncGroupResponse] | None = None

    def step(self) -> None:
        if self.joining is not None:
            if self.joining.came:
                self._joined(self.joining.value)
        elif self.syncing is not None:
            if self.syncing.came:
                self._synced(self.syncing.value)
        elif self.owned is None:
            self.joining = self.world.join(self.member_id, instance=self.instance, session_ms=SESSION_MS)
        else:
            self._heard(self.world.heartbeat(self.member_id, self.generation, instance=self.instance))

    def commit(self, partition: int) -> None:
        """Commits where it stands, or where it once stood: a sleeper does not know better."""
        if not self.member_id or self.generation < 0:
            return
        offset = self.history.next_offset()
        answer = self.world.commit(
            offset,
            member_id=self.member_id,
            generation=self.generation,
            instance=self.instance,
            partition=partition,
        )
        self.history.sent(answer, partition, offset, self.generation)

    def leave(self) -> None:
        if self.member_id:
            self.world.leave((self.member_id, self.instance))
        self._forget()

    def beat_only(self) -> bool:
        """What is left of a client whose application hangs: its heartbeats. False once it is told that it is out."""
        if self.joining is not None:
            if not self.joining.came:
                return True
            self.member_id, self.generation = self.joining.value.member_id, self.joining.value.generation_id
            self.joining = None
        error = self.world.heartbeat(self.member_id, self.generation, instance=self.instance)
        return error in {ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}

    def _forget(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.owned, self.joining, self.syncing = None, None, None

    def _joined(self, answer: JoinGroupResponse) -> None:
        self.joining = None
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return
        if error:
            if error in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}:
                self._forget()
            return
        self.member_id, self.generation = answer.member_id, answer.generation_id
        shares: dict[str, bytes] = {}
        if answer.leader == self.member_id and not answer.skip_assignment:
            ids = sorted(member.member_id for member in answer.members)
            for number in range(PARTITIONS):
                name = ids[number % len(ids)]
                shares[name] = shares.get(name, b"") + bytes([number])
        self.syncing = self.world.sync(self.member_id, self.generation, shares, instance=self.instance)

    def _synced(self, answer: SyncGroupResponse) -> None:
        self.syncing = None
        error = ErrorCode(answer.error_code)
        if error:
            self._heard(error)
            return
        self.owned = tuple(bytes(answer.assignment))
        self.history.owns(self.generation, self.instance or self.member_id, self.owned)

    def _heard(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            return
        self.owned = None
        if error in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}:
            self._forget()


class History:
    """What must never be contradicted."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._offset = 0
        #: (incarnation of the group, generation) -> who owns what.
        self._shares: dict[int, dict[int, str]] = {}
        #: The last commit of each partition that was answered well, and all that were sent behind it.
        self._safe: dict[int, int] = {}
        self._open: list[tuple[Answer[object], int, int, bool]] = []

    def next_offset(self) -> int:
        self._offset += 1
        return self._offset

    def owns(self, generation: int, who: str, owned: tuple[int, ...]) -> None:
        shares = self._shares.setdefault(generation, {})
        for partition in owned:
            assert shares.setdefault(partition, who) == who, f"{partition} has two owners in generation {generation}"

    def sent(self, answer: object, partition: int, offset: int, generation: int) -> None:
        known = GROUP in self.world.shard.groups
        is_current = known and self.world.group().generation == generation
        assert isinstance(answer, Answer)
        self._open.append((answer, partition, offset, is_current))

    def settle(self) -> None:
        """Commits are answered in order: the last one that went well is what must be found."""
        waiting = []
        for sent in self._open:
            answer, partition, offset, was_current = sent
            if not answer.came:
                waiting.append(sent)
            elif commit_error(answer) is ErrorCode.NONE:  # type: ignore[arg-type]
                assert was_current, "a commit of another generation was accepted"
                self._safe[partition] = offset
        self._open = waiting

    def check_offsets(self) -> None:
        self.settle()
        assert not self._open
        for partition, offset in self._safe.items():
            assert self.world.committed(partition) == offset


def _disturb(random: Random, world: World, history: History, clients: list[Client], hanging: list[Client]) -> None:
    client = random.choice(clients)
    match random.randrange(40):
        case 0:
            client.leave()
        case 1 | 2:
            # Another process with the same configuration takes its place.
            clients[clients.index(client)] = Client(world, history, client.instance)
            if random.random() < 0.5:
                hanging.append(client)
        case 13:
            # One that enters, and hangs before it knows its share.
            hanging.append(Client(world, history, None))
            for _ in range(3):
                hanging[-1].step()
        case 3:
            world.journal.commit()
            world.restart()
        case 4:
            world.journal.held = True
        case 5:
            world.journal.commit()
        case 6:
            # What was not committed is lost, and the partition loaded again.
            world.journal.held = False
            world.journal.lose()
            world.restart()
        case 7:
            world.journal.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
        case 8 | 9:
            world.journal.refusal = None
        case 10 | 11 | 12:
            world.advance(random.choice([DELAY_MS, SESSION_MS // 2, SESSION_MS, 4 * SESSION_MS]))
        case _:
            client.commit(random.randrange(PARTITIONS))


def _calm_down(world: World, clients: list[Client], hanging: list[Client]) -> None:
    """The faults are over. Who hangs holds up nobody, and is missed once its heartbeats end as well."""
    world.journal.refusal = None
    world.journal.commit()
    _wait_for_peace(world, clients, hanging)
    _wait_for_peace(world, clients, [])


def _wait_for_peace(world: World, clients: list[Client], hanging: list[Client]) -> None:
    for _ in range(ROUNDS_MAX):
        for client in clients:
            client.step()
        hanging[:] = [client for client in hanging if client.beat_only()]
        if _is_at_peace(world, clients, hanging):
            return
        world.advance(DELAY_MS)
    states = [(client.member_id, client.generation, client.owned) for client in clients]
    raise AssertionError(f"the group is {world.group().state_name}: {states}")


def _is_at_peace(world: World, clients: list[Client], hanging: list[Client]) -> bool:
    if GROUP not in world.shard.groups:
        return False
    group = world.group()
    if group.state_name != "Stable" or len(group.members) != len(clients) + len(hanging):
        return False
    return all(client.owned is not None and client.generation == group.generation for client in clients)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_lives_of_a_group(seed: int) -> None:
    random = Random(seed)
    world = World(group_initial_rebalance_delay_ms=str(DELAY_MS))
    history = History(world)
    clients = [
        Client(world, history, f"static-{number}" if random.random() < 0.4 else None)
        for number in range(random.randint(1, MEMBERS))
    ]
    hanging: list[Client] = []
    for _ in range(STEPS):
        hanging[:] = [client for client in hanging if client.beat_only()]
        for client in random.sample(clients, random.randint(0, len(clients))):
            client.step()
        if random.random() < 0.5:
            _disturb(random, world, history, clients, hanging)
        history.settle()
        world.advance(random.choice([0, 10, 100]))

    _calm_down(world, clients, hanging)
    history.check_offsets()
    assert {number for client in clients for number in client.owned or ()} == set(range(PARTITIONS))

    # All go, and what is committed stays.
    for client in clients:
        client.leave()
    world.advance(10 * SESSION_MS)
    assert world.group().state_name == "Empty"
    world.restart()
    history.check_offsets()
