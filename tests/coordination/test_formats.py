"""Journal and snapshot as bytes: round trips, and that no bytes whatever get past them or raise anything else."""

from __future__ import annotations

from contextlib import suppress

import hypothesis.strategies as st
import pytest
from crc32c import crc32c
from hypothesis import given
from tests.searches import examples

from ottla.coordination import Create, Delete, SessionInfo, SetData
from ottla.coordination.codec import CodecFault, decode_txn, encoding_txn
from ottla.coordination.interface import NO_DATA
from ottla.coordination.journal import (
    FILE_HEADER_SIZE,
    FRAME_MAGIC,
    JournalFault,
    decode_frame,
    encode_frame,
    encode_header,
    read_contents,
)
from ottla.coordination.snapshot import SnapshotFault, decode_snapshot, encode_snapshot
from ottla.coordination.tree import CloseSession, OpenSession, TreeOp, ZnodeTree
from ottla.steps import at_once

OPS: list[TreeOp] = [
    OpenSession(SessionInfo(5, b"secret", 6000)),
    Create("/größe", b"\0\xff"),
    Create("/größe/e", b"", ephemeral=True),
    SetData("/größe", b"data"),
    Create("/none", NO_DATA),
    SetData("/größe", NO_DATA),
    Delete("/größe/e"),
    CloseSession(5),
]


def applied(tree: ZnodeTree, ops: list[TreeOp]) -> bytes:
    outcome = tree.apply(5, ops, tree.zxid + 1, 1_700_000_000_000)
    return at_once(encoding_txn(1_700_000_000_000, 5, ops, outcome.results))


def journal(frames: int) -> bytes:
    tree = ZnodeTree()
    content = encode_header(1)
    for number in range(frames):
        first = tree.zxid + 1
        txns = [applied(tree, OPS) if number == 0 else applied(tree, [Create(f"/n{number}", b"x" * number)])]
        txns.append(applied(tree, [SetData("/größe", b"%d" % number)]))
        content += encode_frame(first, txns)
    return content


def small_tree() -> ZnodeTree:
    tree = ZnodeTree()
    applied(tree, OPS[:6])
    for number in range(5):
        applied(tree, [Create(f"/n{number}", b"x" * number), Create(f"/n{number}/child")])
    return tree


def test_a_transaction_reads_as_it_was_written() -> None:
    encoded = applied(ZnodeTree(), OPS)
    txn, end = decode_txn(b"front" + encoded + b"behind", 5)
    assert end == 5 + len(encoded)
    assert txn.ops == OPS
    assert [op.data is NO_DATA for op in txn.ops[1:6] if isinstance(op, Create | SetData)] == [False] * 3 + [True] * 2
    assert (txn.time_ms, txn.session_id) == (1_700_000_000_000, 5)


def test_frames_read_as_they_were_written() -> None:
    content = journal(4)
    found = read_contents(content, 1)
    assert found.fault is None
    assert found.good_size == len(content)
    assert [(frame.first_zxid, len(frame.txns)) for frame in found.frames] == [(1, 2), (3, 2), (5, 2), (7, 2)]


def test_an_empty_journal_is_whole() -> None:
    assert read_contents(encode_header(9), 9) == ([], FILE_HEADER_SIZE, None, False)


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_cut_tail_is_torn_and_not_damage(cut: int) -> None:
    content, whole = journal(4), journal(3)
    found = read_contents(content[: max(len(content) - cut, len(whole) + 1)], 1)
    assert found.good_size == len(whole)
    assert found.fault
    assert not found.damaged_below_tail


def test_a_header_that_was_cut_is_torn_and_one_that_is_wrong_before_frames_is_damage() -> None:
    header = encode_header(1)
    for size in range(FILE_HEADER_SIZE):
        found = read_contents(header[:size], 1)
        assert (found.good_size, found.damaged_below_tail) == (0, False)
    found = read_contents(bytes(FILE_HEADER_SIZE), 1)
    assert (found.good_size, found.damaged_below_tail) == (0, False)
    content = bytearray(journal(1))
    content[3] ^= 1
    assert read_contents(bytes(content), 1).damaged_below_tail
    assert read_contents(journal(1), 2).damaged_below_tail


def test_any_flipped_bit_is_found_and_below_the_last_frame_it_is_damage() -> None:
    content = journal(3)
    last = len(journal(2))
    for position in range(FILE_HEADER_SIZE, len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 1 << position % 8
        found = read_contents(bytes(flipped), 1)
        assert found.fault
        assert found.good_size <= position
        assert found.damaged_below_tail == (position < last)


@examples(300)
@given(st.binary(max_size=200))
def test_a_frame_of_any_bytes_raises_nothing_else(noise: bytes) -> None:
    for content in (noise, FRAME_MAGIC + noise, FRAME_MAGIC + sealed(noise)):
        try:
            decode_frame(content, 0)
        except JournalFault:
            continue
    read_contents(encode_header(1) + noise, 1)
    with suppress(CodecFault):
        decode_txn(noise, 0)


def sealed(body: bytes) -> bytes:
    """With a length and checksum that are right, so that what is inside gets looked at."""
    return len(body).to_bytes(4, "big") + crc32c(body).to_bytes(4, "big") + body


@examples(500)
@given(st.data())
def test_a_frame_with_changed_bytes_and_a_right_checksum_raises_nothing_else(draw: st.DataObject) -> None:
    body = bytearray(journal(1)[FILE_HEADER_SIZE + 12 :])
    for _ in range(draw.draw(st.integers(1, 3))):
        body[draw.draw(st.integers(0, len(body) - 1))] = draw.draw(st.integers(0, 255))
    del body[draw.draw(st.integers(0, len(body))) :]
    with suppress(JournalFault):
        decode_frame(FRAME_MAGIC + sealed(bytes(body)), 0)


def test_a_snapshot_knows_no_data_from_data_of_no_bytes() -> None:
    tree = small_tree()
    read = decode_snapshot(encode_snapshot(tree), tree.zxid)
    found = {path: node.data is NO_DATA for path, node in read.nodes.items() if not node.data}
    assert found == {path: path in ("/none", "/größe") for path in found}
    assert {"/", "/n0", "/none", "/größe"} <= set(found)


def test_a_snapshot_of_the_earlier_version_is_read() -> None:
    tree = small_tree()
    now = encode_snapshot(tree)
    body = now[12:20] + now[28:]  # without the last session's id
    read = decode_snapshot(b"OttlaZs1" + crc32c(body).to_bytes(4, "big") + body, tree.zxid)
    assert encode_snapshot(read)[28:] == now[28:]
    assert read.last_session_id == max(tree.sessions)


def test_a_snapshot_with_any_flipped_bit_or_cut_is_refused() -> None:
    tree = small_tree()
    content = encode_snapshot(tree)
    for position in range(len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 1 << position % 8
        with pytest.raises(SnapshotFault):
            decode_snapshot(bytes(flipped), tree.zxid)
        with pytest.raises(SnapshotFault):
            decode_snapshot(content[:position], tree.zxid)
    with pytest.raises(SnapshotFault, match="zxid"):
        decode_snapshot(content, tree.zxid + 1)


@examples(500)
@given(st.data())
def test_a_snapshot_with_changed_bytes_and_a_right_checksum_raises_nothing_else(draw: st.DataObject) -> None:
    tree = small_tree()
    content = bytearray(encode_snapshot(tree))
    for _ in range(draw.draw(st.integers(1, 3))):
        content[draw.draw(st.integers(12, len(content) - 1))] = draw.draw(st.integers(0, 255))
    del content[draw.draw(st.integers(12, len(content))) :]
    content[8:12] = crc32c(bytes(content[12:])).to_bytes(4, "big")
    with suppress(SnapshotFault):
        decode_snapshot(bytes(content), tree.zxid)


def test_the_bytes_of_a_journal_are_what_the_documentation_says() -> None:
    tree = ZnodeTree()
    txn = applied(tree, [Create("/a", b"xy")])
    body = bytes.fromhex(
        "0000000000000001"  # first zxid
        "00000001"  # transactions
        "0000018bcfe56800"  # time in ms
        "0000000000000005"  # session
        "00000001"  # operations
        "0000000d"  # bytes of them
        "01"  # create
        "00000002" + b"/a".hex() + "00000002" + b"xy".hex()
    )
    assert encode_frame(1, [txn]) == b"\xa7OZf" + sealed(body)
    header = b"OttlaZj1" + (7).to_bytes(8, "big")
    assert encode_header(7) == header + crc32c(header).to_bytes(4, "big")
