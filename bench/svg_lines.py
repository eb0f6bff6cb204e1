"""Lines over time as an SVG file: panels one below the other, with one time axis each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, PANEL, LEFT, RIGHT, ABOVE, BELOW, HEAD = 920, 190, 64, 16, 34, 40, 56
#: Told apart by those who do not see red and green as others do.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")


@dataclass(frozen=True, kw_only=True)
class Panel:
    title: str
    #: For each line a value for each step of time.
    lines: Mapping[str, Sequence[float]]
    #: What happened, and when.
    events: Sequence[tuple[float, str]]


def draw(title: str, y_label: str, top: float, step_seconds: float, panels: Sequence[Panel]) -> str:
    """All panels have the same scales; what is above ``top`` is cut off there."""
    seconds = step_seconds * max(len(values) for panel in panels for values in panel.lines.values())
    height = HEAD + len(panels) * (ABOVE + PANEL + BELOW)
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12" fill="#222">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="{LEFT}" y="22" font-size="16" font-weight="bold">{escape(title)}</text>',
        *_legend(list(panels[0].lines)),
    ]
    for number, panel in enumerate(panels):
        parts += _panel(panel, HEAD + number * (ABOVE + PANEL + BELOW) + ABOVE, seconds, top, step_seconds, y_label)
    return "\n".join([*parts, "</svg>", ""])


def _legend(names: Sequence[str]) -> list[str]:
    parts = []
    for number, name in enumerate(names):
        x = LEFT + 150 * number
        parts.append(f'<line x1="{x}" y1="40" x2="{x + 22}" y2="40" stroke="{COLOURS[number]}" stroke-width="3"/>')
        parts.append(f'<text x="{x + 28}" y="44">{escape(name)}</text>')
    return parts


def _panel(panel: Panel, y0: int, seconds: float, top: float, step_seconds: float, y_label: str) -> list[str]:
    wide = WIDTH - LEFT - RIGHT

    def x(at: float) -> float:
        return round(LEFT + wide * at / seconds, 1)

    def y(value: float) -> float:
        return round(y0 + PANEL * (1 - value / top), 1)

    parts = [f'<text x="{LEFT}" y="{y0 - 18}" font-weight="bold">{escape(panel.title)}</text>']
    for quarter in range(5):
        value = top * quarter / 4
        parts.append(f'<line x1="{LEFT}" y1="{y(value)}" x2="{LEFT + wide}" y2="{y(value)}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(value) + 4}" text-anchor="end">{value:,.0f}</text>')
    parts += [
        f'<text x="{x(second)}" y="{y0 + PANEL + 16}" text-anchor="middle">{second} s</text>'
        for second in range(0, int(seconds) + 1, 5)
    ]
    middle = y0 + PANEL / 2
    parts.append(f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">{y_label}</text>')
    for at, what in panel.events:
        parts.append(
            f'<line x1="{x(at)}" y1="{y0}" x2="{x(at)}" y2="{y0 + PANEL}" stroke="#888" stroke-dasharray="4 3"/>'
        )
        parts.append(f'<text x="{x(at) + 4}" y="{y0 - 4}" fill="#555">{escape(what)}</text>')
    for number, values in enumerate(panel.lines.values()):
        points = " ".join(f"{x((step + 0.5) * step_seconds)},{y(min(value, top))}" for step, value in enumerate(values))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[number]}" stroke-width="1.8"/>')
    return parts
