"""What writes ask of the tree: from fields of the wire to operations of the store."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.coordination.errors import CoordinationError, InvalidPath, NoNode, OperationUnknown
from ottla.coordination.interface import Check, Create, Delete, Op, SetData
from ottla.coordination.paths import is_path
from ottla.coordination.served.access import check_access
from ottla.coordination.served.limits import PATH_CHARACTERS_MAX
from ottla.coordination.zookeeper.codes import CreateFlags, OpCode
from ottla.coordination.zookeeper.messages import (
    CheckRequest,
    CreateRequest,
    CreateTtlRequest,
    DeleteRequest,
    MultiRequest,
    SetDataRequest,
)
from ottla.steps import Steps, pieces

#: Paths that are looked at in one step.
_PATHS_A_STEP: Final = 16
#: Operations of a multi that are looked at in one step.
_OPS_A_STEP: Final = 32

_FLAGS: Final = {
    CreateFlags.PERSISTENT: (False, False),
    CreateFlags.EPHEMERAL: (True, False),
    CreateFlags.SEQUENTIAL: (False, True),
    CreateFlags.EPHEMERAL_SEQUENTIAL: (True, True),
}


class UnreadableRequest(CoordinationError):
    """These bytes are not the request that they say they are."""


#: Those of containers and nodes with a time to live too.
_KNOWN_FLAGS: Final = frozenset({*_FLAGS, CreateFlags.CONTAINER, CreateFlags.TTL, CreateFlags.SEQUENTIAL_TTL})

WriteFields = CreateRequest | CreateTtlRequest | DeleteRequest | SetDataRequest | CheckRequest


def op_of(fields: WriteFields) -> Op:
    """Raises what refuses the operation whatever is in the tree."""
    _check_length(fields.path)
    if isinstance(fields, CreateRequest):
        return _create(fields)
    if isinstance(fields, DeleteRequest):
        if "/" not in fields.path or "\0" in fields.path or fields.path == "/":
            raise InvalidPath(f"{fields.path!r} cannot be deleted")
        if not is_path(fields.path):
            raise NoNode(fields.path)
        return Delete(fields.path, fields.version)
    if isinstance(fields, SetDataRequest):
        return SetData(fields.path, fields.data, fields.version)
    if isinstance(fields, CheckRequest):
        return Check(fields.path, fields.version)
    raise OperationUnknown("nodes with a time to live are not known here")


def _create(fields: CreateRequest) -> Create:
    flags = fields.flags
    if flags not in _KNOWN_FLAGS:
        raise InvalidPath(f"{flags} is no kind of node")
    if flags not in _FLAGS:
        raise OperationUnknown("containers and nodes with a time to live are not known here")
    if "/" not in fields.path or "\0" in fields.path:
        raise InvalidPath(f"{fields.path!r} is not the path of a znode")
    check_access(fields.acl)
    ephemeral, sequential = _FLAGS[CreateFlags(flags)]
    return Create(fields.path, fields.data, ephemeral, sequential)


def _check_length(path: str) -> None:
    if len(path) > PATH_CHARACTERS_MAX:
        raise InvalidPath(f"a path of {len(path)} characters: {PATH_CHARACTERS_MAX} are the limit")


class MultiOps(NamedTuple):
    #: What each operation is on the wire.
    codes: list[OpCode]
    #: As far as the first that is refused; there stands one that no tree takes.
    ops: list[Op]
    #: Why, where there is one.
    refusal: CoordinationError | None


def ops_of(request: MultiRequest) -> Steps[MultiOps]:
    """Raises UnreadableRequest."""
    codes: list[OpCode] = []
    ops: list[Op] = []
    refusal: CoordinationError | None = None
    for some in pieces(request.ops, _OPS_A_STEP):
        for code, fields in some:
            codes.append(code)
            if isinstance(fields, CreateRequest) and fields.flags not in _KNOWN_FLAGS:
                # As ZooKeeper does, which makes its own operations of a multi while it reads it.
                raise UnreadableRequest(f"{fields.flags} is no kind of node")
            if refusal is not None:
                continue
            try:
                ops.append(op_of(fields))
            except CoordinationError as error:
                # What comes before it may fail in the tree, and is then what the client is answered for.
                ops.append(Check(""))
                refusal = error
        yield
    return MultiOps(codes, ops, refusal)
