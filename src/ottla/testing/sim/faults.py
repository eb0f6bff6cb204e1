"""What befalls a simulated cluster: each fault happens, lasts for a while, and is healed; all are healed in the end."""

from __future__ import annotations

import asyncio
import errno
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

from ottla.coordination.znodes import state_path, topic_config_path, topic_path
from ottla.testing.sim.tree_observation import DAMAGE

if TYPE_CHECKING:
    from ottla.testing.sim.cluster import SimulatedCluster
    from ottla.testing.sim.machines import SimulatedMachine

#: Seconds that a machine is down, a process stands still, a link is cut. The session of a broker lasts for 1.5 s on a
#: tree of ours: some are shorter than that, most are longer.
_DOWN_S: Final = (0.05, 8.0)
_LASTS_S: Final = (0.2, 12.0)
#: So far may a clock be from producers': beyond an hour, message.timestamp.after.max.ms, a broker refuses records.
_JUMP_MAX_MS: Final = 3_000_000


class Faults:
    def __init__(self, cluster: SimulatedCluster, random: Random) -> None:
        self._cluster = cluster
        self._random = random
        self._fabric = cluster.simulation.world.fabric
        #: By how much clocks were set, by machine.
        self._jumped: dict[str, int] = {}
        #: How often what happened.
        self.counts: Counter[str] = Counter()
        #: Whose disk fails.
        self._failing: set[SimulatedMachine] = set()
        #: Nodes of the tree that nobody can read now, and what stood there.
        self._damaged: dict[str, bytes] = {}
        #: No more faults, and nothing that is left of one acts.
        self.over = False
        self._kinds: dict[str, Callable[[], None]] = {
            "kill": lambda: self._kill(self._broker()),
            "stop": self._stop,
            "power": self._power,
            "power_of_all": self._power_of_all,
            "power_when_whole": self._power_when_whole,
            "power_outside": self._power_outside,
            "pause": lambda: self._pause(self._broker()),
            "kill_controller": lambda: self._kill(self._controller()),
            "pause_controller": lambda: self._pause(self._controller()),
            "isolate_controller": lambda: self._isolate(self._controller()),
            "slow_controller": self._slow_controller,
            "controller_deleted": self._cluster.backing.delete_controller,
            "kill_leader": lambda: self._kill(self._leader()),
            "isolate_leader": lambda: self._isolate(self._leader()),
            "kill_all": self._kill_all,
            "kill_two": self._kill_two,
            "leave_one": self._leave_one,
            "isolate": lambda: self._isolate(self._broker()),
            "cut": lambda: self._cut(one_way=False),
            "cut_one_way": lambda: self._cut(one_way=True),
            "off_the_tree": self._off_the_tree,
            "off_the_brokers": self._off_the_brokers,
            "slow": self._slow,
            "reset": self._reset,
            "expire": self._expire,
            "tree_kill": lambda: self._kill(self._random.choice(self._cluster.trees)),
            "tree_full": lambda: self._disk_full(self._random.choice(self._cluster.trees)),
            "tree_pause": lambda: self._pause(self._random.choice(self._cluster.trees)),
            "clock": self._clock,
            "disk_full": lambda: self._disk_full(self._broker()),
            "disk_fails": self._disk_fails,
            "damage": self._damage,
        }

    def strike(self, kind: str) -> None:
        self.counts[kind] += 1
        self._cluster.simulation.trace.say("fault", kind)
        self._kinds[kind]()

    # Who, and for how long

    def _broker(self) -> SimulatedMachine:
        return self._random.choice(self._cluster.brokers)

    def _controller(self) -> SimulatedMachine:
        """The broker that the tree names; any where it names none."""
        return self._numbered(self._cluster.backing.controller())

    def _leader(self) -> SimulatedMachine:
        """Of some partition."""
        leaders = [each.tree.leader for each in self._cluster.state.partitions.values() if each.tree is not None]
        return self._numbered(self._random.choice(leaders) if leaders else None)

    def _numbered(self, broker: int | None) -> SimulatedMachine:
        return self._broker() if broker is None or broker < 1 else self._cluster.brokers[broker - 1]

    def _two(self) -> tuple[SimulatedMachine, SimulatedMachine]:
        first, second = self._random.sample(self._cluster.machines, 2)
        return first, second

    def _later(self, bounds: tuple[float, float], action: Callable[[], None]) -> None:
        def act() -> None:
            if not self.over:
                action()

        self._cluster.simulation.loop.call_later(self._random.uniform(*bounds), act)

    def _start_later(self, machine: SimulatedMachine) -> None:
        life = machine.lives

        def start() -> None:
            if machine.lives == life and not machine.runs:
                self._cluster.start(machine)

        self._later(_DOWN_S, start)

    # Processes and machines

    def _kill(self, machine: SimulatedMachine) -> None:
        if machine.runs:
            machine.kill()
            self._start_later(machine)

    def _kill_all(self) -> None:
        """All brokers at about the same time, as a fault of theirs that they have in common."""
        for machine in self._cluster.brokers:
            self._kill(machine)

    def _kill_two(self) -> None:
        """At once: of three replicas too few are left for `min.insync.replicas=2`."""
        for machine in self._random.sample(self._cluster.brokers, 2):
            self._kill(machine)

    def _leave_one(self) -> None:
        """Where replicas outside of the ISR may lead, it leads whatever it lacks, and whatever it alone has."""
        left = self._broker()
        for machine in self._cluster.brokers:
            if machine is not left:
                self._kill(machine)

    def _stop(self) -> None:
        machine = self._broker()
        if machine.serving.is_set() and not machine.is_paused:
            self._cluster.task(self._stop_and_start(machine))

    async def _stop_and_start(self, machine: SimulatedMachine) -> None:
        life = machine.lives
        await machine.stop()
        if machine.lives == life and not machine.runs:
            if self.over:
                self._cluster.start(machine)
            else:
                self._start_later(machine)

    def _power(self) -> None:
        machine = self._broker()
        if machine.runs:
            machine.lose_power()
            self._start_later(machine)

    def _power_when_whole(self) -> None:
        """Of one, while all others have everything: nobody flushes, and nothing may be lost all the same."""
        if all(each.runs for each in self._cluster.machines) and self._cluster.unequal() is None:
            self._power()
        else:
            self.counts["power_when_whole"] -= 1

    def _power_outside(self) -> None:
        """Of one that is in no ISR: nobody flushes, and what it forgets nobody counts on."""
        states = [each.tree for each in self._cluster.state.partitions.values() if each.tree is not None]
        counted = {broker for state in states for broker in state.isr}
        outside = [machine for number, machine in enumerate(self._cluster.brokers, 1) if number not in counted]
        if outside and (machine := self._random.choice(outside)).runs:
            machine.lose_power()
            self._start_later(machine)
        else:
            self.counts["power_outside"] -= 1

    def _power_of_all(self) -> None:
        for machine in self._cluster.machines:
            if machine.runs:
                machine.lose_power()
                self._start_later(machine)

    def _pause(self, machine: SimulatedMachine) -> None:
        machine.pause()
        self._later(_LASTS_S, machine.wake)

    def _expire(self) -> None:
        """The session alone: its broker lives, and hears of it from the tree."""
        self._cluster.backing.expire(self._random.randint(1, len(self._cluster.brokers)))

    # Links

    def _isolate(self, machine: SimulatedMachine) -> None:
        for other in self._cluster.machines:
            if other is not machine:
                self._cut_for_a_while(machine.name, other.name)
        if self._random.random() < 0.5:
            self._cut_for_a_while(machine.name, self._cluster.clients_host)

    def _cut(self, *, one_way: bool) -> None:
        first, second = self._two()
        self._cut_for_a_while(first.name, second.name, one_way=one_way)

    def _off_the_tree(self) -> None:
        machine = self._broker()
        one_way = self._random.random() < 0.3
        for tree in self._cluster.trees:
            ends = (machine.name, tree.name) if self._random.random() < 0.5 else (tree.name, machine.name)
            self._cut_for_a_while(*ends, one_way=one_way)

    def _off_the_brokers(self) -> None:
        machine = self._broker()
        one_way = self._random.random() < 0.3
        for other in self._cluster.brokers:
            if other is not machine:
                self._cut_for_a_while(machine.name, other.name, one_way=one_way)

    def _cut_for_a_while(self, first: str, second: str, *, one_way: bool = False) -> None:
        self._fabric.cut(first, second, one_way=one_way)

        def heal() -> None:
            self._fabric.heal(first, second)
            if self._random.random() < 0.3:
                self._fabric.reset(first, second)

        self._later(_LASTS_S, heal)

    def _slow(self) -> None:
        self._slow_link(*self._two(), self._random.choice((20.0, 200.0, 1500.0)))

    def _slow_controller(self) -> None:
        """The way of the controller to the tree, or to the other brokers: both sides live on."""
        controller = self._controller()
        others = self._cluster.trees if self._random.random() < 0.5 else self._cluster.brokers
        for other in others:
            if other is not controller:
                self._slow_link(controller, other, 1500.0)

    def _slow_link(self, first: SimulatedMachine, second: SimulatedMachine, most_ms: float) -> None:
        self._fabric.latency(most_ms / 10, most_ms, first.name, second.name)
        if self._random.random() < 0.5:
            self._fabric.rate(first.name, second.name, self._random.choice((2_000.0, 50_000.0)))

        def heal() -> None:
            self._fabric.latency(*self._cluster.latency_ms, first.name, second.name)
            self._fabric.rate(first.name, second.name, None)

        self._later(_LASTS_S, heal)

    def _reset(self) -> None:
        first, second = self._two()
        self._fabric.reset(first.name, second.name)

    # Clocks and disks

    def _clock(self) -> None:
        machine = self._random.choice(self._cluster.machines)
        clock = machine.ports.clock
        if self._random.random() < 0.5:
            so_far = self._jumped.get(machine.name, 0)
            milliseconds = self._random.choice((-_JUMP_MAX_MS, -5_000, 5_000, _JUMP_MAX_MS))
            if abs(so_far + milliseconds) > _JUMP_MAX_MS:
                milliseconds = -so_far
            self._jumped[machine.name] = so_far + milliseconds
            clock.jump(milliseconds)
        else:
            clock.drift(self._random.uniform(-0.01, 0.01))

    def _disk_full(self, machine: SimulatedMachine) -> None:
        disk = machine.ports.disk
        disk.fail("append|write|create|make_directory", "*", errno.ENOSPC)
        self._later(_LASTS_S, lambda: machine.ports.disk.stop_failing())

    def _disk_fails(self) -> None:
        """A directory that fails is served no more: its operator starts the broker again when the disk works."""
        machine = self._broker()
        machine.ports.disk.fail(
            self._random.choice(("append", "write", "sync")),
            self._random.choice(("*.log", "*/t*/*", "*")),
            errno.EIO,
            after=self._random.choice((0, 3, 20)),
            times=self._random.choice((1, 3)),
        )

        def mend() -> None:
            machine.ports.disk.stop_failing()
            self._failing.discard(machine)
            # What a failed sync has left in the system's memory is not on the medium: the machine starts again, also
            # where the broker has given up by itself.
            machine.lose_power()
            self._start_later(machine)

        self._failing.add(machine)
        self._later((1.0, 6.0), mend)

    # The end

    # The tree

    def _damage(self) -> None:
        """Of a topic: its assignment, its settings, or a partition's state. Somebody puts it back later."""
        backing, state = self._cluster.backing, self._cluster.state
        tp = self._random.choice([tp for tp, _ in state.partitions if tp.topic in state.minima])
        path = self._random.choice((topic_path(tp.topic), topic_config_path(tp.topic), state_path(*tp)))
        data = backing.data(path)
        if data is None or path in self._damaged:
            self.counts["damage"] -= 1
            return
        self._damaged[path] = data
        backing.write(path, DAMAGE)
        self._later(_LASTS_S, lambda: self._put_back(path))

    def _put_back(self, path: str) -> None:
        backing = self._cluster.backing
        if backing.data(path) == DAMAGE:
            backing.write(path, self._damaged[path])  # and is looked at again: the tree may end before that is done
        elif backing.data("/") is not None:
            self._damaged.pop(path, None)

    async def _put_all_back(self) -> None:
        while self._damaged:
            for path in list(self._damaged):
                self._put_back(path)
            await asyncio.sleep(0.1)

    async def heal_all(self) -> None:
        """Everything runs, everybody reaches everybody, disks work; what was lost stays lost."""
        self.over = True
        self._cluster.simulation.trace.say("fault", "everything is healed")
        self._fabric.heal()
        for first in self._cluster.machines:
            for second in self._cluster.machines:
                if first is not second:
                    self._fabric.latency(*self._cluster.latency_ms, first.name, second.name)
                    self._fabric.rate(first.name, second.name, None)
        for machine in self._cluster.machines:
            machine.ports.disk.stop_failing()
            machine.wake()
            if machine in self._failing:
                machine.lose_power()
            if not machine.runs:
                self._cluster.start(machine)
        self._cluster.task(self._put_all_back())
