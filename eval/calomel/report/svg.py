"""A plot's frame and marks as inline SVG. Colours and fonts come from the page's style sheet, by class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

WIDTH, HEIGHT = 560, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 30, 14, 44
_SHORT_TICK: Final = 4


@dataclass(frozen=True, slots=True)
class Axis:
    """From `low` to `high`; `place` maps a value to 0 to 1, straight unless given."""

    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    place: Callable[[float], float] | None = None

    def share(self, value: float) -> float:
        """Where a value lies, 0 to 1; values outside are moved to the nearer end."""
        if self.place is not None:
            found = self.place(value)
        else:
            found = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0
        return min(1.0, max(0.0, found))


@dataclass(slots=True)
class Plot:
    """Two axes and what is drawn between them.

    Attributes:
        title: for people who cannot see the plot, too.
        name: of the plot in the page.
        x, y: its axes.
        marks: SVG elements so far; how many of them show data, `drawn` says.
    """

    title: str
    name: str
    x: Axis
    y: Axis
    marks: list[str] = field(default_factory=list)
    drawn: int = 0

    def at(self, x: float, y: float) -> tuple[float, float]:
        """A point in the drawing's own units."""
        across = _LEFT + self.x.share(x) * (WIDTH - _LEFT - _RIGHT)
        return across, HEIGHT - _BOTTOM - self.y.share(y) * (HEIGHT - _TOP - _BOTTOM)

    def line(self, points: Sequence[tuple[float, float]], style: str, *, data: bool = True) -> None:
        """A line through points."""
        if not points:
            return
        path = " ".join("{:.1f},{:.1f}".format(*self.at(*point)) for point in points)
        self._mark(f'<polyline class="{style}" points="{path}"/>', data=data)

    def dot(self, x: float, y: float, radius: float, style: str, note: str = "") -> None:
        """A dot with a note for the pointer."""
        across, down = self.at(x, y)
        inside = f"<title>{escape(note)}</title>" if note else ""
        self._mark(f'<circle class="{style}" cx="{across:.1f}" cy="{down:.1f}" r="{radius:.1f}">{inside}</circle>')

    def bar(self, left: float, right: float, bottom: float, top: float, style: str, note: str = "") -> None:
        """A bar between values; one without height is left out."""
        if top <= bottom:
            return
        (x0, y0), (x1, y1) = self.at(left, bottom), self.at(right, top)
        inside = f"<title>{escape(note)}</title>" if note else ""
        self._mark(
            f'<rect class="{style}" x="{x0:.1f}" y="{y1:.1f}" width="{max(0.5, x1 - x0 - 0.5):.1f}" '
            f'height="{y0 - y1:.1f}">{inside}</rect>'
        )

    def words(self, x: float, y: float, text: str, anchor: str = "start") -> None:
        """A remark inside the plot."""
        across, down = self.at(x, y)
        self.marks.append(_text(across, down, text, anchor, ' class="remark"'))

    def to_svg(self) -> str:
        """The element, with a sentence in its middle when nothing was drawn."""
        if not self.drawn:
            self.words((self.x.low + self.x.high) / 2, (self.y.low + self.y.high) / 2, "nothing to plot", "middle")
        return (
            f'<svg id="{escape(self.name)}" class="plot" role="img" aria-label="{escape(self.title)}" '
            f'data-marks="{self.drawn}" viewBox="0 0 {WIDTH} {HEIGHT}">{self._frame()}{"".join(self.marks)}</svg>'
        )

    def _mark(self, element: str, *, data: bool = True) -> None:
        self.marks.append(element)
        self.drawn += data

    def _frame(self) -> str:
        bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
        parts = [f'<path class="axis" d="M{_LEFT},{_TOP} V{bottom} H{right}"/>']
        for value, label in self.x.ticks:
            across, _ = self.at(value, self.y.low)
            parts.append(f'<path class="axis" d="M{across:.1f},{bottom} v{_SHORT_TICK}"/>')
            parts.append(_text(across, bottom + 18, label, "middle"))
        for value, label in self.y.ticks:
            _, down = self.at(self.x.low, value)
            parts.append(f'<path class="grid" d="M{_LEFT},{down:.1f} H{right}"/>')
            parts.append(_text(_LEFT - 8, down + 4, label, "end"))
        middle = (_TOP + bottom) / 2
        parts.append(_text((_LEFT + right) / 2, HEIGHT - 6, self.x.label, "middle"))
        parts.append(_text(14, middle, self.y.label, "middle", f' transform="rotate(-90 14 {middle})"'))
        return "".join(parts)


def _text(across: float, down: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{across:.1f}" y="{down:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'
