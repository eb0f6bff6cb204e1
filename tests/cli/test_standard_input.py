"""Lines out of standard input, however the pieces fall in which it comes."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from ottla.cli.faults import CommandFault
from ottla.cli.standard_input import LINE_BYTES_MAX, PIECE_BYTES, pieces
from tests.cli.conftest import piped


def lines_of(data: bytes, delimiter: bytes) -> list[bytes]:
    async def read() -> list[bytes]:
        return [line async for some in pieces(delimiter) for line in some]

    with piped(data):
        return asyncio.run(read())


@pytest.mark.parametrize("delimiter", [b"\n", b"ab", b"aa", b"--end--"])
@pytest.mark.parametrize("seed", range(5))
def test_lines_that_are_longer_than_a_piece_and_shorter(delimiter: bytes, seed: int) -> None:
    rng = Random(seed)
    lines = []
    for _ in range(rng.randint(1, 30)):
        size = rng.choice([0, 1, 7, PIECE_BYTES - len(delimiter), PIECE_BYTES - 1, PIECE_BYTES, 5 * PIECE_BYTES + 3])
        lines.append(rng.choices((b"a", b"b", b"-", b"x"), k=1)[0] * size)
    data = delimiter.join(lines) + rng.choice([b"", delimiter])
    whole = data.split(delimiter)
    assert lines_of(data, delimiter) == (whole if whole[-1] else whole[:-1])


def test_what_is_no_line_ends_it() -> None:
    with pytest.raises(CommandFault, match="a line has more than"):
        lines_of(bytes(LINE_BYTES_MAX + PIECE_BYTES), b"\n")
