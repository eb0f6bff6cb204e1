"""Several groups of which one is refused: the others get theirs, and it is said which."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.cli import faults
from ottla.cli.group.each import for_each
from ottla.client import Admin
from ottla.client.errors import KafkaError, RequestTimedOut
from ottla.model import ErrorCode
from tests.cli.conftest import Command


def test_a_group_that_is_refused_does_not_keep_the_others_from_it(
    ottla: Command, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alter = Admin.alter_group_offsets

    async def refusing(admin: Admin, group: str, offsets: Any) -> None:
        if group == f"{topic}-b":
            raise KafkaError(f"{group}: the group has members", code=ErrorCode.UNKNOWN_MEMBER_ID)
        await alter(admin, group, offsets)

    monkeypatch.setattr(Admin, "alter_group_offsets", refusing)
    groups = [f"{topic}-{one}" for one in "abc"]
    ran = ottla("group", "reset", *groups, "--topic", topic, "--to-earliest", "--yes")
    assert (ran.code, "done" in ran.lines) == (faults.FAILED, False), ran
    assert ran.err.splitlines()[0] == f"ottla: done for {groups[0]}, {groups[2]}"
    assert f"1 of 3 failed: {groups[1]}: the group has members" in ran.err
    assert ottla("group", "describe", groups[2]).code == 0


def test_nobody_who_answers_is_not_waited_for_again(capsys: pytest.CaptureFixture[str]) -> None:
    asked = []

    async def act(group: str) -> None:
        asked.append(group)
        if group == "b":
            raise RequestTimedOut("no answer")

    with pytest.raises(RequestTimedOut):
        asyncio.run(for_each(["a", "b", "c"], act))
    assert asked == ["a", "b"]
    assert capsys.readouterr().err == "ottla: done for a\n"
