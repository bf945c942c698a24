"""Parses a snippet into the runs of lines between its markers."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final, NamedTuple

from calomel.code.languages import Grammar
from calomel.code.lines import indent_of, split_lines
from calomel.suggest.apply.source import Source, read_source

# Openers and closers of comments, any number around the words of a line.
_OPENERS: Final = re.compile(
    r"(?:\{?/\*+|<!--|//+!?|\#+|--+(?:\[\[)?|;+|%+|\(\*|\{\#|<%\#?|\{-|'|rem\b)\s*", re.IGNORECASE
)
_CLOSERS: Final = re.compile(r"\s*(?:\*+/\}?|-->|\*\)|\#\}|%>|-\}|\]\])$")
_DOTS: Final = r"(?:\.{3,}+|…)"
_CERTAINLY: Final = r"(?:existing|unchanged|rest of|remain\w*)"
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
# Without dots, only phrases that nobody uses for anything else.
_PLAIN: Final = re.compile(
    r"(?:(?:the )?(?:rest|remainder) of (?:the |your |this )?[\w ]{1,40}?(?:(?:remains?|is|stays?|are) )?"
    r"(?:here|(?:the )?same|unchanged|as is|as before)"
    r"|(?:existing|unchanged|other existing|previous|remaining) (?:code|imports|methods|functions|content|lines)"
    r"(?: (?:here|above|below|(?:remains?|stays?|is|are)? ?(?:the same|unchanged)))?"
    r"|(?:no changes?|unchanged|code omitted|omitted|snip))[.:]?",
    re.IGNORECASE,
)
# In these words and with dots, it cannot be one of the program's own comments.
_CERTAIN: Final = re.compile(rf"{_DOTS}.*\b{_CERTAINLY}\b|\b{_CERTAINLY}\b.*{_DOTS}", re.IGNORECASE)
# A longer line is not a marker.
_LONGEST: Final = 200
# A whole block on one line, with its body left out.
_FOLDED: Final = re.compile(r"^(?P<head>[^\r\n]*\{)\s*(?P<inside>/\*[^\r\n]{0,120}?\*/|\.{3}|…)\s*(?P<tail>\}[^\r\n]*)")


def is_bare(line: str) -> bool:
    """Whether a line is an ellipsis without a comment around it, which is code in some languages."""
    text = line.strip()
    return len(text) <= _LONGEST and _BARE.fullmatch(text) is not None and text[0] in ".…"


def is_marker(line: str) -> bool:
    """Whether a comment stands for code that stays."""
    text = line.strip()
    found = None if len(text) > _LONGEST else _OPENERS.match(text)
    if found is None:
        return False
    words = _CLOSERS.sub("", text[found.end() :]).strip()
    if _BARE.fullmatch(words) or _PLAIN.fullmatch(words):
        return True
    return _EDGED.fullmatch(words) is not None and _WORDS.search(words) is not None


# Clients mark such messages with these, and not all of them remove the mark again.
_MARKS: Final = re.compile(r"<\|!@#IS_(?:APPLY|NEXT_EDIT)!@#\|>")
_ORIGINAL: Final = "<|original_code|>"
_UPDATE: Final = "<|update_snippet|>"
# The file may itself contain these tags: its section ends right before the update starts.
_BETWEEN: Final = re.compile(r"<\|/original_code\|>\s*<\|update_snippet\|>")
# Continue's wording, in its prompts for applying and for rewriting.
_SUGGESTED: Final = "The following code was suggested as an edit:\n"
_PLEASE: Final = "\nPlease apply it to the previous code."
_REWRITE: Final = "This is the code to rewrite:\n"
_REQUEST: Final = "\n\nThe user's request is: "
_FENCE: Final = re.compile(r"\s*(```+|~~~+)[\w+#.-]*[^\S\n]*\n(?P<inside>.*?)\n?\1\s*", re.DOTALL)


class ApplyPromptError(ValueError):
    """The message is not such a prompt. The error says what is missing and quotes nothing."""


class ApplyPrompt(NamedTuple):
    """A file and the change to apply.

    Attributes:
        original: the current file.
        update: the snippet.
    """

    original: str
    update: str


def parse_apply(message: str) -> ApplyPrompt:
    """Parse a message with the published tags, in any order, or Continue's own sentences.

    Raises:
        ApplyPromptError: there is no original or no update.
    """
    text = _MARKS.sub("", message)
    before, tagged, behind = text.partition(_ORIGINAL)
    if tagged:
        between = _BETWEEN.search(behind)
        if _UPDATE in before:
            original, update = behind, before.partition(_UPDATE)[2]
        elif between is not None:
            original, update = behind[: between.end() - len(_UPDATE)], behind[between.end() :]
        else:
            original, found, update = behind.partition(_UPDATE)
            if not found:
                raise ApplyPromptError("The message has no <|update_snippet|> section.")
        return ApplyPrompt(_section(original, "<|/original_code|>"), _section(update, "<|/update_snippet|>"))
    before, suggested, behind = text.rpartition(_SUGGESTED)
    if not suggested:
        raise ApplyPromptError("The message has no <|original_code|> section.")
    update = _unfenced(behind.rpartition(_PLEASE)[0] or behind)
    rewritten = before.rpartition(_REQUEST)[0].rpartition(_REWRITE)
    if rewritten[1]:
        return ApplyPrompt(_unfenced(rewritten[2]), update)
    return ApplyPrompt(before.removesuffix("\n\n"), update)


def _section(text: str, closer: str) -> str:
    """The text before a closing tag, without the line ends that belong to the tags."""
    inside, closed, _ = text.rpartition(closer)
    inside = inside if closed else text
    framed = "\r\n" if inside.startswith("\r\n") else "\n"
    inside = inside.removeprefix(framed)
    return inside.removesuffix(framed) if closed else inside


def _unfenced(text: str) -> str:
    """The text inside a fence; the text itself if there is none."""
    found = _FENCE.fullmatch(text)
    return text if found is None else found["inside"]


class Run(NamedTuple):
    """Lines of a snippet without a marker between them; neither the first nor the last is blank.

    Attributes:
        start, end: lines of the snippet.
        marked_before, marked_after: whether a marker is next to it, or nothing at all.
        blank_before, blank_after: blank lines between it and its neighbours.
        outside: indentation of the marker after it, in columns; 0 at the end of the snippet.
    """

    start: int
    end: int
    marked_before: bool
    marked_after: bool
    blank_before: int = 0
    blank_after: int = 0
    outside: int = 0


def read_snippet(text: str, original: Source, grammar: Grammar | None) -> tuple[Source, tuple[Run, ...]]:
    """The lines of a snippet for `original`, with its markers recognized, and its runs in order.

    Without markers, each top-level definition is a run, and so is what is between them.
    """
    if not any(key.startswith(("```", "~~~")) for key in original.keys):
        text = _unfenced(text)
    lines = _indented_as([piece for line in split_lines(text) for piece in _unfolded(line)], original)
    known = set(original.keys)
    markers = {at for at, line in enumerate(lines) if _is_meant(line, known)}
    markers |= _bare_markers(lines, markers, original, grammar)
    source = read_source("".join(lines), grammar, frozenset(markers))
    runs = _runs(source)
    return source, runs if markers else tuple(piece for run in runs for piece in _divided(source, run))


def _runs(source: Source) -> tuple[Run, ...]:
    count = len(source.lines)
    runs = []
    for before, after in pairwise([-1, *sorted(source.left_out), count]):
        filled = source.filled(before + 1, after)
        if filled:
            start, end = filled[0], filled[-1] + 1
            outside = source.indents[after] if after < count else 0
            runs.append(Run(start, end, before >= 0, after < count, start - before - 1, after - end, outside))
    return tuple(runs)


def _divided(source: Source, run: Run) -> list[Run]:
    """Split a run at its definitions (with the comments and decorators above them) and after each."""
    cuts = [run.start]
    at = run.start
    while at < run.end:
        head = head_of(source, at, run.end)
        if head is not None and source.defines(head):
            end = min(source.ends[head], run.end)
            behind = source.filled(end, run.end)[:1]
            cuts += [cut for cut in (at, *behind) if cut > cuts[-1]]
        else:
            end = at + 1
        at = next(iter(source.filled(end, run.end)), run.end)
    found: list[Run] = []
    for start, end in pairwise([*cuts, run.end]):
        filled = source.last_filled(end)
        before = found[-1].blank_after if found else run.blank_before
        found.append(Run(start, filled, False, False, before, end - filled, source.indents[start]))
    return found


def head_of(source: Source, at: int, end: int) -> int | None:
    """The first line of a definition from `at` on, after comments and decorators; None without any line."""
    while at < end and source.is_above(at):
        at = max(at + 1, source.ends[at])
    return at if at < end and not source.blank(at) else None


def _is_meant(line: str, known: set[str]) -> bool:
    """Whether a line is a marker, and not a comment that the original has as well."""
    return is_marker(line) and (" ".join(line.split()) not in known or _CERTAIN.search(line) is not None)


def _bare_markers(lines: list[str], markers: set[int], original: Source, grammar: Grammar | None) -> set[int]:
    """Which ellipses without a comment are markers: in languages like Python they may be the body of a stub."""
    bare = {at for at, line in enumerate(lines) if is_bare(line)}
    if not bare or grammar is None or not grammar.indented:
        return bare
    source = read_source("".join(lines), grammar, frozenset(markers))
    has_stubs = any(is_bare(line) for line in original.lines)
    known = set() if has_stubs else {original.identity(at) for at in range(len(original.lines))}
    paths = {at: source.path(at) for at in bare}
    return {at for at, path in paths.items() if not path or source.identity(path[-1]) in known or "…" in lines[at]}


def _unfolded(line: str) -> tuple[str, ...]:
    """The three lines of a block written on one line with its body left out; any other line unchanged."""
    found = None if is_marker(line) or len(line) > _LONGEST else _FOLDED.match(line)
    if found is None or (found["inside"].startswith("/*") and not is_marker(found["inside"])):
        return (line,)
    margin = indent_of(line)
    return f"{found['head']}\n", f"{margin}    {found['inside']}\n", f"{margin}{found['tail']}\n"


def _indented_as(lines: list[str], original: Source) -> list[str]:
    """The lines, indented with tabs if the original is, and with spaces if that is."""
    theirs, ours = _tabbed(original.lines), _tabbed(lines)
    if theirs is None or ours is None or theirs == ours:
        return lines
    margins = [indent_of(line) for line in lines]
    bodies = [line.removeprefix(margin) for line, margin in zip(lines, margins, strict=True)]
    spaced = original.lines if ours else lines
    step = min((width for line in spaced if (width := len(line) - len(line.lstrip(" "))) > 1), default=4)
    if ours:
        margins = [margin.expandtabs(step) for margin in margins]
    else:
        margins = ["\t" * (len(margin) // step) + " " * (len(margin) % step) for margin in margins]
    return [margin + body for margin, body in zip(margins, bodies, strict=True)]


def _tabbed(lines: list[str]) -> bool | None:
    """Whether most indented lines start with a tab; None for a tie or without any."""
    tabs = sum(line.startswith("\t") for line in lines)
    spaces = sum(line.startswith("  ") for line in lines)
    return None if tabs == spaces else tabs > spaces
