"""Frames of text as an asciicast and as an animated picture, both of which need nothing else to be seen."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from rich.console import Console
from rich.text import Text

# Pixels of a character and of a line.
_CHARACTER: Final = 8.43
_LINE: Final = 19
_MARGIN: Final = 16
_STYLE: Final = (
    "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#24292f;"
    "white-space:pre}rect{fill:#f6f8fa;stroke:#d0d7de}.green{fill:#1a7f37}.bold{font-weight:bold}"
    ".italic{font-style:italic}.dim{fill:#8c959f}.cyan{fill:#0969da}.yellow{fill:#9a6700}.red{fill:#cf222e}"
    ".strike{text-decoration:line-through}.caret{fill:#24292f;stroke:none;opacity:0.45}"
    ".plus{fill:#2da44e;stroke:none;opacity:0.35}.minus{fill:#cf222e;stroke:none;opacity:0.3}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}rect{fill:#161b22;stroke:#30363d}.green{fill:#3fb950}"
    ".dim{fill:#6e7681}.cyan{fill:#58a6ff}.yellow{fill:#d29922}.red{fill:#ff7b72}.caret{fill:#e6edf3}}"
)
# Classes of the rectangles under text of a style.
_UNDER: Final = {"reverse": "caret", "added": "plus", "removed": "minus"}


@dataclass(frozen=True, slots=True)
class Frame:
    """What is to be seen for so many seconds."""

    text: Text
    seconds: float


def cast(frames: Sequence[Frame], title: str, width: int, height: int) -> str:
    """As asciicast v2: a header, then what is written to the terminal and when; of a frame the lines that are new."""
    out = [json.dumps({"version": 2, "width": width, "height": height, "title": title})]
    time = 0.0
    before: list[str] = []
    for frame in frames:
        stream = io.StringIO()
        Console(file=stream, force_terminal=True, color_system="standard", width=width).print(frame.text, end="")
        lines = stream.getvalue().split("\n")
        lines += [""] * (max(height, len(before)) - len(lines))
        old = [*before, *["\0"] * (len(lines) - len(before))]
        new = [f"\x1b[{row};1H\x1b[2K{line}" for row, line in enumerate(lines, 1) if line != old[row - 1]]
        out.append(json.dumps([round(time, 3), "o", "".join(new)], ensure_ascii=False))
        before = lines
        time += frame.seconds
    out.append(json.dumps([round(time, 3), "o", ""]))
    return "\n".join(out) + "\n"


def svg(frames: Sequence[Frame], title: str, width: int, height: int) -> str:
    """One group a frame, each visible in its turn. Readers who want no motion see the last one."""
    wide, high = round(width * _CHARACTER + 2 * _MARGIN), height * _LINE + 2 * _MARGIN
    total = sum(frame.seconds for frame in frames)
    # Most lines stay from frame to frame: each is drawn once, and used.
    drawn: dict[str, str] = {}
    groups: list[str] = []
    rules: list[str] = []
    begin = 0.0
    for number, frame in enumerate(frames):
        first, end = 100 * begin / total, 100 * (begin + frame.seconds) / total
        hidden = "" if number == 0 else "0%{opacity:0}"
        rules.append(
            f"@keyframes f{number}{{{hidden}{first:.2f}%{{opacity:1}}{end:.2f}%{{opacity:0}}100%{{opacity:0}}}}"
            f"#f{number}{{opacity:{int(number == len(frames) - 1)};animation:f{number} {total:.2f}s step-end infinite}}"
        )
        names = [drawn.setdefault(line, f"l{len(drawn)}") for line in _drawn(frame.text)]
        groups.append(f'<g id="f{number}">{_uses(names)}</g>')
        begin += frame.seconds
    lines = "".join(f'<g id="{name}">{line}</g>' for line, name in drawn.items())
    # The last frame shows also where nothing moves: in print, and in readers that know no animation.
    still = "@media(prefers-reduced-motion:reduce){g{animation:none!important}}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
        f'role="img"><title>{escape(title)}</title><style>{_STYLE}{"".join(rules)}{still}</style><defs>{lines}</defs>'
        f'<rect x="0.5" y="0.5" width="{wide - 1}" height="{high - 1}" rx="8"/>{"".join(groups)}</svg>\n'
    )


def _uses(names: Sequence[str]) -> str:
    return "".join(f'<use href="#{name}"/>' for name in names)


def _drawn(text: Text) -> Iterator[str]:
    """Each line that is not empty, at its place."""
    for number, line in enumerate(text.split("\n", allow_blank=True)):
        if line.plain.strip():
            yield "".join(_parts(line, _MARGIN + number * _LINE))


def _parts(line: Text, top: int) -> Iterator[str]:
    """The rectangles under a line's text, then the text, each run at a place of its own, as fonts differ."""
    runs: list[tuple[int, str, str]] = []
    for at, character in enumerate(line.plain):
        style = " ".join(str(span.style) for span in line.spans if span.start <= at < span.end)
        if runs and runs[-1][1] == style:
            runs[-1] = (runs[-1][0], style, runs[-1][2] + character)
        else:
            runs.append((at, style, character))
    for at, style, part in runs:
        under = next((name for word, name in _UNDER.items() if word in style.split()), None)
        if under is not None:
            left, wide = _MARGIN + at * _CHARACTER, len(part) * _CHARACTER
            yield f'<rect class="{under}" x="{left:.1f}" y="{top + 1}" width="{wide:.1f}" height="{_LINE - 2}"/>'
    spans = [
        f'<tspan x="{_MARGIN + at * _CHARACTER:.1f}" class="{style}">{escape(part)}</tspan>'
        for at, style, part in runs
        if part.strip()
    ]
    yield f'<text y="{top + _LINE - 5}" xml:space="preserve">{"".join(spans)}</text>'
