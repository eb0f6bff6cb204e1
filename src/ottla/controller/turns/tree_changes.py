"""The controller's turns over what others write into the tree: tools of an older kind, older brokers, people.

Whatever is found there is carried out as if it had been asked for. What the controller has written itself it finds
again here, and knows by its version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from ottla.controller.core import ControllerCore, log
from ottla.controller.deciding.audience import role_orders
from ottla.controller.deciding.context import TopicContext
from ottla.controller.loading import (
    children_in,
    children_of,
    leave_alone,
    load_assignments,
    load_broker_configs,
    load_group_configs,
    load_parts,
    topic_names,
)
from ottla.controller.turns.answers import AnswerTurns
from ottla.controller.turns.creating import CreationTurns
from ottla.controller.turns.deleting import DeletionTurns
from ottla.controller.turns.reassigning import ReassignmentTurns
from ottla.coordination.interface import Delete, SetData, Stat, Watch
from ottla.coordination.notifications import (
    CONFIG_CHANGES,
    ISR_CHANGES,
    LOG_DIR_EVENTS,
    decode_config_change,
    decode_log_dir_failure,
    decode_partitions,
)
from ottla.coordination.znode_json import DamagedZnode
from ottla.coordination.znodes import (
    DELETE_TOPICS,
    TOPIC_CONFIGS,
    decode_config,
    encode_topic,
    topic_config_path,
    topic_path,
)
from ottla.model import ZERO_TOPIC_ID
from ottla.steps import Steps, pieces

T = TypeVar("T")

#: Notifications that are read in one turn; the others wait for the next.
_NOTIFICATIONS_MAX: Final = 1_000
#: Brokers that read changes of overrides have done so by then: Kafka's time for such nodes.
_CONFIG_CHANGES_KEPT_MS: Final = 15 * 60_000


class TreeTurns:
    def __init__(
        self,
        core: ControllerCore,
        creations: CreationTurns,
        deletions: DeletionTurns,
        answers: AnswerTurns,
        reassignments: ReassignmentTurns,
    ) -> None:
        self._core = core
        self._creations = creations
        self._deletions = deletions
        self._answers = answers
        self._reassignments = reassignments
        #: Topics with a watch of ours; those that we have made ourselves get theirs when the list has changed.
        self.watched: set[str] = set()
        #: The last change of overrides that was seen to, by its node's name; and the transaction that made the place
        #: where that stood: in another one they are numbered anew.
        self._last_config_change = ""
        self._config_changes_since = 0

    # Topics.

    async def topics(self, on_list: Watch, on_topic: Watch) -> None:
        core, context = self._core, self._core.context
        names = set(await topic_names(core.coordination, on_list))
        gone = sorted(context.topics.keys() - names)
        self.watched &= names
        unwatched = sorted(names - self.watched)
        self.watched |= names
        self._lose(gone)
        await self._take(await load_assignments(core.coordination, unwatched, on_topic, leave_alone))

    async def assignments(self, names: Sequence[str], on_topic: Watch) -> None:
        """Of topics that have changed."""
        await self._take(await load_assignments(self._core.coordination, sorted(names), on_topic, leave_alone))

    async def _take(self, found: Sequence[TopicContext]) -> None:
        core, context = self._core, self._core.context
        new, nameless, grown = await core.do(self._matched(found))
        if new:
            config_nodes = set(await children_of(core.coordination, TOPIC_CONFIGS))
            await load_parts(core.coordination, new, config_nodes, leave_alone)
            for topic in new:
                context.add_topic(topic)
                if topic.name not in config_nodes:
                    context.config_nodes.discard(topic.name)
        for topic in nameless:
            op = SetData(topic_path(topic.name), encode_topic(topic.assignment), topic.version)
            if (await core.writes.write([[op]])) == [None]:
                topic.version += 1
        if new or grown:
            await self._creations.found([*((topic, list(topic.replicas)) for topic in new), *grown])

    def _matched(
        self, found: Sequence[TopicContext]
    ) -> Steps[tuple[list[TopicContext], list[TopicContext], list[tuple[TopicContext, list[int]]]]]:
        """Takes over what has grown, and forgets what was made again.

        Returns topics that are new, those that were written by a tool that knows of no ids, and those that have grown,
        with the partitions that they have gained.
        """
        context = self._core.context
        new: list[TopicContext] = []
        nameless: list[TopicContext] = []
        grown: list[tuple[TopicContext, list[int]]] = []
        for topic in found:
            known = context.topics.get(topic.name)
            if known is not None and topic.id not in (known.id, ZERO_TOPIC_ID):
                self._lose([topic.name])
                known = None
            if known is None:
                new.append(topic)
            elif topic.version > known.version and topic.name not in context.deleting:
                added = yield from self._grown(known, topic)
                if added:
                    grown.append((known, added))
                if topic.id == ZERO_TOPIC_ID:
                    nameless.append(known)
            yield
        return new, nameless, grown

    def _grown(self, known: TopicContext, found: TopicContext) -> Steps[list[int]]:
        """Takes over the partitions that were added to a topic."""
        added: list[int] = []
        for piece in pieces(found.replicas):
            added += [number for number in piece if number not in known.replicas]
            yield
        for held in pieces(known.replicas.items()):
            if any(found.replicas.get(number) != replicas for number, replicas in held):
                log.error(
                    "assignments of partitions were changed by hand: they are left as they were", topic=known.name
                )
                break
            yield
        known.version = found.version
        for piece in pieces(added):
            known.replicas |= {number: found.replicas[number] for number in piece}
            yield
        return added

    def _lose(self, names: Sequence[str]) -> None:
        """Topics that are not in the tree any more, and that nobody has asked to delete: their logs are left alone."""
        core = self._core
        lost = [name for name in names if name not in core.context.deleting]
        for name in names:
            core.context.remove_topic(name)
        if lost:
            log.error("topics were taken out of the tree by hand", count=len(lost), first=lost[0])
            core.update(topics_deleted=lost)
            self._creations.reloaded()

    async def deletions(self, watch: Watch) -> None:
        await self._deletions.found(await children_of(self._core.coordination, DELETE_TOPICS, watch))

    # Notifications.

    async def isr_changes(self, watch: Watch) -> bool:
        """Older brokers write the state of what they lead themselves, and say so here. Whether there are more."""
        core, context = self._core, self._core.context
        found, paths, more = await self._notifications(ISR_CHANGES, watch, decode_partitions)
        changed = {tp for partitions in found for tp in partitions}
        known = sorted(
            tp
            for tp in changed
            if tp.topic in context.topics
            and tp.topic not in context.deleting
            and tp.partition in context.topics[tp.topic].states
        )
        if known:
            await core.read_again(known)
            partitions = [(context.topics[tp.topic], [tp.partition]) for tp in known]
            await core.show(partitions)
            await self._reassignments.go_on(partitions)
        await self._seen_to(paths)
        return more

    async def log_dir_events(self, watch: Watch) -> bool:
        """A broker has lost a directory, or has room again for what it could not open: which of its replicas are gone,
        and which are back, it says when it is given their roles again."""
        core, context = self._core, self._core.context
        found, paths, more = await self._notifications(LOG_DIR_EVENTS, watch, decode_log_dir_failure)
        brokers = {broker for broker in found if broker in context.brokers}
        if brokers:
            log.warning("brokers have lost log directories, or have some back", brokers=sorted(brokers))
            served = [(topic, list(topic.replicas)) for topic in context.served_topics()]
            orders = await core.do(role_orders(context, served, asked_again=brokers))
            core.announcer.announce([order for order in orders if order.broker in brokers])
        await self._seen_to(paths)
        return more

    async def _notifications(
        self, parent: str, watch: Watch, decode: Callable[[str, bytes], T]
    ) -> tuple[list[T], list[str], bool]:
        """What stands there, where, and whether there is more."""
        core = self._core
        names = await children_of(core.coordination, parent, watch)
        paths = [f"{parent}/{name}" for name in names[:_NOTIFICATIONS_MAX]]
        found: list[T] = []
        for path, node in zip(paths, await core.coordination.get_many(paths), strict=True):
            if node is not None:
                try:
                    found.append(decode(path, node[0]))
                except DamagedZnode as damaged:
                    log.warning("a notification is passed over", fault=str(damaged))
        return found, paths, len(names) > len(paths)

    async def _seen_to(self, notifications: Sequence[str]) -> None:
        """Not before: nothing else says what they say, and this turn may fail, or its controller die."""
        await self._core.writes.write([[Delete(path)] for path in notifications])

    # Overrides.

    async def pass_over_config_changes(self) -> None:
        """Before all overrides are read: the changes that are there by now are in them, and later ones may not be."""
        names, place = await children_in(self._core.coordination, CONFIG_CHANGES)
        self._note_config_changes(names, place)

    def _note_config_changes(self, names: Sequence[str], place: Stat | None) -> None:
        """All of these are seen to."""
        self._last_config_change = max(names, default="")
        self._config_changes_since = 0 if place is None else place.czxid

    async def config_changes(self, watch: Watch) -> bool:
        """Whether something has changed that the controller decides by."""
        core = self._core
        names, place = await children_in(core.coordination, CONFIG_CHANGES, watch)
        is_same_place = place is not None and place.czxid == self._config_changes_since
        last = self._last_config_change if is_same_place else ""
        paths = [f"{CONFIG_CHANGES}/{name}" for name in names]
        now_ms = core.clock.wall_ms()
        old: list[str] = []
        changed: set[str] = set()
        for name, path, node in zip(names, paths, await core.coordination.get_many(paths), strict=True):
            if node is None:
                continue
            if now_ms - node[1].ctime_ms > _CONFIG_CHANGES_KEPT_MS:
                old.append(path)
            if name <= last:
                continue
            try:
                changed.add(decode_config_change(path, node[0]))
            except DamagedZnode as damaged:
                log.warning("a change of overrides is passed over", fault=str(damaged))
        await core.writes.write([[Delete(path)] for path in old])
        has_changed = await self._take_overrides(changed)
        self._note_config_changes(names, place)
        return has_changed

    async def _take_overrides(self, entities: set[str]) -> bool:
        """Reads what somebody else has written."""
        core, context = self._core, self._core.context
        prefix = "topics/"
        topics = {entity.removeprefix(prefix) for entity in entities if entity.startswith(prefix)}
        topics &= context.topics.keys()
        changed_topics: dict[str, dict[str, str]] = {}
        paths = {name: topic_config_path(name) for name in sorted(topics)}
        for (name, path), node in zip(
            paths.items(), await core.coordination.get_many(list(paths.values())), strict=True
        ):
            try:
                overrides = {} if node is None else decode_config(path, node[0])
            except DamagedZnode as damaged:
                leave_alone(damaged)
                continue
            (context.config_nodes.discard if node is None else context.config_nodes.add)(name)
            if overrides != context.topics[name].configs:
                context.topics[name].configs = changed_topics[name] = overrides
        brokers: dict[str, dict[str, str]] = {}
        if any(entity.startswith("brokers/") for entity in entities):
            before, context.broker_configs = (
                context.broker_configs,
                await load_broker_configs(core.coordination, leave_alone, context),
            )
            brokers = _difference(before, context.broker_configs)
        groups: dict[str, dict[str, str]] = {}
        if any(entity.startswith("groups/") for entity in entities):
            before, context.group_configs = (
                context.group_configs,
                await load_group_configs(core.coordination, leave_alone, context),
            )
            groups = _difference(before, context.group_configs)
        if changed_topics or brokers or groups:
            core.update(topic_configs=changed_topics, broker_configs=brokers, group_configs=groups)
        return bool(changed_topics or brokers)


def _difference(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Each that has other overrides now, or none."""
    names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    return {name: after.get(name, {}) for name in sorted(names)}
