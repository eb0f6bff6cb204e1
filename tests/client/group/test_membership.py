"""A member's state table, and what it remembers when it goes out."""

from __future__ import annotations

import pytest

from ottla.client.consuming.group.membership import NEXT, NO_MEMBER, Membership, MembershipEvent, MembershipState


def test_from_knocking_to_stable() -> None:
    member = Membership("g", None)
    member.want("")
    member.join()
    member.named("a-1")
    assert not member.heartbeats
    member.join()  # with its name now
    member.joined("a-1", 5, is_leader=True)
    assert (member.state, member.heartbeats, member.is_joining) == (MembershipState.SYNCING, True, True)
    member.synced()
    assert (member.state, member.is_leader, member.is_joining) == (MembershipState.STABLE, True, False)
    assert member.identity == ("g", 5, "a-1", None)
    member.join()
    assert (member.state, member.generation, member.is_leader) == (MembershipState.JOINING, 5, False)
    assert member.is_member


@pytest.mark.parametrize("forget", [True, False])
def test_out(forget: bool) -> None:
    member = Membership("g", "static")
    member.join()
    member.joined("a-1", 5, is_leader=True)
    member.out("fenced", forget_member=forget)
    assert (member.state, member.generation, member.is_leader) == (MembershipState.OUT, -1, False)
    assert member.member_id == (NO_MEMBER if forget else "a-1")
    assert (member.rejoin, member.gone_because) == ("fenced", "fenced")
    member.out("again", forget_member=True)
    assert (member.rejoin, member.gone_because) == ("fenced", "again")
    member.left()
    assert (member.rejoin, member.gone_because, member.member_id) == (None, None, NO_MEMBER)
    # What it read as that member is fenced by that name, until it reads as nobody.
    assert (member.identity, member.is_member) == (("g", 5, "a-1", "static"), False)
    member.stand_alone()
    assert member.identity == ("g", -1, NO_MEMBER, "static")


def test_what_cannot_happen_raises() -> None:
    member = Membership("g", None)
    with pytest.raises(KeyError):
        member.synced()
    with pytest.raises(KeyError):
        member.joined("a", 1, is_leader=False)
    assert {state for state, event in NEXT if event is MembershipEvent.OUT} == set(MembershipState)
