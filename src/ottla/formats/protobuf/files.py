"""Protobuf schemas: files with messages, out of their text, a descriptor, or a set of descriptors."""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from ottla.formats.errors import BadRecord, BadSpec
from ottla.formats.protobuf.google_types import GOOGLES
from ottla.formats.protobuf.source_text import parse_proto
from ottla.formats.registry.interface import PROTOBUF, WrittenSchema
from ottla.formats.source import Behind, SchemaLanguage, bytes_of_file, text_of_file

#: A text that holds several files: a set of descriptors in base64. No .proto file begins like this.
_SET: Final = "descriptor-set:"
#: Files that a file needs, with those that they need.
FILES_MAX: Final = 256
_MAIN: Final = "main.proto"
#: What comes with the library, and is imported by everybody.
_NAMES: Final = "any api descriptor duration empty field_mask source_context struct timestamp type wrappers"
_WELL_KNOWN: Final = {f"google/protobuf/{name}.proto": f"google.protobuf.{name}_pb2" for name in _NAMES.split()}
#: What Confluent's registry and its clients have beside that, so that no reference names it. meta.proto declares
#: options, which say nothing of the wire.
_CONFLUENTS: Final = {
    "confluent/meta.proto": 'syntax = "proto3"; package confluent;',
    "confluent/type/decimal.proto": """syntax = "proto3"; package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }""",
    "confluent/type/variant.proto": """syntax = "proto3"; package confluent.type;
        message Variant { bytes metadata = 1; bytes value = 2; }""",
    **GOOGLES,
}
_BUILT_IN: Final = {*_WELL_KNOWN, *_CONFLUENTS}


class ProtobufSchema:
    """A file, and the message of it that is meant."""

    def __init__(self, files: list[FileDescriptorProto], name: str | None, *, is_text: bool = False) -> None:
        """The last of the files is the one that is meant; the others are what it needs."""
        self._file = files[-1]
        pool = _pool(files)
        paths = dict(_paths(self._file.message_type, (), counts_entries=not is_text))
        if not paths:
            raise BadSpec("the Protobuf schema has no message")
        prefix = f"{self._file.package}." if self._file.package else ""
        #: Names by indexes. Confluent's Java client finds these in what is registered: a text has no messages for the
        #: entries of maps, a descriptor has. Others count them always, so what no message has is looked for as they do.
        self._names = {path: prefix + found for found, path in paths.items()}
        others = _paths(self._file.message_type, (), counts_entries=is_text)
        self._others_names = {path: prefix + found for found, path in others}
        self._pool = pool
        #: The full name of the message.
        self.name = self._chosen(name, [prefix + found for found in paths])
        self.message: Any = pool.FindMessageTypeByName(self.name)

    @staticmethod
    def _chosen(name: str | None, names: list[str]) -> str:
        if name is None:
            return names[0]
        found = [one for one in names if one == name] or [one for one in names if one.endswith(f".{name}")]
        if len(found) != 1:
            listed = ", ".join(names[:20])
            raise BadSpec(f"the Protobuf schema has {len(found)} messages {name!r}; it has {listed}")
        return found[0]

    def at(self, path: tuple[int, ...]) -> Any:
        """The message that a record's indexes lead to."""
        name = self._names.get(path) or self._others_names.get(path)
        if name is None:
            raise BadRecord(f"the Protobuf schema has no message at {'.'.join(map(str, path))}")
        return self._pool.FindMessageTypeByName(name)

    def path(self) -> tuple[int, ...]:
        """The indexes that lead to its message."""
        return next(path for path, name in self._names.items() if name == self.name)


def read_file(path: str) -> WrittenSchema:
    """A .proto file with all that it imports beside itself, or a set of descriptors, as protoc writes it."""
    if path.endswith(".proto"):
        text = text_of_file(path)
        parsed = parse_proto(text, os.path.basename(path))
        if all(one in _BUILT_IN for one in parsed.dependency):
            return WrittenSchema(kind=PROTOBUF, text=text)
        return _as_set(_with_imports(parsed, os.path.dirname(path)))
    files = _set_of(bytes_of_file(path), path)
    own = [one for one in files if one.name not in _BUILT_IN]
    if not own:
        raise BadSpec(f"the descriptor set {path} has no file of its own")
    if len(own) == 1:
        return WrittenSchema(kind=PROTOBUF, text=b64encode(own[0].SerializeToString()).decode())
    return _as_set(own)


def parse(schema: WrittenSchema, behind: Behind, name: str | None) -> ProtobufSchema:
    try:
        if schema.text.startswith(_SET):
            raw = b64decode(schema.text.removeprefix(_SET))
            return ProtobufSchema(_set_of(raw, "the schema"), name)
        main = _descriptor_of(schema.text, _MAIN)
        files = [_file_of(one.text, label) for label, one in behind]
        return ProtobufSchema([*files, main or parse_proto(schema.text, _MAIN)], name, is_text=main is None)
    except (TypeError, ValueError, KeyError, RecursionError) as error:
        if isinstance(error, BadSpec):
            raise
        raise BadSpec(f"the Protobuf schema is none: {error}") from None


def name_of(schema: ProtobufSchema) -> str | None:
    return schema.name


def is_registrable(schema: WrittenSchema) -> bool:
    """A registry has imports under subjects of their own."""
    return not schema.text.startswith(_SET)


LANGUAGE: Final = SchemaLanguage(
    kind=PROTOBUF,
    suffixes=(".proto", ".desc"),
    read=read_file,
    parse=parse,
    name_of=name_of,
    is_registrable=is_registrable,
)


def _file_of(text: str, label: str) -> FileDescriptorProto:
    return _descriptor_of(text, label) or parse_proto(text, label)


def _descriptor_of(text: str, label: str) -> FileDescriptorProto | None:
    """In base64, which is what Confluent's Python client registers; None where the text is a .proto file's."""
    compact = "".join(text.split())
    try:
        raw = b64decode(compact, validate=True)
        found: Any = FileDescriptorProto.FromString(raw)
    except (NoBase64, DecodeError, ValueError):
        return None
    if not found.message_type and not found.enum_type:
        return None
    found.name = label
    return found


def _set_of(raw: bytes, where: str) -> list[FileDescriptorProto]:
    try:
        found = list(FileDescriptorSet.FromString(raw).file)
    except DecodeError:
        raise BadSpec(f"{where} is no descriptor set: protoc writes one with --descriptor_set_out") from None
    if not found or len(found) > FILES_MAX:
        raise BadSpec(f"{where} is a descriptor set of {len(found)} files; there must be from 1 to {FILES_MAX}")
    return found


def _as_set(files: list[FileDescriptorProto]) -> WrittenSchema:
    raw = FileDescriptorSet(file=files).SerializeToString()
    return WrittenSchema(kind=PROTOBUF, text=_SET + b64encode(raw).decode())


def _with_imports(main: FileDescriptorProto, folder: str) -> list[FileDescriptorProto]:
    """With the files that it imports, each behind those that it needs; they are looked for from its folder on."""
    found: dict[str, FileDescriptorProto] = {}

    def collect(one: FileDescriptorProto, within: tuple[str, ...]) -> None:
        for name in one.dependency:
            if name in _BUILT_IN or name in found:
                continue
            if name in within or len(found) >= FILES_MAX:
                raise BadSpec(f"the Protobuf schema imports {name} in a circle, or more than {FILES_MAX} files")
            if os.path.isabs(name) or ".." in name.split("/"):
                raise BadSpec(f"the Protobuf schema imports {name!r}, which is not below its folder")
            imported = parse_proto(text_of_file(os.path.join(folder, name)), name)
            collect(imported, (*within, name))
            found[name] = imported

    collect(main, (main.name,))
    return [*found.values(), main]


def _pool(files: list[FileDescriptorProto]) -> DescriptorPool:
    """A pool of these alone: another schema may have other messages of the same names."""
    pool = DescriptorPool()
    known: set[str] = set()
    given = {file.name for file in files}

    def add_well_known(name: str) -> None:
        if name in known:
            return
        known.add(name)
        descriptor = import_module(_WELL_KNOWN[name]).DESCRIPTOR
        for other in descriptor.dependencies:
            add_well_known(other.name)
        pool.AddSerializedFile(descriptor.serialized_pb)

    def add_built_in(name: str) -> None:
        if name in _WELL_KNOWN:
            add_well_known(name)
        elif name in _CONFLUENTS and name not in given | known:
            known.add(name)
            built_in = parse_proto(_CONFLUENTS[name], name)
            for other in built_in.dependency:
                add_built_in(other)
            pool.AddSerializedFile(built_in.SerializeToString())

    for file in files:
        for name in file.dependency:
            add_built_in(name)
        if file.name not in known:
            known.add(file.name)
            _add(pool, file, [name for name in file.dependency if name not in given | _BUILT_IN])
    return pool


def _add(pool: DescriptorPool, file: FileDescriptorProto, missing: list[str]) -> None:
    """A file that declares options only is not missed; of any other the types are."""
    whole: Any = file
    if missing:
        whole = FileDescriptorProto()
        whole.CopyFrom(file)
        del whole.dependency[:], whole.public_dependency[:], whole.weak_dependency[:]
        public = {file.dependency[index] for index in file.public_dependency}
        whole.dependency.extend(name for name in file.dependency if name not in missing)
        whole.public_dependency.extend(index for index, name in enumerate(whole.dependency) if name in public)
    try:
        pool.AddSerializedFile(whole.SerializeToString())
    except TypeError as error:
        if not missing:
            raise
        raise BadSpec(f"the Protobuf schema imports {', '.join(missing)}, which is not there: {error}") from None


def _paths(messages: Iterable[Any], above: tuple[int, ...], prefix: str = "", *, counts_entries: bool) -> Any:
    """Names and indexes of all messages. Entries of maps are none, and have indexes where those count."""
    index = 0
    for message in messages:
        path = (*above, index)
        if not message.options.map_entry:
            yield prefix + message.name, path
            yield from _paths(message.nested_type, path, f"{prefix}{message.name}.", counts_entries=counts_entries)
        elif not counts_entries:
            continue
        index += 1
