"""A registry that is asked once for what does not change. Any thread may use it; one asks at a time."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from ottla.formats.errors import BadSpec, RegistryError, SchemaNotFound
from ottla.formats.registry.interface import RegisteredSchema, SchemaRegistry, WrittenSchema

#: Schemas that are kept, the last used; a job that meets more asks again. Confluent's clients keep as many a subject.
KEPT_MAX: Final = 1000
#: How long an id that the registry does not have is not asked for again: a thousand bad records are one question.
UNKNOWN_S: Final = 30.0
#: Schemas behind a schema, all together, and how far behind.
REFERENCES_MAX: Final = 256
REFERENCE_DEPTH_MAX: Final = 32

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class _Kept(Generic[Key, Value]):
    """What was used last, up to a count."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._entries: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: Key, value: Value) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._count_max:
            self._entries.popitem(last=False)


class CachedRegistry(SchemaRegistry):
    def __init__(self, inner: SchemaRegistry, now: Callable[[], float] = time.monotonic) -> None:
        self._inner = inner
        self._now = now
        self.place = inner.place
        #: Held while the registry is asked.
        self._asking = threading.Lock()
        #: Held for a look into the tables, so that an event loop may look while a thread asks.
        self._lock = threading.Lock()
        self._by_id: _Kept[int, WrittenSchema] = _Kept(KEPT_MAX)
        self._versions: _Kept[tuple[str, int], RegisteredSchema] = _Kept(KEPT_MAX)
        self._ids: _Kept[tuple[str, WrittenSchema], int] = _Kept(KEPT_MAX)
        #: Until when an id counts as unknown, and what the registry said.
        self._unknown: _Kept[int, tuple[float, str]] = _Kept(KEPT_MAX)

    def __repr__(self) -> str:
        return f"<registry {self.place}>"

    def refuses(self, schema_id: int) -> bool:
        """Whether `by_id` would say at once that there is no such schema."""
        with self._lock:
            return self._refusal(schema_id) is not None

    def by_id(self, schema_id: int) -> WrittenSchema:
        found = self._known(schema_id)
        if found is not None:
            return found
        with self._asking:
            found = self._known(schema_id)
            if found is not None:
                return found
            try:
                found = self._inner.by_id(schema_id)
            except SchemaNotFound as error:
                with self._lock:
                    self._unknown.put(schema_id, (self._now() + UNKNOWN_S, str(error)))
                raise
            with self._lock:
                self._by_id.put(schema_id, found)
            return found

    def _known(self, schema_id: int) -> WrittenSchema | None:
        with self._lock:
            found = self._by_id.get(schema_id)
            refusal = None if found is not None else self._refusal(schema_id)
        if refusal is not None:
            raise SchemaNotFound(refusal)
        return found

    def latest(self, subject: str) -> RegisteredSchema:
        with self._asking:
            return self._noted(self._inner.latest(subject))

    def version(self, subject: str, version: int) -> RegisteredSchema:
        with self._asking:
            with self._lock:
                found = self._versions.get((subject, version))
            return found or self._noted(self._inner.version(subject, version))

    def register(self, subject: str, schema: WrittenSchema) -> int:
        return self._id_of(subject, schema, self._inner.register)

    def find(self, subject: str, schema: WrittenSchema) -> int:
        return self._id_of(subject, schema, self._inner.find)

    def compatible(self, subject: str, schema: WrittenSchema) -> bool:
        return self._inner.compatible(subject, schema)

    def behind(self, schema: WrittenSchema) -> list[tuple[str, WrittenSchema]]:
        """The schemas that it refers to, by their names, each behind those that it needs itself.

        One that is not there makes it no schema: BadSpec, since SchemaNotFound is said of what was asked for.
        """
        found: dict[str, WrittenSchema] = {}

        def collect(one: WrittenSchema, depth: int) -> None:
            for reference in one.references:
                if reference.name in found:
                    continue
                if depth >= REFERENCE_DEPTH_MAX or len(found) >= REFERENCES_MAX:
                    raise RegistryError(
                        f"{self.place}: a schema refers to more than {REFERENCES_MAX} others, "
                        f"or {REFERENCE_DEPTH_MAX} deep"
                    )
                try:
                    other = self.version(reference.subject, reference.version).schema
                except SchemaNotFound as error:
                    raise BadSpec(f"the schema refers to {reference.name}, which is not there: {error}") from error
                collect(other, depth + 1)
                found[reference.name] = other

        collect(schema, 0)
        return list(found.items())

    def _id_of(self, subject: str, schema: WrittenSchema, ask: Callable[[str, WrittenSchema], int]) -> int:
        with self._asking:
            with self._lock:
                found = self._ids.get((subject, schema))
            if found is None:
                found = ask(subject, schema)
                with self._lock:
                    self._ids.put((subject, schema), found)
                    self._by_id.put(found, schema)
            return found

    def _noted(self, found: RegisteredSchema) -> RegisteredSchema:
        with self._lock:
            self._versions.put((found.subject, found.version), found)
            self._by_id.put(found.schema_id, found.schema)
        return found

    def _refusal(self, schema_id: int) -> str | None:
        unknown = self._unknown.get(schema_id)
        return unknown[1] if unknown is not None and self._now() < unknown[0] else None
