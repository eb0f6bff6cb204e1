"""The record of a transactional id that is at rest: nearly all of a hundred thousand that a coordinator loads."""

from __future__ import annotations

from struct import Struct
from typing import Final

#: A value of version 1 without partitions (null or empty), with the producer's former id as its only tag: version,
#: producer's id and epoch, time-out, state, partitions, both times; how many tags, its number and size, the former id.
AT_REST: Final = Struct(">hqhibBqqBBBq")
#: The same with the version of the client's transactions as a second tag.
AT_REST_NEW: Final = Struct(">hqhibBqqBBBqBBh")
