"""Strongly connected components and cycles, beside who reaches whom as it is looked up step by step."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.searches import examples

from ottla.testing.sim.cycles import Edge, Graph

NODES = 8
edges_of_graphs = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=20)


def graph_of(edges: list[tuple[int, int]]) -> Graph[int]:
    graph = Graph[int]()
    for before, after in edges:
        graph.add(before, "then", after)
    return graph


def reached(edges: list[tuple[int, int]]) -> dict[int, set[int]]:
    found = {node: {after for before, after in edges if before == node} for node in range(NODES)}
    for _ in range(NODES):
        for own in found.values():
            own.update(*(found[other] for other in list(own)))
    return found


@given(edges_of_graphs)
@examples(300)
def test_components_are_those_that_reach_one_another(edges: list[tuple[int, int]]) -> None:
    reach = reached(edges)
    expected = {
        frozenset({node, *(other for other in reach[node] if node in reach[other])})
        for node in range(NODES)
        if node in reach[node]
    }
    assert {frozenset(found) for found in graph_of(edges).components()} == expected


@given(edges_of_graphs)
@examples(300)
def test_a_cycle_is_one_and_none_is_shorter_in_its_component(edges: list[tuple[int, int]]) -> None:
    cycle = graph_of(edges).cycle()
    assert bool(cycle) == any(node in reach for node, reach in reached(edges).items())
    assert all((edge.before, edge.after) in edges for edge in cycle)
    assert all(one.after == other.before for one, other in pairwise([*cycle, *cycle[:1]]))
    assert len({edge.before for edge in cycle}) == len(cycle)


def test_a_path_of_many_nodes_and_the_first_reason_that_was_given() -> None:
    many = 50_000
    graph = graph_of([(number, number + 1) for number in range(many)])
    assert graph.cycle() == []
    graph.add(7, "wrote", 6)
    graph.add(7, "real time", 6)
    assert set(graph.cycle()) == {Edge(6, "then", 7), Edge(7, "wrote", 6)}
