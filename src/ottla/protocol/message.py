"""What all generated classes share: equality, a readable form, and the frame of `encode` and `decode`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from ottla.protocol.errors import DecodeError, EncodeError
from ottla.protocol.primitives import DECODE_FAULTS, ENCODE_FAULTS, Buffer
from ottla.steps import Steps

if TYPE_CHECKING:
    from ottla.protocol.stepping import DecodingAllowance


class Structure:
    """A group of fields: a message or a part of one. Equal when all fields are."""

    __slots__: tuple[str, ...] = ()
    __hash__ = None  # type: ignore[assignment]

    unknown_tags: Mapping[int, bytes]

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        fields = [f"{name}={getattr(self, name)!r}" for name in self.__slots__ if name != "unknown_tags"]
        if tags := getattr(self, "unknown_tags", None):
            fields.append(f"unknown_tags={tags!r}")
        return f"{self.__class__.__name__}({', '.join(fields)})"


class Message(Structure):
    """A request, a response or a datum that has versions of its own."""

    __slots__ = ()

    #: The API's key; -1 for a datum.
    API_KEY: ClassVar[int] = -1
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    #: The first version with compact lengths and tagged fields; None if there is none.
    FLEXIBLE_FROM: ClassVar[int | None] = None
    #: Without arrays a message is short, however long its strings, and needs no steps.
    HAS_ARRAYS: ClassVar[bool] = False

    def encode(self, version: int) -> bytes:
        """The message's bytes in this version, without any header."""
        out = bytearray()
        self.encode_into(out, version)
        return bytes(out)

    def encode_into(self, out: bytearray, version: int) -> None:
        """Appends the message to `out`; after an EncodeError `out` holds a part of it and is of no use."""
        raise NotImplementedError

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[Message, int]:
        """Reads a message's body from `pos` on; returns it and where it ends. DecodeError if the bytes are none."""
        raise NotImplementedError

    def encode_steps(self, out: bytearray, version: int) -> Steps[None]:
        """What `encode_into` does, in steps. A request, which no broker encodes, takes a single one."""
        write = _steps_of(self.__class__, "WRITERS")
        if write is None or not self.supports(version):
            self.encode_into(out, version)
            return
        from ottla.protocol.stepping import Pace

        try:
            yield from write(out, self, version, Pace())
        except ENCODE_FAULTS as fault:
            raise bad_value(self.__class__, version, fault) from fault

    @classmethod
    def decode_steps(cls, buf: Buffer, version: int, pos: int, allowance: DecodingAllowance) -> Steps[tuple[Self, int]]:
        """What `decode` does, in steps and within an allowance. A response, which no broker decodes, takes one."""
        read = _steps_of(cls, "READERS")
        if read is None or not cls.supports(version):
            return cast("tuple[Self, int]", cls.decode(buf, version, pos))
        try:
            return cast("tuple[Self, int]", (yield from read(buf, pos, len(buf), version, allowance)))
        except DECODE_FAULTS as fault:
            raise bad_bytes(cls, version, fault) from fault

    @classmethod
    def supports(cls, version: int) -> bool:
        return cls.MIN_VERSION <= version <= cls.MAX_VERSION


def _steps_of(cls: type[Message], table: str) -> Any:
    """The generated reader or writer with steps, if there is one; its module is loaded when a message is long."""
    if not cls.HAS_ARRAYS:
        return None
    return getattr(import_module(f"{cls.__module__}_steps"), table).get(cls)


def undecodable(cls: type[Message], version: int) -> DecodeError:
    return DecodeError(f"{cls.__name__} has no version {version}, only {cls.MIN_VERSION} to {cls.MAX_VERSION}")


def unencodable(cls: type[Message], version: int) -> EncodeError:
    return EncodeError(f"{cls.__name__} has no version {version}, only {cls.MIN_VERSION} to {cls.MAX_VERSION}")


def not_in_version(owner: Structure, field: str, version: int) -> EncodeError:
    return EncodeError(f"{owner.__class__.__name__}.{field} is set, but version {version} has no such field")


def not_tagged(owner: Structure, version: int) -> EncodeError:
    return EncodeError(f"{owner.__class__.__name__}.unknown_tags is set, but version {version} has no tagged fields")


def not_nullable(owner: Structure, field: str, version: int) -> EncodeError:
    return EncodeError(f"{owner.__class__.__name__}.{field} is null, which version {version} does not allow")


def bad_value(cls: type[Message], version: int, fault: Exception) -> EncodeError:
    return EncodeError(f"{cls.__name__} holds a value that version {version} cannot say: {fault}")


def bad_bytes(cls: type[Message], version: int, fault: Exception) -> DecodeError:
    return DecodeError(f"these bytes are no {cls.__name__} of version {version}: {fault}")


def tag_too_early(owner: Structure, tag: int, version: int) -> DecodeError:
    return DecodeError(f"tag {tag} of {owner.__class__.__name__} does not exist in version {version}")


def tag_of_other_size(owner: Structure, tag: int) -> DecodeError:
    return DecodeError(f"tag {tag} of {owner.__class__.__name__} has another size than it says")
