"""Whose directory is this? `meta.properties` answers, so that no broker writes into another one's logs.

A directory without the file is new and gets one. A directory of another broker or cluster is refused: it was mounted in
the wrong place, or the broker was pointed at the wrong coordination service.
"""

from __future__ import annotations

import os.path
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ottla.model import topic_id_text
from ottla.ports.disk import Disk
from ottla.ports.entropy import Entropy
from ottla.storage.directory_errors import WrongIdentity
from ottla.storage.formats import meta_properties
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.meta_properties import MetaProperties


def stored_identities(disk: Disk, paths: Sequence[str]) -> dict[str, MetaProperties]:
    """What the directories say, for a broker that has yet to learn its ids. What cannot be read is left out."""
    found: dict[str, MetaProperties] = {}
    for path in paths:
        try:
            meta = meta_properties.read(disk, os.path.join(path, meta_properties.FILE_NAME))
        except (FormatError, OSError):
            continue
        if meta is not None:
            found[path] = meta
    return found


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
        raw = bytearray(entropy.token(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        if not topic_id_text(bytes(raw)).startswith("-"):
            return bytes(raw)
