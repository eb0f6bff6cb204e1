"""A registry in a folder of files."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ottla.formats.errors import BadSpec, RegistryError, RegistryUnreachable, SchemaNotFound
from ottla.formats.registry.folder import FolderRegistry
from ottla.formats.registry.interface import AVRO, PROTOBUF, SCHEMA_BYTES_MAX, Reference, WrittenSchema

LONG = WrittenSchema(kind=AVRO, text='{"type": "long"}')


def test_what_people_put_there(tmp_path: Path) -> None:
    (tmp_path / "orders-value").mkdir()
    (tmp_path / "orders-value" / "1.17.avsc").write_text('"int"')
    (tmp_path / "orders-value" / "2.23.avsc").write_text('"long"')
    (tmp_path / "orders-value" / "10.24.proto").write_text('syntax = "proto3";')
    (tmp_path / "orders-value" / "README").write_text("hello")
    (tmp_path / "notes.txt").write_text("hello")
    ours = FolderRegistry(str(tmp_path))
    assert ours.by_id(23).text == '"long"'
    assert ours.version("orders-value", 1).schema_id == 17
    latest = ours.latest("orders-value")
    assert (latest.version, latest.schema_id, latest.schema.kind) == (10, 24, PROTOBUF)
    with pytest.raises(SchemaNotFound, match="no schema with id 5"):
        ours.by_id(5)
    with pytest.raises(SchemaNotFound, match="no version 3 of subject 'orders-value'"):
        ours.version("orders-value", 3)
    with pytest.raises(SchemaNotFound, match="no subject 'clicks-value'"):
        ours.latest("clicks-value")


def test_register_and_find(tmp_path: Path) -> None:
    ours = FolderRegistry(str(tmp_path / "schemas"))
    assert ours.register("a/b", LONG) == 1
    assert ours.register("a/b", WrittenSchema(kind=AVRO, text='{"type":\n"long"}')) == 1
    assert ours.register("../c", LONG) == 1  # the same schema has one id
    assert ours.register("..", WrittenSchema(kind=AVRO, text='"int"')) == 2
    assert ours.find("a/b", LONG) == 1
    assert sorted(os.listdir(tmp_path / "schemas")) == ["%2E.", "%2E.%2Fc", ".lock", "a%2Fb"]
    assert FolderRegistry(str(tmp_path / "schemas")).latest("..").schema.text == '"int"'
    with pytest.raises(SchemaNotFound, match="no version with this schema"):
        ours.find("a/b", WrittenSchema(kind=AVRO, text='"int"'))
    with pytest.raises(RegistryError, match="without references"):
        ours.register("x", WrittenSchema(kind=AVRO, text="1", references=(Reference(name="", subject="", version=1),)))


def test_a_default_of_true_is_another_schema_than_one_of_1(tmp_path: Path) -> None:
    text = '{{"type": "record", "name": "R", "fields": [{{"name": "x", "type": ["boolean", "int"], "default": {}}}]}}'
    ours = FolderRegistry(str(tmp_path))
    ids = [ours.register("r", WrittenSchema(kind=AVRO, text=text.format(one))) for one in ("true", "1", " true ")]
    assert ids == [1, 2, 1]


def test_two_folders_put_together(tmp_path: Path) -> None:
    """Each has counted its ids and versions by itself: as two branches of a repository have."""
    for name, text in (
        ("a/1.1.avsc", '"int"'),
        ("b/1.1.avsc", '"long"'),
        ("c/1.2.avsc", '"int"'),
        ("d/1.2.avsc", ' "int"'),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "a" / "1.9.avsc").write_text('"string"')
    ours = FolderRegistry(str(tmp_path))
    with pytest.raises(RegistryError, match=r"schema id 1 is two schemas: .*a/1\.1\.avsc and .*b/1\.1\.avsc"):
        ours.by_id(1)
    assert ours.by_id(2).text == '"int"'
    assert ours.latest("a").schema_id == 9


def test_several_register_at_once(tmp_path: Path) -> None:
    """Each with a registry of its own, as processes have."""
    schemas = [WrittenSchema(kind=AVRO, text=f'{{"type": "fixed", "name": "f", "size": {n}}}') for n in range(8)]
    found: dict[str, set[int]] = {schema.text: set() for schema in schemas}

    def register() -> None:
        ours = FolderRegistry(str(tmp_path))
        for schema in schemas:
            found[schema.text].add(ours.register("s", schema))

    threads = [threading.Thread(target=register) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(next(iter(ids)) for ids in found.values() if len(ids) == 1) == list(range(1, 9))
    assert FolderRegistry(str(tmp_path)).latest("s").version == 8


def test_folders_and_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(RegistryUnreachable, match=r"cannot be read: .*nowhere: No such file"):
        FolderRegistry(str(tmp_path / "nowhere")).by_id(1)
    with pytest.raises(RegistryUnreachable, match="nowhere"):
        FolderRegistry(str(tmp_path / "nowhere")).latest("s")
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "1.1.avsc").write_bytes(b"\xff")
    (tmp_path / "s" / "2.2.avsc").write_bytes(b" " * (SCHEMA_BYTES_MAX + 1))
    (tmp_path / "s" / "3.9999999999.avsc").write_bytes(b"")
    ours = FolderRegistry(str(tmp_path))
    with pytest.raises(RegistryError, match="no text in UTF-8"):
        ours.by_id(1)
    with pytest.raises(RegistryError, match="is over"):
        ours.by_id(2)
    with pytest.raises(BadSpec, match="cannot be named after"):
        ours.latest("x" * 256)
