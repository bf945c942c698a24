"""A snippet as the runs of lines between its markers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from calomel.suggest.apply.markers import is_bare, is_certain, is_marker, unfolded
from calomel.suggest.apply.source import Source, columns, read_source
from calomel.suggest.diff import split_lines
from calomel.workspace.languages import Grammar

_FENCE: Final = re.compile(r"\s*(```+|~~~+)[\w+#.-]*[^\S\n]*\n(?P<inside>.*?)\n?\1\s*", re.DOTALL)
_INDENT: Final = re.compile(r"[ \t]*")
_SHIFTS: Final = (2, 3, 4, 8)


@dataclass(frozen=True, slots=True)
class Run:
    """Lines of a snippet without a marker between them; neither the first nor the last is blank.

    Attributes:
        start, end: in the snippet's lines.
        marked_before, marked_after: whether a marker, or nothing at all, is next to it.
        blank_before, blank_after: blank lines between it and its neighbours.
        outside: indentation of the marker behind it, in columns; 0 at the end of the snippet.
    """

    start: int
    end: int
    marked_before: bool
    marked_after: bool
    blank_before: int = 0
    blank_after: int = 0
    outside: int = 0


@dataclass(frozen=True, slots=True)
class Snippet:
    """What should become of a file.

    Attributes:
        source: its lines; markers are left out.
        runs: in order.
        marked: whether it has markers at all.
    """

    source: Source
    runs: tuple[Run, ...]
    marked: bool


def read_snippet(text: str, original: Source, grammar: Grammar | None) -> Snippet:
    """The runs of a snippet for `original`."""
    lines = _unfold(_indented_as(split_lines(_unfenced(text, original)), original))
    known = set(original.keys)
    markers = {at for at, line in enumerate(lines) if is_marker(line) and _meant(line, known)}
    bare = [at for at, line in enumerate(lines) if is_bare(line)]
    if bare:
        markers |= _bare_markers(bare, lines, markers, original, grammar)
    source = read_source("".join(lines), grammar, frozenset(markers))
    return Snippet(source, _runs(source, sorted(markers)), bool(markers))


def divided(snippet: Snippet) -> tuple[Run, ...]:
    """The runs of a snippet without markers: each definition at its top is one, and so is what is between them."""
    source = snippet.source
    runs: list[Run] = []
    for run in snippet.runs:
        cuts = _cuts(source, run)
        for start, end in zip(cuts, [*cuts[1:], run.end], strict=True):
            filled = source.last_filled(end)
            before = runs[-1].blank_after if start > run.start else run.blank_before
            runs.append(
                Run(
                    start,
                    filled,
                    marked_before=False,
                    marked_after=False,
                    blank_before=before,
                    blank_after=end - filled,
                    outside=source.indents[start],
                )
            )
    return tuple(runs)


def _cuts(source: Source, run: Run) -> list[int]:
    """Where the pieces of a run begin: at its definitions with what is written above them, and behind them."""
    cuts = [run.start]
    at = run.start
    while at < run.end:
        if source.blank(at):
            at += 1
            continue
        head = at
        while head < run.end and not source.blank(head) and (source.is_decoration(head) or source.is_comment(head)):
            head = max(head + 1, source.ends[head])
        defines = head < run.end and head in source.names and source.ends[head] > head + 1
        end = min(source.ends[head] if defines else at + 1, run.end)
        if defines:
            cuts += [cut for cut in (at, _next_filled(source, end, run.end)) if cuts[-1] < cut < run.end]
        at = max(end, at + 1)
    return cuts


def _next_filled(source: Source, at: int, end: int) -> int:
    while at < end and source.blank(at):
        at += 1
    return at


def _runs(source: Source, markers: list[int]) -> tuple[Run, ...]:
    edges = [-1, *markers, len(source.lines)]
    runs = []
    for before, after in pairwise(edges):
        filled = source.filled(before + 1, after)
        if not filled:
            continue
        start, end = filled[0], filled[-1] + 1
        runs.append(
            Run(
                start,
                end,
                marked_before=before >= 0,
                marked_after=after < len(source.lines),
                blank_before=start - before - 1,
                blank_after=after - end,
                outside=_outside(source, after, end - 1),
            )
        )
    return tuple(runs)


def _outside(source: Source, marker: int, last: int) -> int:
    """How far a marker is meant to be indented: one that is further out than both of its neighbours is careless."""
    if marker >= len(source.lines):
        return 0
    own = columns(source.lines[marker])
    behind = next((at for at in range(marker + 1, len(source.lines)) if not source.blank(at)), None)
    if behind is None:
        return own
    return max(own, min(source.indents[last], source.indents[behind]))


def _meant(line: str, known: set[str]) -> bool:
    return is_certain(line) or " ".join(line.split()) not in known


def _bare_markers(
    bare: list[int], lines: list[str], markers: set[int], original: Source, grammar: Grammar | None
) -> set[int]:
    """Which ellipses without a comment are markers: in Python and its like they are also the body of a stub."""
    if grammar is None or not grammar.indented or any(lines[at].strip() == "…" for at in bare):
        return set(bare)
    if any(is_bare(line) for line in original.lines):
        return {at for at in bare if not columns(lines[at])}
    source = read_source("".join(lines), grammar, frozenset(markers))
    names = set(original.names.values())
    found = set()
    for at in bare:
        path = source.path(at)
        if not path or source.identity(path[-1]) in original.keys or source.names.get(path[-1]) in names:
            found.add(at)
    return found


def _unfenced(text: str, original: Source) -> str:
    found = _FENCE.fullmatch(text)
    if found is None or any(key.startswith(("```", "~~~")) for key in original.keys):
        return text
    return found["inside"] + "\n"


def _unfold(lines: list[str]) -> list[str]:
    found: list[str] = []
    for line in lines:
        bare = line.rstrip("\r\n")
        parts = None if is_marker(bare) else unfolded(bare)
        if parts is None:
            found.append(line)
            continue
        indent = _INDENT.match(bare)
        margin = "" if indent is None else indent.group()
        head, inside, tail = parts
        found += [f"{head}\n", f"{margin}    {inside}\n", f"{margin}{tail}\n"]
    return found


def _indented_as(lines: list[str], original: Source) -> list[str]:
    """Lines indented by tabs where the original has tabs, and by spaces where it has spaces."""
    theirs = _tabbed(original.lines)
    ours = _tabbed(lines)
    if theirs is None or ours is None or theirs == ours:
        return lines
    step = _step(original.lines if ours else lines)
    return [_reindented(line, step, tabs=theirs) for line in lines]


def _reindented(line: str, step: int, *, tabs: bool) -> str:
    body = line.lstrip(" \t")
    margin = line[: len(line) - len(body)]
    if not body.strip() or not margin:
        return line
    if not tabs:
        return margin.replace("\t", " " * step) + body
    width = len(margin.expandtabs(step))
    return "\t" * (width // step) + " " * (width % step) + body


def _tabbed(lines: list[str]) -> bool | None:
    """Whether most indented lines begin with a tab; None without any."""
    tabs = sum(line.startswith("\t") for line in lines)
    spaces = sum(line.startswith("  ") for line in lines)
    return None if tabs == spaces else tabs > spaces


def _step(lines: list[str]) -> int:
    widths = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip()]
    fitting = [step for step in _SHIFTS if sum(width % step == 0 for width in widths) >= 0.9 * len(widths)]
    used = [step for step in fitting if any(width == step for width in widths)]
    return max(used, default=4)
