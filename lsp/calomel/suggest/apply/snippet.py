"""A snippet as the runs of lines between its markers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from calomel.suggest.apply.source import Source, columns, read_source
from calomel.suggest.edit import split_lines
from calomel.workspace.languages import Grammar

# Openers and closers of comments, as many as a line has around its words.
_OPENERS: Final = re.compile(
    r"(?:\{?/\*+|<!--|//+!?|\#+|--+(?:\[\[)?|;+|%+|\(\*|\{\#|<%\#?|\{-|'|rem\b)\s*", re.IGNORECASE
)
_CLOSERS: Final = re.compile(r"\s*(?:\*+/\}?|-->|\*\)|\#\}|%>|-\}|\]\])$")
_DOTS: Final = r"(?:\.{3,}|…)"
_BARE: Final = re.compile(rf"[\[(<{{]?\s*{_DOTS}(?:\s*{_DOTS})*\s*[\])>}}]?")
_EDGED: Final = re.compile(rf"[\[(<{{]?\s*{_DOTS}.*|.*{_DOTS}\s*[\])>}}.]?")
_WORDS: Final = re.compile(
    r"\b(?:existing|rest|remain\w*|unchanged|same|previous\w*|omitted|truncated|elided|untouched|unmodified|keep"
    r"|kept|as before|(?:other|more|original|above|following|prior|surrounding|your|the) (?:\w+ ){0,2}?"
    r"(?:code|functions?|methods?|imports?|fields?|members?|propert\w+|lines?|content|logic|implementation|tests?"
    r"|class\w*|definitions?|statements?|cases?|routes?|styles?|rules?|options?|components?|variables?|constants?"
    r"|types?|entries|items|values|parts?)|snip\w*)\b",
    re.IGNORECASE,
)
# Without dots, only what nobody writes about anything else.
_PLAIN: Final = re.compile(
    r"(?:(?:the )?(?:rest|remainder) of (?:the |your |this )?[\w ]{1,40}?(?:(?:remains?|is|stays?|are) )?"
    r"(?:here|(?:the )?same|unchanged|as is|as before)"
    r"|(?:existing|unchanged|other existing|previous|remaining) (?:code|imports|methods|functions|content|lines)"
    r"(?: (?:here|above|below|(?:remains?|stays?|is|are)? ?(?:the same|unchanged)))?"
    r"|(?:no changes?|unchanged|code omitted|omitted|snip))[.:]?",
    re.IGNORECASE,
)
# Said so, it means nothing else, wherever it stands.
_CERTAIN: Final = re.compile(
    rf"{_DOTS}.*\b(?:existing|unchanged|rest of|remain\w*)\b.*|.*\b(?:existing|unchanged|rest of|remain\w*)\b.*{_DOTS}",
    re.IGNORECASE,
)
_LONGEST: Final = 120
# A whole block on one line, its inside left out.
_FOLDED: Final = re.compile(
    r"^(?P<head>[^\r\n]*\{)\s*(?P<inside>/\*[^\r\n]{0,120}?\*/|\.{3}|…)\s*(?P<tail>\}[^\r\n]*)$"
)


def words_of_comment(line: str) -> str | None:
    """What a line says that is a comment and nothing else; None where it is no comment."""
    text = line.strip()
    found = _OPENERS.match(text)
    if found is None:
        return None
    return _CLOSERS.sub("", text[found.end() :]).strip()


def is_bare(line: str) -> bool:
    """Whether a line is an ellipsis without a comment around it, which is code in some languages."""
    text = line.strip()
    return len(text) <= _LONGEST and _BARE.fullmatch(text) is not None and text[0] in ".…"


def is_marker(line: str) -> bool:
    """Whether a comment stands for code that stays."""
    if len(line) > _LONGEST + 80:
        return False
    words = words_of_comment(line)
    if words is None or len(words) > _LONGEST:
        return False
    if _BARE.fullmatch(words) or _PLAIN.fullmatch(words):
        return True
    return _EDGED.fullmatch(words) is not None and _WORDS.search(words) is not None


def is_certain(line: str) -> bool:
    """Whether a marker is worded so that it cannot be a comment of the program's own."""
    words = words_of_comment(line)
    return words is not None and len(words) <= _LONGEST and _CERTAIN.fullmatch(words) is not None


def unfolded(line: str) -> tuple[str, str, str] | None:
    """Head, marker and tail of a block that is written on one line with its inside left out."""
    if len(line) > 4 * _LONGEST:
        return None
    found = _FOLDED.match(line)
    if found is None:
        return None
    inside = found["inside"]
    if inside.startswith("/*") and not is_marker(inside):
        return None
    return found["head"], inside, found["tail"]


# Clients mark a message as one of these, and not all take the mark off again.
_MARKS: Final = re.compile(r"<\|!@#IS_(?:APPLY|NEXT_EDIT)!@#\|>")
_OPEN: Final = "<|{}|>"
_CLOSE: Final = "<|/{}|>"
_ORIGINAL: Final = "original_code"
_UPDATE: Final = "update_snippet"
# Continue's words, in its prompt for applying and in the one for rewriting.
_SUGGESTED: Final = "The following code was suggested as an edit:\n"
_PLEASE: Final = "\nPlease apply it to the previous code."
_REWRITE: Final = "This is the code to rewrite:\n"
_REQUEST: Final = "\n\nThe user's request is: "


class ApplyPromptError(ValueError):
    """A message that is no such prompt. It says what is missing and quotes nothing."""


@dataclass(frozen=True, slots=True)
class ApplyPrompt:
    """A file, and what should become of it.

    Attributes:
        original: the file, as it is.
        update: the snippet.
    """

    original: str
    update: str


def parse_apply(message: str) -> ApplyPrompt:
    """Read a message: the published tags, in any order, or Continue's own sentences.

    Raises:
        ApplyPromptError: there is no original or no update.
    """
    text = _MARKS.sub("", message)
    if _OPEN.format(_ORIGINAL) in text:
        return _tagged(text)
    at = text.rfind(_SUGGESTED)
    if at < 0:
        raise ApplyPromptError("The message has no <|original_code|> section.")
    end = text.rfind(_PLEASE)
    update = _unfenced_section(text[at + len(_SUGGESTED) : end if end > at else len(text)])
    request = text.rfind(_REQUEST, 0, at)
    rewritten = text.rfind(_REWRITE, 0, max(request, 0))
    if rewritten >= 0:
        return ApplyPrompt(_unfenced_section(text[rewritten + len(_REWRITE) : request]), update)
    return ApplyPrompt(text[:at].removesuffix("\n\n"), update)


def _tagged(text: str) -> ApplyPrompt:
    opens, update = _OPEN.format(_ORIGINAL), _OPEN.format(_UPDATE)
    first, second = text.find(opens), text.find(update)
    if second < 0:
        raise ApplyPromptError("The message has no <|update_snippet|> section.")
    if first > second:
        return ApplyPrompt(_section(text, _ORIGINAL, first, len(text)), _section(text, _UPDATE, second, first))
    # The file itself may speak of these tags: its own section ends right before the update begins.
    closes = _CLOSE.format(_ORIGINAL)
    between = re.compile(rf"{re.escape(closes)}\s*{re.escape(update)}").search(text, first)
    if between is not None:
        second = between.end() - len(update)
    return ApplyPrompt(_section(text, _ORIGINAL, first, second), _section(text, _UPDATE, second, len(text)))


def _section(text: str, tag: str, start: int, end: int) -> str:
    """What is between a pair of tags, without the line ends that belong to the tags."""
    start += len(_OPEN.format(tag))
    closed = text.rfind(_CLOSE.format(tag), start, end)
    inside = text[start : closed if closed >= 0 else end]
    framed = "\r\n" if inside.startswith("\r\n") else "\n"
    inside = inside.removeprefix(framed)
    return inside.removesuffix(framed) if closed >= 0 else inside


def _unfenced_section(text: str) -> str:
    """What is between a fence's lines; the text itself without them."""
    if not text.startswith("```"):
        return text
    inside = text.partition("\n")[2]
    end = inside.rfind("\n```")
    if inside.startswith("```"):
        return ""
    return inside[:end] if end >= 0 else inside


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
