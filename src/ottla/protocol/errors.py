"""What can be wrong with bytes or with a message: all that decoders and encoders of this package raise."""

from __future__ import annotations


class ProtocolError(Exception):
    """The root of this package's errors."""


class DecodeError(ProtocolError):
    """The bytes are not what the API's schema says: the peer's fault, answered by closing the connection."""


class EncodeError(ProtocolError):
    """The message cannot be said in the version that was asked for: our own side's fault."""
