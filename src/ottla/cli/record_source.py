"""The records that `produce` sends, out of standard input: by lines, or by a format of their own.

Both give what is there already in one list, with the bytes that it took. What is not as it was said to be ends it with
a LineFault, behind the records before it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from ottla.cli.input_format import InputFormat
from ottla.cli.lines import LineFault, Parse, ParsedRecord
from ottla.cli.standard_input import LINE_BYTES_MAX, PIECE_BYTES, chunks, pieces

Records = AsyncIterator[tuple[list[ParsedRecord], int]]
#: Of a record of many pieces its beginning is not looked at again with each of them.
_LARGE_BYTES = 1 << 20


async def of_lines(parse: Parse, delimiter: bytes) -> Records:
    async for lines in pieces(delimiter):
        records: list[ParsedRecord] = []
        fault: LineFault | None = None
        size = 0
        for line in lines:
            try:
                records.append(parse(line))
            except LineFault as error:
                fault = error
                break
            size += len(line) + len(delimiter)
        yield records, size
        if fault is not None:
            raise fault


async def of_format(format_: InputFormat) -> Records:
    held: list[bytes] = []
    size = looked_at = 0
    async for piece in chunks():
        held.append(piece)
        size += len(piece)
        # A full piece has others behind it, most likely.
        if len(piece) == PIECE_BYTES and _LARGE_BYTES < size < looked_at * 5 // 4:
            continue
        data = b"".join(held)
        records, position, fault = _taken(format_, data, is_last=False)
        if records:
            yield records, position
        if fault is not None:
            raise fault
        held = [data[position:]]
        size = looked_at = len(held[0])
        if size > LINE_BYTES_MAX:
            raise LineFault(f"it has more than {LINE_BYTES_MAX} bytes; perhaps the format's end never comes")
    records, position, fault = _taken(format_, b"".join(held), is_last=True)
    yield records, position
    if fault is not None:
        raise fault


def _taken(format_: InputFormat, data: bytes, *, is_last: bool) -> tuple[list[ParsedRecord], int, LineFault | None]:
    """All records that are whole, where they end, and what is wrong behind them."""
    records: list[ParsedRecord] = []
    position = 0
    while position < len(data):
        try:
            found = format_.next_record(data, position, is_last=is_last)
        except LineFault as fault:
            return records, position, fault
        if found is None:
            break
        record, position = found
        records.append(record)
    return records, position, None
