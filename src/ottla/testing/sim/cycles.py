"""Cycles in what must come before what: the strongly connected components of a graph, and a short cycle in one.

Tarjan's algorithm, with a stack of its own in place of recursion: one path of a history has thousands of nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

N = TypeVar("N", bound=Hashable)


class Edge(NamedTuple, Generic[N]):
    before: N
    why: str
    after: N


class Graph(Generic[N]):
    """Of two reasons why one node comes before another the first that was given is kept."""

    def __init__(self) -> None:
        self._after: dict[N, dict[N, str]] = {}

    def add(self, before: N, why: str, after: N) -> None:
        self._after.setdefault(before, {}).setdefault(after, why)
        self._after.setdefault(after, {})

    def components(self) -> Iterator[list[N]]:
        """Those of several nodes, and single ones that come before themselves: these have cycles, and nothing else."""
        for found in _Search(self._after).components():
            if len(found) > 1 or found[0] in self._after[found[0]]:
                yield found

    def cycle(self) -> list[Edge[N]]:
        """A shortest one through some node of the smallest component that has any; empty where there is none."""
        found = min(self.components(), key=len, default=None)
        if found is None:
            return []
        return min((self._back_to(node, set(found)) for node in found), key=len)

    def _back_to(self, start: N, within: set[N]) -> list[Edge[N]]:
        came: dict[N, Edge[N]] = {}
        waiting = deque([start])
        while start not in came:
            node = waiting.popleft()
            for after, why in self._after[node].items():
                if after in within and after not in came:
                    came[after] = Edge(node, why, after)
                    waiting.append(after)
        path = [came[start]]
        while path[-1].before != start:
            path.append(came[path[-1].before])
        return path[::-1]


class _Search(Generic[N]):
    """Tarjan, 1972. A node's `low` is the first node that it leads back to, as far as is known."""

    def __init__(self, after: dict[N, dict[N, str]]) -> None:
        self._after = after
        self._number: dict[N, int] = {}
        self._low: dict[N, int] = {}
        #: Visited, and in no component yet.
        self._open: list[N] = []
        self._is_open: set[N] = set()
        self._path: list[tuple[N, Iterator[N]]] = []

    def components(self) -> Iterator[list[N]]:
        for root in self._after:
            if root not in self._number:
                self._enter(root)
                while self._path:
                    yield from self._step()

    def _enter(self, node: N) -> None:
        self._number[node] = self._low[node] = len(self._number)
        self._open.append(node)
        self._is_open.add(node)
        self._path.append((node, iter(self._after[node])))

    def _step(self) -> Iterator[list[N]]:
        node, left = self._path[-1]
        for after in left:
            if after not in self._number:
                self._enter(after)
                return
            if after in self._is_open:
                self._low[node] = min(self._low[node], self._number[after])
        self._path.pop()
        if self._path:
            before = self._path[-1][0]
            self._low[before] = min(self._low[before], self._low[node])
        if self._low[node] == self._number[node]:
            yield self._component(node)

    def _component(self, root: N) -> list[N]:
        found: list[N] = []
        while not found or found[-1] != root:
            found.append(self._open.pop())
            self._is_open.discard(found[-1])
        return found
