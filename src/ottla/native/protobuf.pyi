from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
#: Rows, nulls, bits of validity where there are nulls, numbers or offsets, and the bytes that offsets lead to.
Column: TypeAlias = tuple[int, int, bytes | None, bytes | None, bytes | None]

# The columns that a program makes of a binary array's rows (each behind the header, which it must have), and the
# numbers of 32 bits of the rows that are not sound, or have another header; these are null. ValueError for a program
# that is none, and for rows that are not within their buffers.
def read(
    nodes: Buffer,
    tables: Buffer,
    columns: int,
    offsets: Buffer,
    data: Buffer,
    validity: Buffer | None,
    first: int,
    count: int,
    header: Buffer,
    /,
) -> tuple[list[Column], bytes]: ...
