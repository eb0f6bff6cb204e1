"""Numbers of the wire, and what stands at a fixed place in every frame, for code that reads a few fields by itself.

    request   int32 length | int16 key | int16 version | int32 correlation id | what the version decides
    response  int32 length | int32 correlation id | what the version decides

`header.py` has the headers whole. What is named `..._AT` counts from the frame's length on.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

INT16: Final = Struct(">h")
INT32: Final = Struct(">i")
INT64: Final = Struct(">q")

#: Of a frame's length, which does not count them.
LENGTH_BYTES: Final = INT32.size
#: Key, version and correlation id: what a request has before its client id. No request is shorter.
REQUEST_FIELDS: Final = Struct(">hhi")
REQUEST_FIELDS_BYTES: Final = REQUEST_FIELDS.size
#: The same with the frame's length before it.
REQUEST_HEAD: Final = Struct(">ihhi")
REQUEST_HEAD_BYTES: Final = REQUEST_HEAD.size
#: Where a response's correlation id stands, and what follows it.
CORRELATION_AT: Final = LENGTH_BYTES
CORRELATION_END: Final = CORRELATION_AT + INT32.size
