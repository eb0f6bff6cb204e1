"""ZooKeeper's messages: read as they were written, in both directions, and no bytes do more than raise JuteFault."""

from __future__ import annotations

import random
import struct
import tracemalloc
from typing import Any

import pytest

from ottla.coordination import errors
from ottla.coordination.interface import CreatedNode, Stat
from ottla.coordination.zookeeper.codes import CreateFlags, KeeperError, OpCode, code_of, error_of
from ottla.coordination.zookeeper.frames import (
    ANSWERS,
    REQUESTS,
    decode_answer,
    decode_answer_header,
    decode_connect_answer,
    decode_connect_request,
    decode_event,
    decode_request,
    encode_answer,
    encode_connect,
    encode_error,
    encode_event,
    encode_request,
)
from ottla.coordination.zookeeper.jute import JuteFault, JuteReader, JuteWriter
from ottla.coordination.zookeeper.messages import (
    OPEN_TO_ALL,
    AclAnswer,
    AclEntry,
    AuthRequest,
    CheckRequest,
    Children2Answer,
    ChildrenAnswer,
    ConnectAnswer,
    ConnectRequest,
    CreateRequest,
    CreateTtlRequest,
    DataAnswer,
    DeleteRequest,
    EndWithConnectionRequest,
    MultiAnswer,
    MultiOp,
    MultiRequest,
    MultiResult,
    NodeEvent,
    NodeRequest,
    PathAnswer,
    PathRequest,
    SetAclRequest,
    SetDataRequest,
    SetWatchesRequest,
    failed_multi,
)

STAT = Stat(1, 2**62, 3, 4, 5, 6, 7, -(2**63), 9, 10, 11)
CREATE = CreateRequest("/größe", b"\0data", OPEN_TO_ALL, CreateFlags.EPHEMERAL_SEQUENTIAL)
OPS = [
    MultiOp(OpCode.CREATE2, CREATE),
    MultiOp(OpCode.CREATE, CREATE),
    MultiOp(OpCode.DELETE, DeleteRequest("/a", -1)),
    MultiOp(OpCode.SET_DATA, SetDataRequest("/a", b"", 7)),
    MultiOp(OpCode.CHECK, CheckRequest("/a", 2**31 - 1)),
]
RESULTS = [
    MultiResult(OpCode.CREATE2, 0, CreatedNode("/größe0000000001", STAT)),
    MultiResult(OpCode.CREATE, 0, PathAnswer("/a")),
    MultiResult(OpCode.DELETE, 0),
    MultiResult(OpCode.SET_DATA, 0, STAT),
    MultiResult(OpCode.CHECK, 0),
]
REQUEST_SAMPLES: list[tuple[OpCode, Any]] = [
    (OpCode.CREATE, CREATE),
    (OpCode.CREATE2, CREATE),
    (OpCode.CREATE_CONTAINER, CREATE),
    (OpCode.CREATE_TTL, CreateTtlRequest("/a", b"", OPEN_TO_ALL, CreateFlags.TTL, 2**40)),
    (OpCode.DELETE, DeleteRequest("/a", 3)),
    (OpCode.EXISTS, NodeRequest("/a", True)),
    (OpCode.GET_DATA, NodeRequest("/a", False)),
    (OpCode.GET_CHILDREN, NodeRequest("/", True)),
    (OpCode.GET_CHILDREN2, NodeRequest("/", False)),
    (OpCode.SET_DATA, SetDataRequest("/a", bytes(1000), -1)),
    (OpCode.CHECK, CheckRequest("/a", 0)),
    (OpCode.MULTI, MultiRequest(OPS)),
    (OpCode.MULTI, MultiRequest([])),
    (OpCode.SYNC, PathRequest("/")),
    (OpCode.GET_ACL, PathRequest("/a")),
    (OpCode.SET_ACL, SetAclRequest("/a", (AclEntry(1, "digest", "me:it"), AclEntry(31, "world", "anyone")), -1)),
    (OpCode.AUTH, AuthRequest(0, "digest", b"me:secret")),
    (OpCode.SET_WATCHES, SetWatchesRequest(5, ["/a", "/b"], ["/c"], [])),
    (OpCode.SET_WATCHES2, SetWatchesRequest(5, ["/a"], [], ["/c"], ["/d"], ["/e"])),
    (OpCode.END_WITH_CONNECTION, EndWithConnectionRequest(250)),
    (OpCode.PING, None),
    (OpCode.CLOSE_SESSION, None),
]
ANSWER_SAMPLES: list[tuple[OpCode, Any]] = [
    (OpCode.CREATE, PathAnswer("/a0000000001")),
    (OpCode.CREATE2, CreatedNode("/a", STAT)),
    (OpCode.CREATE_CONTAINER, CreatedNode("/a", STAT)),
    (OpCode.CREATE_TTL, CreatedNode("/a", STAT)),
    (OpCode.DELETE, None),
    (OpCode.EXISTS, STAT),
    (OpCode.GET_DATA, DataAnswer(b"data", STAT)),
    (OpCode.SET_DATA, STAT),
    (OpCode.GET_CHILDREN, ChildrenAnswer(["a", "日本"])),
    (OpCode.GET_CHILDREN2, Children2Answer([], STAT)),
    (OpCode.CHECK, None),
    (OpCode.MULTI, MultiAnswer(RESULTS)),
    (OpCode.MULTI, failed_multi(3, 1, KeeperError.NO_NODE)),
    (OpCode.SYNC, PathAnswer("/")),
    (OpCode.GET_ACL, AclAnswer(OPEN_TO_ALL, STAT)),
    (OpCode.SET_ACL, STAT),
    (OpCode.AUTH, None),
    (OpCode.SET_WATCHES, None),
    (OpCode.SET_WATCHES2, None),
    (OpCode.END_WITH_CONNECTION, None),
    (OpCode.PING, None),
    (OpCode.CLOSE_SESSION, None),
]
CONNECTS = [
    ConnectRequest(0, 2**40, 6000, 0, bytes(16), True),
    ConnectRequest(0, 0, 6000, -5, b"password", None),
    ConnectAnswer(0, 6000, 2**62, bytes(16), False),
    ConnectAnswer(0, 0, 0, bytes(16), None),
]


def unframed(frame: bytes) -> bytes:
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    return frame[4:]


@pytest.mark.parametrize(("op", "request_"), REQUEST_SAMPLES)
def test_requests_are_read_as_they_were_written(op: OpCode, request_: Any) -> None:
    header, found = decode_request(memoryview(unframed(encode_request(77, op, request_))))
    assert (header.xid, header.op) == (77, op)
    assert found == request_


@pytest.mark.parametrize(("op", "answer"), ANSWER_SAMPLES)
def test_answers_are_read_as_they_were_written(op: OpCode, answer: Any) -> None:
    header, rest = decode_answer_header(unframed(encode_answer(-8, 2**50, op, answer)))
    assert (header.xid, header.zxid, header.error) == (-8, 2**50, 0)
    assert decode_answer(op, rest) == answer
    assert rest.remaining == 0


@pytest.mark.parametrize("message", CONNECTS)
def test_handshakes_with_and_without_read_only(message: ConnectRequest | ConnectAnswer) -> None:
    decode = decode_connect_request if isinstance(message, ConnectRequest) else decode_connect_answer
    assert decode(unframed(encode_connect(message))) == message  # type: ignore[operator]


def test_every_operation_has_a_sample() -> None:
    assert {op for op, _ in REQUEST_SAMPLES} == set(REQUESTS)
    assert {op for op, _ in ANSWER_SAMPLES} == set(ANSWERS) == set(REQUESTS)


def test_errors_and_events() -> None:
    header, rest = decode_answer_header(unframed(encode_error(5, 9, KeeperError.NO_NODE)))
    assert (header, rest.remaining) == ((5, 9, -101), 0)
    header, rest = decode_answer_header(unframed(encode_event(NodeEvent(4, 3, "/größe"))))
    assert (header.xid, header.zxid, header.error) == (-1, -1, 0)
    assert decode_event(rest) == NodeEvent(4, 3, "/größe")


def test_an_operation_that_is_not_known_has_no_fields() -> None:
    header, request = decode_request(struct.pack(">ii", 1, OpCode.RECONFIG) + b"whatever")
    assert (header.op, request) == (OpCode.RECONFIG, None)
    assert decode_request(struct.pack(">ii", 1, 31_337))[1] is None


def test_null_is_empty_and_later_fields_are_left_alone() -> None:
    null = struct.pack(">i", -1)
    _, create = decode_request(struct.pack(">ii", 1, OpCode.CREATE) + null * 3 + struct.pack(">i", 1) + b"more")
    assert create == CreateRequest("", b"", (), 1)
    stat = encode_answer(1, 1, OpCode.SET_DATA, STAT)[20:]
    _, rest = decode_answer_header(struct.pack(">iqi", 1, 1, 0) + null + stat)
    assert decode_answer(OpCode.GET_DATA, rest) == DataAnswer(b"", STAT)


def test_a_message_that_is_cut_anywhere_is_a_fault() -> None:
    for op, request in REQUEST_SAMPLES:
        whole = unframed(encode_request(1, op, request))
        for end in range(len(whole) if len(whole) < 1000 else 30):
            with pytest.raises(JuteFault):
                decode_request(whole[:end])
    for op, answer in ANSWER_SAMPLES:
        whole = unframed(encode_answer(1, 1, op, answer))
        for end in range(len(whole)):
            with pytest.raises(JuteFault):
                decode_answer(op, decode_answer_header(whole[:end])[1])


@pytest.mark.parametrize("count", [2**31 - 1, 2**28, -2, -(2**31)])
def test_lengths_and_counts_that_lie_cost_no_memory(count: int) -> None:
    lie = struct.pack(">i", count)
    tracemalloc.start()
    try:
        for op in (OpCode.EXISTS, OpCode.CREATE, OpCode.AUTH, OpCode.SET_WATCHES):
            with pytest.raises(JuteFault):
                decode_request(struct.pack(">ii", 1, op) + (bytes(8) if op == OpCode.SET_WATCHES else b"") + lie * 4)
        for op in (OpCode.GET_DATA, OpCode.GET_CHILDREN, OpCode.GET_ACL, OpCode.CREATE2):
            with pytest.raises(JuteFault):
                decode_answer(op, JuteReader(lie * 40))
        # More elements than there can be in what is left, though not more than there are bytes.
        with pytest.raises(JuteFault, match="vector"):
            decode_answer(OpCode.GET_CHILDREN, JuteReader(struct.pack(">i", 1000) + bytes(3999)))
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_any_bytes_raise_nothing_but_jute_faults() -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    frames = [unframed(encode_request(1, op, request)) for op, request in REQUEST_SAMPLES]
    frames += [unframed(encode_answer(1, 1, op, answer)) for op, answer in ANSWER_SAMPLES]
    frames += [unframed(encode_connect(connect)) for connect in CONNECTS]
    for _ in range(4000):
        if chance.random() < 0.3:
            frame = bytearray(chance.randbytes(chance.randrange(200)))
        else:
            frame = bytearray(chance.choice(frames)[:400])
            for _ in range(chance.randrange(1, 5)):
                if frame:
                    frame[chance.randrange(len(frame))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        read_by_all(bytes(frame), seed)


def read_by_all(frame: bytes, seed: int) -> None:
    def read_answers() -> None:
        for op in ANSWERS:
            try:
                decode_answer(op, decode_answer_header(frame)[1])
            except JuteFault:
                continue

    for read in (
        lambda: decode_request(frame),
        lambda: decode_connect_request(frame),
        lambda: decode_connect_answer(frame),
        lambda: decode_event(decode_answer_header(frame)[1]),
        read_answers,
    ):
        try:
            read()
        except JuteFault:
            continue
        except Exception as error:
            pytest.fail(f"seed {seed}: {frame.hex()}: {error!r}")


def test_a_writer_counts_what_it_has() -> None:
    writer = JuteWriter()
    writer.text("größe")
    assert len(writer) == 11
    assert writer.frame() == struct.pack(">ii", 11, 7) + "größe".encode()
    assert writer.body() == writer.frame()[4:]


def test_errors_go_there_and_back() -> None:
    for error in (
        errors.NoNode("/a"),
        errors.NodeExists("/a"),
        errors.BadVersion("/a", 3, -1),
        errors.NotEmpty("/a"),
        errors.NoChildrenForEphemerals("/a"),
        errors.InvalidPath("no"),
        errors.NotAuthorized("/a"),
        errors.InvalidAccessList("no"),
        errors.AuthenticationFailed("no"),
        errors.OperationUnknown("no"),
        errors.WriteRefused("no"),
        errors.SessionExpired("no"),
        errors.ConnectionLoss("no"),
    ):
        again = error_of(code_of(error), "/a", 3)
        assert type(again) is type(error)
    assert code_of(errors.MultiFailed(3, errors.NoNode("/a"))) is KeeperError.NO_NODE
    assert code_of(errors.CoordinationError("whatever")) is KeeperError.SYSTEM_ERROR


def test_a_code_that_does_not_say_that_nothing_was_done_means_that_nobody_knows() -> None:
    for code in (KeeperError.SYSTEM_ERROR, KeeperError.OPERATION_TIMEOUT, KeeperError.SESSION_MOVED, -9999):
        assert isinstance(error_of(code, "/a"), errors.ConnectionLoss)


def test_kazoo_writes_the_same_bytes_and_reads_ours() -> None:
    kazoo = pytest.importorskip("kazoo.protocol.serialization", reason="kazoo is not installed")
    acl = kazoo.ACL(31, kazoo.Id("world", "anyone"))
    theirs = {
        OpCode.CREATE2: kazoo.Create2(CREATE.path, CREATE.data, [acl], int(CREATE.flags)),
        OpCode.DELETE: kazoo.Delete("/a", 3),
        OpCode.EXISTS: kazoo.Exists("/a", True),
        OpCode.GET_DATA: kazoo.GetData("/a", None),
        OpCode.GET_CHILDREN2: kazoo.GetChildren2("/", None),
        OpCode.SET_DATA: kazoo.SetData("/a", bytes(1000), -1),
        OpCode.SYNC: kazoo.Sync("/"),
        OpCode.GET_ACL: kazoo.GetACL("/a"),
        OpCode.AUTH: kazoo.Auth(0, "digest", "me:secret"),
    }
    for op, request in REQUEST_SAMPLES:
        if op in theirs:
            assert encode_request(77, op, request)[12:] == bytes(theirs[op].serialize()), op
    multi = kazoo.Transaction(
        [
            kazoo.Create(CREATE.path, CREATE.data, [acl], int(CREATE.flags)),
            kazoo.Delete("/a", -1),
            kazoo.SetData("/a", b"", 7),
            kazoo.CheckVersion("/a", 2**31 - 1),
        ]
    )
    assert encode_request(1, OpCode.MULTI, MultiRequest(OPS[1:]))[12:] == bytes(multi.serialize())
    assert encode_connect(CONNECTS[0])[4:] == bytes(kazoo.Connect(0, 2**40, 6000, 0, bytes(16), True).serialize())

    def body(op: OpCode) -> bytes:
        return next(encode_answer(1, 1, found, answer)[20:] for found, answer in ANSWER_SAMPLES if found == op)

    assert kazoo.GetData.deserialize(body(OpCode.GET_DATA), 0) == (b"data", STAT)
    assert kazoo.GetChildren2.deserialize(body(OpCode.GET_CHILDREN2), 0) == ([], STAT)
    assert kazoo.Create2.deserialize(body(OpCode.CREATE2), 0) == ("/a", STAT)
    assert kazoo.GetACL.deserialize(body(OpCode.GET_ACL), 0) == ([acl], STAT)
    assert kazoo.Connect.deserialize(encode_connect(CONNECTS[2])[4:], 0)[0].session_id == 2**62
    results = encode_answer(1, 1, OpCode.MULTI, MultiAnswer(RESULTS[1:]))[20:]
    assert kazoo.Transaction.deserialize(results, 0) == ["/a", True, STAT, True]
    failed = encode_answer(1, 1, OpCode.MULTI, failed_multi(3, 1, KeeperError.NO_NODE))[20:]
    kinds = [type(error).__name__ for error in kazoo.Transaction.deserialize(failed, 0)]
    assert kinds == ["RolledBackError", "NoNodeError", "RuntimeInconsistency"]
