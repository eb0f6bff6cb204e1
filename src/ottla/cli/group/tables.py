"""Described groups, as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.cli.counting import counted
from ottla.cli.output import cell, table_of

_OFFSETS = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "current": "CURRENT",
    "end": "END",
    "lag": "LAG",
    "member": "MEMBER",
    "host": "HOST",
    "client": "CLIENT",
}
_OFFSETS_VERBOSE = {"leader_epoch": "EPOCH", "metadata": "METADATA", "instance": "INSTANCE"}
_MEMBERS = {"member": "MEMBER", "host": "HOST", "client": "CLIENT", "partitions": "PARTITIONS"}
_MEMBERS_VERBOSE = {"instance": "INSTANCE", "assigned": "ASSIGNMENT"}
_MEMBERS_NEWER = {"epoch": "EPOCH", "upgraded": "UPGRADED", "to_be": "TARGET"}
_STATE = {
    "group": "GROUP",
    "state": "STATE",
    "type": "TYPE",
    "assignor": "ASSIGNOR",
    "at": "COORDINATOR",
    "members": "MEMBERS",
    "lag": "LAG",
}
_STATE_VERBOSE = {"epoch": "EPOCH", "assignment_epoch": "ASSIGNMENT EPOCH"}


def state_table(groups: Sequence[dict[str, Any]], *, verbose: bool) -> str:
    rows = [
        {**group, "at": _coordinator(group), "members": len(group["members"]), "lag": _lag(group)} for group in groups
    ]
    return table_of(rows, {**_STATE, **_STATE_VERBOSE} if verbose else _STATE)


def members_table(group: dict[str, Any], *, verbose: bool) -> str:
    if not group["members"]:
        return f"{_head(group)}\nit has no members now\n"
    rows = [
        {
            **member,
            "partitions": len(member["assignment"]),
            "assigned": _by_topic(member["assignment"]),
            "to_be": None if member["target"] is None else _by_topic(member["target"]),
        }
        for member in group["members"]
    ]
    columns = dict(_MEMBERS)
    if verbose:
        columns |= _MEMBERS_VERBOSE
        if group["type"] == "consumer":
            columns |= _MEMBERS_NEWER
    return f"{_head(group)}\n{table_of(rows, columns)}"


def offsets_table(group: dict[str, Any], *, verbose: bool) -> str:
    if not group["partitions"]:
        return f"{_head(group)}\nit has committed nothing, and has nothing assigned\n"
    columns = {**_OFFSETS, **_OFFSETS_VERBOSE} if verbose else dict(_OFFSETS)
    if not any(row["member"] is not None for row in group["partitions"]):
        for name in ("member", "host", "client", "instance"):  # columns of nothing but dashes
            columns.pop(name, None)
    return f"{_head(group)}\n{table_of(group['partitions'], columns)}"


def _head(group: dict[str, Any]) -> str:
    """`billing  Stable  classic, range  coordinator 1 (127.0.0.1:9092)  2 members  lag 17`."""
    count = len(group["members"])
    how = ", ".join(part for part in (group["type"], group["assignor"]) if part)
    return "  ".join(
        (
            cell(group["group"]),
            group["state"],
            how,
            f"coordinator {_coordinator(group)}",
            f"{count or 'no'} member{'' if count == 1 else 's'}",
            f"lag {_lag(group)}",
        )
    )


def _lag(group: dict[str, Any]) -> str:
    """`17`, and `17, in 1 partition unknown` where that is not all."""
    unknown = group["lag_unknown"]
    if group["lag"] is None or not unknown:
        return cell(group["lag"])
    return f"{group['lag']}, in {counted(unknown, 'partition')} unknown"


def _coordinator(group: dict[str, Any]) -> str:
    found = group["coordinator"]
    return "-" if found is None else f"{found['id']} ({found['host']}:{found['port']})"


def _by_topic(partitions: Sequence[dict[str, Any]]) -> str | None:
    """`orders:0,1,2;returns:0`, as `--topic` of `group reset` takes each."""
    topics: dict[str, list[str]] = {}
    for each in partitions:
        topics.setdefault(each["topic"], []).append(str(each["partition"]))
    return ";".join(f"{topic}:{','.join(numbers)}" for topic, numbers in topics.items()) or None
