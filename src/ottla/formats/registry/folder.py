"""A registry in a folder: a file for each version of each subject, which people can read, copy and keep in git.

    schemas/
      orders-value/
        1.17.avsc        version 1 of the subject, schema id 17
        2.23.avsc
      clicks-value/
        1.18.proto

`.avsc` is Avro, `.proto` Protobuf. A subject's folder has its name as in a URL (`a/b` is `a%2Fb`). The same id in
several subjects means the same schema. Programs may register at once: a lock on the folder orders them, and a file
appears whole. There are no references between schemas, and every schema is taken: what is compatible a reader finds
out.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import threading
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, unquote

from ottla.formats.errors import BadSpec, RegistryError, RegistryUnreachable, SchemaNotFound
from ottla.formats.registry.interface import (
    AVRO,
    INT32_MAX,
    PROTOBUF,
    SCHEMA_BYTES_MAX,
    RegisteredSchema,
    SchemaRegistry,
    WrittenSchema,
)

_KINDS: Final = {"avsc": AVRO, "proto": PROTOBUF}
_SUFFIXES: Final = {kind: suffix for suffix, kind in _KINDS.items()}
_NAME: Final = re.compile(r"([1-9][0-9]{0,9})\.([0-9]{1,10})\.(avsc|proto)")
#: Looking for an id walks over all of them.
FILES_MAX: Final = 100_000


class FolderRegistry(SchemaRegistry):
    def __init__(self, folder: str) -> None:
        if not folder:
            raise BadSpec("schema.registry.url names no folder")
        self._folder = folder
        self._thread_lock = threading.Lock()
        self.place = folder

    def by_id(self, schema_id: int) -> WrittenSchema:
        found: _SchemaFile | None = None
        for one in self._files():
            if one.schema_id != schema_id:
                continue
            if found is not None and not _equal(found.read(), one.read()):
                raise RegistryError(f"{self.place}: schema id {schema_id} is two schemas: {found.path} and {one.path}")
            found = found or one
        if found is not None:
            return found.read()
        raise SchemaNotFound(f"{self.place}: there is no schema with id {schema_id} (no <version>.{schema_id}.avsc)")

    def latest(self, subject: str) -> RegisteredSchema:
        files = self._subject(subject)
        if not files:
            raise SchemaNotFound(f"{self.place}: there is no subject {subject!r}")
        return files[-1].registered()

    def version(self, subject: str, version: int) -> RegisteredSchema:
        for one in self._subject(subject):
            if one.version == version:
                return one.registered()
        raise SchemaNotFound(f"{self.place}: there is no version {version} of subject {subject!r}")

    def find(self, subject: str, schema: WrittenSchema) -> int:
        found = self._same(subject, schema)
        if found is None:
            raise SchemaNotFound(f"{self.place}: subject {subject!r} has no version with this schema")
        return found

    def register(self, subject: str, schema: WrittenSchema) -> int:
        with self._locked():
            found = self._same(subject, schema)
            if found is not None:
                return found
            if schema.kind not in _SUFFIXES or schema.references:
                raise RegistryError(f"{self.place}: a folder takes Avro and Protobuf without references")
            return self._write(subject, schema)

    def compatible(self, subject: str, schema: WrittenSchema) -> bool:
        return True

    def _write(self, subject: str, schema: WrittenSchema) -> int:
        text = schema.text.encode()
        if len(text) > SCHEMA_BYTES_MAX:
            raise RegistryError(f"{self.place}: a schema of {len(text)} bytes is over {SCHEMA_BYTES_MAX}")
        files = list(self._files())
        same = next((one.schema_id for one in files if _equal(one.read(), schema)), None)
        schema_id = max((one.schema_id for one in files), default=0) + 1 if same is None else same
        version = max((one.version for one in self._subject(subject)), default=0) + 1
        if max(schema_id, version) > INT32_MAX:
            raise RegistryError(f"{self.place}: there are no ids left")
        folder = os.path.join(self._folder, _folder_name(subject))
        path = os.path.join(folder, f"{version}.{schema_id}.{_SUFFIXES[schema.kind]}")
        with self._named("write", path):
            os.makedirs(folder, exist_ok=True)
            with open(f"{path}.new", "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.rename(f"{path}.new", path)
            # Records will have the id: it must not be gone after a power cut.
            _sync_names(folder)
            _sync_names(self._folder)
        return schema_id

    def _same(self, subject: str, schema: WrittenSchema) -> int | None:
        return next((one.schema_id for one in self._subject(subject) if _equal(one.read(), schema)), None)

    def _subject(self, subject: str) -> list[_SchemaFile]:
        folder = os.path.join(self._folder, _folder_name(subject))
        return sorted(self._in_folder(subject, folder), key=lambda one: (one.version, one.schema_id))

    def _files(self) -> Iterator[_SchemaFile]:
        with self._named("read", self._folder):
            names = sorted(os.listdir(self._folder))
        count = 0
        for name in names:
            folder = os.path.join(self._folder, name)
            if name.startswith(".") or not os.path.isdir(folder):
                continue
            for one in self._in_folder(unquote(name), folder):
                count += 1
                if count > FILES_MAX:
                    raise RegistryError(f"{self.place}: more than {FILES_MAX} files")
                yield one

    def _in_folder(self, subject: str, folder: str) -> list[_SchemaFile]:
        with self._named("read", folder):
            try:
                names = os.listdir(folder)
            except FileNotFoundError:
                if os.path.isdir(self._folder):
                    return []
                raise
        found = []
        for name in names:
            match = _NAME.fullmatch(name)
            if match is not None and max(int(match[1]), int(match[2])) <= INT32_MAX:
                path = os.path.join(folder, name)
                found.append(_SchemaFile(subject, int(match[1]), int(match[2]), _KINDS[match[3]], path))
        return found

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One registers at a time, of all threads and processes."""
        with self._thread_lock, contextlib.ExitStack() as stack:
            with self._named("write", self._folder):
                os.makedirs(self._folder, exist_ok=True)
                lock = stack.enter_context(open(os.path.join(self._folder, ".lock"), "ab"))
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def _named(self, verb: str, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RegistryUnreachable(f"the schema folder cannot be {verb}: {path}: {error.strerror}") from error


class _SchemaFile:
    def __init__(self, subject: str, version: int, schema_id: int, kind: str, path: str) -> None:
        self.subject = subject
        self.version = version
        self.schema_id = schema_id
        self._kind = kind
        self.path = path

    def read(self) -> WrittenSchema:
        try:
            with open(self.path, "rb") as file:
                raw = file.read(SCHEMA_BYTES_MAX + 1)
            text = raw.decode()
        except OSError as error:
            raise RegistryUnreachable(f"the schema file cannot be read: {self.path}: {error.strerror}") from error
        except UnicodeDecodeError:
            raise RegistryError(f"{self.path} is no text in UTF-8") from None
        if len(raw) > SCHEMA_BYTES_MAX:
            raise RegistryError(f"{self.path} is over {SCHEMA_BYTES_MAX} bytes")
        return WrittenSchema(kind=self._kind, text=text)

    def registered(self) -> RegisteredSchema:
        return RegisteredSchema(
            subject=self.subject, version=self.version, schema_id=self.schema_id, schema=self.read()
        )


def _sync_names(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _folder_name(subject: str) -> str:
    name = quote(subject, safe=" !#$&'()+,;=@[]{}")
    if not name or name.startswith("."):
        name = f"%2E{name[1:]}" if name else name
    if not name or len(name) > 255:
        raise BadSpec(f"a folder cannot be named after the subject {subject!r}")
    return name


def _equal(one: WrittenSchema, other: WrittenSchema) -> bool:
    """Whether two schemas say the same, but for the blanks between their words."""
    if one.kind != other.kind:
        return False
    if one.text == other.text:
        return True
    if one.kind != AVRO:
        return False
    try:
        return _in_order(one.text) == _in_order(other.text)
    except (ValueError, RecursionError):
        return False


def _in_order(text: str) -> str:
    """As a text again: to Python `true` and 1 are equal."""
    return json.dumps(json.loads(text), sort_keys=True)
