"""Whose directory is this? `meta.properties` answers, so that no broker writes into another one's logs.

A directory without the file is new and gets one, of the broker that the others name. Where none names a broker and
there are partitions all the same, the file was lost, and the start is refused (`broker/identity.py`): under a new id no
partition would have its leader. A directory of another broker or cluster is refused too: it was mounted in the wrong
place, or the broker was pointed at the wrong coordination service.
"""

from __future__ import annotations

import os.path
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ottla.model import random_uuid, topic_id_text
from ottla.ports.disk import Disk
from ottla.ports.entropy import Entropy
from ottla.storage.directories.errors import WrongIdentity
from ottla.storage.formats import meta_properties
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.meta_properties import MetaProperties
from ottla.storage.formats.names import FolderKind, parse_folder


class StoredIdentities(NamedTuple):
    """What the directories say, for a broker that has yet to learn its ids."""

    #: By directory; those that have a file which can be read.
    found: dict[str, MetaProperties]
    #: Directories that do not say whose they are: a sentence about their file for each.
    nameless: dict[str, str]

    @property
    def cluster_id(self) -> str | None:
        return next((meta.cluster_id for meta in self.found.values() if meta.cluster_id is not None), None)

    @property
    def broker_id(self) -> int | None:
        return next((meta.broker_id for meta in self.found.values() if meta.broker_id is not None), None)


def stored_identities(disk: Disk, paths: Sequence[str]) -> StoredIdentities:
    stored = StoredIdentities({}, {})
    for path in paths:
        file = os.path.join(path, meta_properties.FILE_NAME)
        try:
            meta = meta_properties.read(disk, file)
        except FormatError as error:
            stored.nameless[path] = str(error)
        except OSError as error:
            stored.nameless[path] = f"{file} cannot be read ({error.strerror or error})"
        else:
            if meta is not None:
                stored.found[path] = meta
            if meta is None:
                stored.nameless[path] = f"{file} is not there"
            elif meta.broker_id is None:
                stored.nameless[path] = f"{file} names no broker"
    return stored


def has_partitions(disk: Disk, path: str) -> bool:
    """Whether anybody has used the directory, by its folders' names; False where it cannot be listed."""
    try:
        return any(_is_partition(disk, path, name) for name in disk.names(path))
    except OSError:
        return False


def _is_partition(disk: Disk, path: str, name: str) -> bool:
    try:
        return parse_folder(name).kind is FolderKind.CURRENT and disk.is_directory(os.path.join(path, name))
    except FormatError:
        return False


def claim(disk: Disk, path: str, broker_id: int, cluster_id: str, entropy: Entropy) -> bytes:
    """Checks or writes the directory's `meta.properties` and returns its directory id.

    Raises WrongIdentity where it belongs to somebody else, FormatError or OSError where that cannot be known.
    """
    file = os.path.join(path, meta_properties.FILE_NAME)
    stored = meta_properties.read(disk, file)
    meta = stored or MetaProperties(version=0)
    check_identity(path, meta, broker_id, cluster_id)
    if meta.cluster_id is None:
        meta = replace(meta, cluster_id=cluster_id)
    if meta.broker_id is None:
        meta = replace(meta, broker_id=broker_id)
    if meta.directory_id is None:
        meta = replace(meta, directory_id=new_directory_id(entropy))
    assert meta.directory_id is not None
    if meta != stored:
        meta_properties.write(disk, file, meta)
    return meta.directory_id


def check_identity(path: str, meta: MetaProperties, broker_id: int, cluster_id: str | None) -> None:
    """Raises WrongIdentity where a directory is of another broker or cluster."""
    file = os.path.join(path, meta_properties.FILE_NAME)
    if meta.cluster_id not in {None, cluster_id}:
        raise WrongIdentity(
            f"Invalid cluster.id in {file}: expected {cluster_id}, but read {meta.cluster_id}. "
            "Give this broker a log directory of its own cluster, or connect it to the directory's cluster."
        )
    if meta.broker_id not in {None, broker_id}:
        key = "broker.id" if meta.version == 0 else "node.id"
        raise WrongIdentity(
            f"Invalid {key} in {file}: expected {broker_id}, but read {meta.broker_id}. "
            f"Start this broker with {key}={meta.broker_id}, or give it a log directory of its own."
        )


def check_distinct(directory_ids: Mapping[str, bytes]) -> None:
    """A copied directory carries the id of its original: refuse both, for one of them is stale."""
    seen: dict[bytes, str] = {}
    for path, directory_id in directory_ids.items():
        if directory_id in seen:
            raise WrongIdentity(
                f"The log directories {seen[directory_id]} and {path} have the same directory.id "
                f"{topic_id_text(directory_id)}: one is a copy of the other. Remove the copy from log.dirs."
            )
        seen[directory_id] = path


def new_directory_id(entropy: Entropy) -> bytes:
    """A random UUID (version 4) whose text does not begin with a dash, which command lines take for an option."""
    while True:
        found = random_uuid(entropy.token(16))
        if not topic_id_text(found).startswith("-"):
            return found
