"""The tree against a naive model, and what it promises beside ZooKeeper's behaviour: undo, replay, invariants."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from tests.searches import examples

from ottla.coordination import Check, Create, Delete, SessionInfo, SetData
from ottla.coordination import snapshot as snapshot_module
from ottla.coordination.codec import decode_txn, encoding_txn
from ottla.coordination.errors import CoordinationError, MultiFailed
from ottla.coordination.paths import name_of, parent_of
from ottla.coordination.snapshot import TreeAsItIs, decode_snapshot, encode_snapshot
from ottla.coordination.tree import SESSIONS_MAX, CloseSession, OpenSession, ZnodeTree
from ottla.steps import at_once

OWNERS = (11, 12)


class Model:
    """What a tree should hold, by the plainest means: a dict of paths, copied before each transaction."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {"/": {"data": b"", "version": 0, "owner": 0, "made": 0, "gone": 0}}

    def children(self, path: str) -> list[str]:
        return sorted(name_of(found) for found in self.nodes if found != "/" and parent_of(found) == path)

    def apply(self, owner: int, ops: list[Any]) -> list[str | None] | str:
        """The paths of what was created, or the name of the first error."""
        before = {path: dict(node) for path, node in self.nodes.items()}
        results: list[str | None] = []
        for op in ops:
            result = self.one(owner, op)
            if isinstance(result, str) and not result.startswith("/"):
                self.nodes = before
                return result
            results.append(result)
        return results

    def one(self, owner: int, op: Any) -> str | None:
        if isinstance(op, CloseSession):
            for path in [path for path, node in self.nodes.items() if node["owner"] == op.session_id]:
                self.remove(path)
            return None
        node = self.nodes.get(op.path)
        if isinstance(op, Create):
            parent = self.nodes.get(parent_of(op.path))
            if parent is None:
                return "NoNode"
            if parent["owner"]:
                return "NoChildrenForEphemerals"
            path = f"{op.path}{parent['made']:010d}" if op.sequential else op.path
            if path in self.nodes:
                return "NodeExists"
            parent["made"] += 1
            self.nodes[path] = {
                "data": op.data,
                "version": 0,
                "owner": owner if op.ephemeral else 0,
                "made": 0,
                "gone": 0,
            }
            return path
        if node is None:
            return "NoNode"
        if op.version not in (-1, node["version"]):
            return "BadVersion"
        if isinstance(op, SetData):
            node["data"] = op.data
            node["version"] += 1
        elif isinstance(op, Delete):
            if self.children(op.path):
                return "NotEmpty"
            self.remove(op.path)
        return None

    def remove(self, path: str) -> None:
        del self.nodes[path]
        self.nodes[parent_of(path)]["gone"] += 1


def seen(tree: ZnodeTree) -> dict[str, tuple[Any, ...]]:
    """Everything that a tree holds."""
    return {path: (node.data, node.stat(), sorted(node.children or ())) for path, node in tree.nodes.items()}


names = st.sampled_from(["a", "b", "c"])
paths = st.lists(names, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
data = st.binary(max_size=4)
versions = st.sampled_from([-1, -1, 0, 1, 2])
operations = st.one_of(
    st.builds(Create, paths, data, st.booleans(), st.booleans()),
    st.builds(Create, paths, data),
    st.builds(Delete, paths, versions),
    st.builds(SetData, paths, data, versions),
    st.builds(Check, paths, versions),
)
transactions = st.lists(
    st.tuples(st.sampled_from(OWNERS), st.lists(operations, min_size=1, max_size=5)), min_size=1, max_size=25
)


def fresh() -> ZnodeTree:
    tree = ZnodeTree()
    for owner in OWNERS:
        tree.apply(0, [OpenSession(SessionInfo(owner, b"p", 1000))], tree.zxid + 1, 5)
    return tree


@examples(300)
@given(transactions, st.booleans())
def test_the_tree_does_what_the_model_does(asked: list[tuple[int, list[Any]]], close: bool) -> None:
    tree, model, replayed = fresh(), Model(), fresh()
    if close:
        asked = [*asked, (0, [CloseSession(OWNERS[0])])]
    for owner, ops in asked:
        expected = model.apply(owner, ops)
        before = seen(tree)
        zxid = tree.zxid + 1
        try:
            outcome = tree.apply(owner, ops, zxid, 1000 + zxid)
        except MultiFailed as failed:
            got: Any = type(failed.error).__name__
            assert seen(tree) == before
            assert tree.zxid == zxid - 1
        else:
            got = [getattr(result, "path", None) for result in outcome.results]
            after = seen(tree)
            tree.undo(outcome)
            tree.check_invariants()
            assert seen(tree) == before
            tree.apply(owner, ops, zxid, 1000 + zxid)
            assert seen(tree) == after
            # What the journal keeps does the same again.
            txn, _ = decode_txn(at_once(encoding_txn(1000 + zxid, owner, ops, outcome.results)), 0)
            replayed.apply(txn.session_id, txn.ops, zxid, txn.time_ms)
        assert got == expected
        tree.check_invariants()
    assert seen(replayed) == seen(tree)
    assert seen(decode_snapshot(encode_snapshot(tree), tree.zxid)) == seen(tree)
    assert sorted(tree.nodes) == sorted(model.nodes)
    for path, node in model.nodes.items():
        got, stat = tree.get(path)
        assert (got, stat.version, stat.ephemeral_owner) == (node["data"], node["version"], node["owner"])
        assert tree.children(path)[0] == model.children(path)
        assert stat.cversion == node["made"] + node["gone"]
        assert stat.num_children == node["made"] - node["gone"]


@examples(50)
@given(transactions)
def test_a_snapshot_goes_on_like_the_tree_it_was_taken_of(asked: list[tuple[int, list[Any]]]) -> None:
    tree = fresh()
    half = len(asked) // 2
    apply_all(tree, asked[:half])
    copy = decode_snapshot(encode_snapshot(tree), tree.zxid)
    copy.check_invariants()
    assert (copy.zxid, copy.sessions) == (tree.zxid, tree.sessions)
    apply_all(tree, asked[half:])
    apply_all(copy, asked[half:])
    copy.check_invariants()
    assert seen(copy) == seen(tree)


@examples(200)
@given(transactions, transactions, st.lists(st.sampled_from(["step", "change", "undo"]), max_size=80))
def test_a_snapshot_is_of_its_moment_though_the_tree_changes_meanwhile(
    first: list[tuple[int, list[Any]]], then: list[tuple[int, list[Any]]], turns: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot_module, "_ROWS_A_STEP", 1)
        tree = fresh()
        apply_all(tree, first)
        expected, zxid = encode_snapshot(tree), tree.zxid
        now = TreeAsItIs(tree)
        steps, result, left = now.encoding(), None, iter([*then, (0, [CloseSession(OWNERS[1])])])
        for turn in turns:
            if turn == "step" and result is None:
                try:
                    next(steps)
                except StopIteration as end:
                    result = end.value
            elif turn != "step" and (asked := next(left, None)) is not None:
                change(tree, *asked, undo=turn == "undo")
        assert (result if result is not None else at_once(steps)) == expected
        now.let_go()
        assert tree.before_change is None
        assert decode_snapshot(expected, zxid).zxid == zxid


def change(tree: ZnodeTree, owner: int, ops: list[Any], *, undo: bool) -> None:
    try:
        outcome = tree.apply(owner, ops, tree.zxid + 1, 7)
    except MultiFailed:
        return
    if undo:
        tree.undo(outcome)


def apply_all(tree: ZnodeTree, asked: list[tuple[int, list[Any]]]) -> None:
    for owner, ops in asked:
        try:
            tree.apply(owner, ops, tree.zxid + 1, 7)
        except MultiFailed:
            continue


def test_a_version_starts_again_behind_the_highest() -> None:
    tree = fresh()
    tree.apply(11, [Create("/a")], tree.zxid + 1, 1)
    tree.nodes["/a"].version = 0x7FFFFFFF
    outcome = tree.apply(11, [SetData("/a", b"x", 0x7FFFFFFF)], tree.zxid + 1, 1)
    assert tree.get("/a")[1].version == 0
    tree.undo(outcome)
    assert tree.get("/a")[1].version == 0x7FFFFFFF


def test_sessions_are_bounded() -> None:
    tree = ZnodeTree()
    opened = [OpenSession(SessionInfo(number, b"", 1)) for number in range(1, SESSIONS_MAX + 1)]
    tree.apply(0, opened, 1, 1)
    with pytest.raises(MultiFailed, match="sessions are open"):
        tree.apply(0, [OpenSession(SessionInfo(SESSIONS_MAX + 1, b"", 1))], 2, 1)


def test_an_ephemeral_node_needs_a_session_that_lives() -> None:
    tree = fresh()
    tree.apply(0, [CloseSession(11)], tree.zxid + 1, 1)
    with pytest.raises(CoordinationError, match="over"):
        tree.apply(11, [Create("/a", ephemeral=True)], tree.zxid + 1, 1)
    with pytest.raises(CoordinationError, match="over"):
        tree.apply(0, [CloseSession(11)], tree.zxid + 1, 1)
    tree.check_invariants()
