"""Figures, goals and the table. A goal compares medians of pairs that were measured one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.servers import KAFKA, NULL, OTTLA

#: What one server reached in one round: measure -> figure.
Figures = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A figure that a benchmark takes, and how it is shown."""

    name: str
    label: str
    unit: str
    digits: int = 0


@dataclass(frozen=True, kw_only=True)
class Goal:
    """Ours must be ``at_least`` or ``at_most``: a number, so many times what ``against`` reached, or so much more than
    ``above`` did."""

    measure: str
    at_least: float | None = None
    at_most: float | None = None
    against: str | None = None
    above: str | None = None

    def text(self, unit: str) -> str:
        word, bound = ("\u2265", self.at_least) if self.at_least is not None else ("\u2264", self.at_most)
        if self.above is not None:
            return f"{word} {self.above} + {bound:g} {unit}".rstrip()
        if self.against is not None:
            return f"{word} {bound:g}x {self.against}"
        return f"{word} {bound:g} {unit}".rstrip()


@dataclass(kw_only=True)
class Results:
    """One benchmark's rounds: for each server, in the order of the rounds, its figures."""

    title: str
    measures: Sequence[Measure]
    goals: Sequence[Goal]
    rounds: dict[str, list[Figures]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    #: Whether the best round counts and not the median: of measures that are the better the larger they are.
    best_counts: bool = False

    def add(self, kind: str, figures: Figures) -> None:
        self.rounds.setdefault(kind, []).append(figures)

    def typical(self, kind: str, measure: str) -> float | None:
        """The median of what ``kind`` reached, or the best, where it was measured at all."""
        found = [figures[measure] for figures in self.rounds.get(kind, []) if measure in figures]
        if not found:
            return None
        return max(found) if self.best_counts else median(found)

    def ratio(self, measure: str, against: str) -> float | None:
        """The median of ours over theirs, pair by pair."""
        pairs = self._pairs(measure, against)
        return median(ours / other if other else float("inf") for ours, other in pairs) if pairs else None

    def difference(self, measure: str, above: str) -> float | None:
        """The median of ours less theirs, pair by pair."""
        pairs = self._pairs(measure, above)
        return median(ours - other for ours, other in pairs) if pairs else None

    def _pairs(self, measure: str, kind: str) -> list[tuple[float, float]]:
        """A server with fewer rounds is compared by its own median."""
        mine = [figures[measure] for figures in self.rounds.get(OTTLA, []) if measure in figures]
        theirs = [figures[measure] for figures in self.rounds.get(kind, []) if measure in figures]
        if not mine or not theirs:
            return []
        if len(mine) != len(theirs):
            theirs = [median(theirs)] * len(mine)
        return list(zip(mine, theirs, strict=True))

    def judge(self, goal: Goal) -> tuple[float | None, bool | None]:
        """What was reached of a goal (a ratio, where it compares) and whether that is enough."""
        if goal.against is not None:
            reached = self.ratio(goal.measure, goal.against)
        elif goal.above is not None:
            reached = self.difference(goal.measure, goal.above)
        else:
            reached = self.typical(OTTLA, goal.measure)
        if reached is None:
            return None, None
        enough = (goal.at_least is None or reached >= goal.at_least) and (
            goal.at_most is None or reached <= goal.at_most
        )
        return reached, enough


#: Whose figures the table shows.
COLUMNS = (OTTLA, NULL, KAFKA)


def rows(results: Results, columns: Sequence[str] = COLUMNS) -> list[list[str]]:
    """A row for each measure and each further goal of it."""
    found: list[list[str]] = []
    title = results.title
    for measure in results.measures:
        figures = [_figure(results.typical(kind, measure.name), measure) for kind in columns]
        if not any(figures) and not results.failures:
            continue
        goals = [goal for goal in results.goals if goal.measure == measure.name]
        for goal in goals or (None,):
            found.append([title, f"{measure.label}, {measure.unit}", *figures, *_verdict(results, goal, measure)])
            title, figures = "", [""] * len(columns)
    for kind, why in results.failures.items():
        found.append([title, f"{kind} FAILED: {why.splitlines()[0][:90]}", *[""] * len(columns), "", "", "MISS"])
        title = ""
    return found


def _figure(value: float | None, measure: Measure) -> str:
    return "" if value is None else f"{value:,.{measure.digits}f}"


def _verdict(results: Results, goal: Goal | None, measure: Measure) -> list[str]:
    if goal is None:
        return ["", "", ""]
    reached, enough = results.judge(goal)
    if reached is None:
        return [goal.text(measure.unit), "not measured", ""]
    shown = f"{reached:.2f}x" if goal.against is not None else f"{reached:,.{measure.digits}f}"
    if goal.above is not None:
        shown = f"{goal.above} + {shown}"
    return [goal.text(measure.unit), shown, "ok" if enough else "MISS"]


def misses(every: Sequence[Results]) -> list[str]:
    return [
        f"{results.title}: {goal.measure} {goal.text('')}"
        for results in every
        for goal in results.goals
        if results.judge(goal)[1] is False
    ] + [f"{results.title}: {kind} failed" for results in every for kind in results.failures]


def table(every: Sequence[Results], *, markdown: bool, columns: Sequence[str] = COLUMNS) -> str:
    lines = [["work", "measure", *columns, "goal", "reached", ""]]
    for results in every:
        lines += rows(results, columns)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    numeric = {*range(2, 2 + len(columns)), 3 + len(columns)}

    def padded(line: Sequence[str]) -> list[str]:
        return [
            cell.rjust(width) if column in numeric else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]

    if not markdown:
        body = ["  ".join(padded(line)).rstrip() for line in lines]
        return "\n".join([body[0], "  ".join("-" * width for width in widths), *body[1:]])
    rule = ["-" * (width - 1) + ":" if column in numeric else "-" * width for column, width in enumerate(widths)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [padded(lines[0]), rule, *map(padded, lines[1:])])
