"""Coordination: a tree of znodes with sessions and watches, and where it may be."""

from __future__ import annotations

from ottla.coordination.interface import (
    ANY_VERSION,
    Check,
    Coordination,
    Create,
    CreatedNode,
    Delete,
    EventType,
    SessionEvent,
    SessionInfo,
    SetData,
    Stat,
    WatchEvent,
)

__all__ = [
    "ANY_VERSION",
    "Check",
    "Coordination",
    "Create",
    "CreatedNode",
    "Delete",
    "EventType",
    "SessionEvent",
    "SessionInfo",
    "SetData",
    "Stat",
    "WatchEvent",
]
