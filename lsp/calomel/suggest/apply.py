"""Merges a snippet with markers (`// ... existing code ...`) into its file, by lines that are in both exactly once.

Such an anchor says where the snippet is in the file, and so do the equal lines beside it. Between two anchors the
snippet's lines replace the file's; around a marker, which must have an anchor on both sides, the file's lines stay.
Nothing is guessed: what has no certain place is refused. All steps are linear in the length of both texts.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

from calomel.code.lines import split_lines
from calomel.suggest.edit import line_end_of

NO_PLACE: Final = (
    "The update does not say where it belongs, so the original code is returned unchanged: give more unchanged lines "
    "around each change, mark what is left out with `// ... existing code ...`, or send the whole file."
)
TOO_LONG: Final = "The merge took too long, so the original code is returned unchanged: send a smaller file or update."
# Seconds that a merge may take; lines between two looks at the clock; characters of a comment that is a marker.
_SECONDS, _TURN, _LONGEST = 2.0, 2_000, 200
# A snippet without markers is the whole file if it has this share of the file's lines.
_WHOLE: Final = 2 / 3
_BOM: Final = "\ufeff"
_FENCES: Final = ("```", "~~~")
_OPENER: Final = re.compile(r"\{?/\*+|<!--|//+!?|#+|--+(?:\[\[)?|;+|%+|\(\*|\{#|'")
_CLOSER: Final = re.compile(r"(?:\*+/\}?|-->|\*\)|#\}|\]\])$")
_DOTS: Final = ("...", "…")
_WORDS: Final = re.compile(r"\b(?:existing|rest|remain\w*|unchanged|same|keep|omitted|other|previous)\b", re.IGNORECASE)
_PLAIN: Final = re.compile(r"(?:the )?rest of [\w ]{1,40} (?:unchanged|the same)\.?", re.IGNORECASE)
# Beside code, or without a comment around it, it would be written into the file.
_INSIDE: Final = re.compile(r"(?:\.{3}|…)\s?existing code|existing code\s?(?:\.{3}|…)|^\s*(?:\.{3}|…)$", re.IGNORECASE)

# Clients mark such messages with these, and not all of them remove the mark again.
_MARKS: Final = re.compile(r"<\|!@#IS_(?:APPLY|NEXT_EDIT)!@#\|>")
_ORIGINAL, _UPDATE = "<|original_code|>", "<|update_snippet|>"
# The file may itself contain these tags: its section ends right before the update starts.
_BETWEEN: Final = re.compile(r"<\|/original_code\|>\s*<\|update_snippet\|>")
# Continue's wording, in its prompts for applying and for rewriting.
_SUGGESTED, _PLEASE = "The following code was suggested as an edit:\n", "\nPlease apply it to the previous code."
_REWRITE, _REQUEST = "This is the code to rewrite:\n", "\n\nThe user's request is: "

T = TypeVar("T")


class ApplyPromptError(ValueError):
    """The message is not such a prompt. The error says what is missing and quotes nothing."""


class ApplyPrompt(NamedTuple):
    """The current file, and the snippet to merge into it."""

    original: str
    update: str


def parse_apply(message: str) -> ApplyPrompt:
    """Parse a message with the published tags, in any order, or Continue's own sentences. Raises ApplyPromptError."""
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
    return ApplyPrompt(_unfenced(rewritten[2]) if rewritten[1] else before.removesuffix("\n\n"), update)


def _section(text: str, closer: str) -> str:
    """The text before a closing tag, without the line ends that belong to the tags."""
    inside, closed, _ = text.rpartition(closer)
    inside = inside if closed else text
    framed = "\r\n" if inside.startswith("\r\n") else "\n"
    inside = inside.removeprefix(framed)
    return inside.removesuffix(framed) if closed else inside


def _unfenced(text: str) -> str:
    """The text within a fence; all of it without one."""
    inside = text.strip()
    first, line_end, rest = inside.partition("\n")
    fenced = line_end and first.startswith(_FENCES) and rest.rpartition("\n")[2].strip() == first[:3]
    return rest.rpartition("\n")[0] if fenced else text


def is_marker(line: str) -> bool:
    """Whether a comment stands for code that stays."""
    text = line.strip()
    opener = None if len(text) > _LONGEST else _OPENER.match(text)
    if opener is None:
        return False
    words = _CLOSER.sub("", text[opener.end() :]).strip().strip("[]()").strip()
    dots = words.startswith(_DOTS) or words.endswith(_DOTS)
    return _PLAIN.fullmatch(words) is not None or (dots and (not words.strip(".… ") or bool(_WORDS.search(words))))


class Merged(NamedTuple):
    """The merged file; the original, and what to do about it, where the snippet's place is not certain."""

    text: str
    warning: str | None = None


class _RefusedError(Exception):
    """The snippet cannot be merged; the message says what to do."""


def merge(original: str, snippet: str, gone: Callable[[], bool] = lambda: False) -> Merged:
    """Merge `snippet` into `original`, the whole file; ended after two seconds, or once `gone` says so."""
    stop = time.monotonic() + _SECONDS
    text = original.removeprefix(_BOM)
    try:
        merged = _Merge(text, snippet.removeprefix(_BOM), lambda: gone() or time.monotonic() > stop).merged()
    except _RefusedError as error:
        return Merged(original, str(error))
    return Merged(original[: len(original) - len(text)] + merged)


class _Merge:
    def __init__(self, original: str, snippet: str, late: Callable[[], bool]) -> None:
        self._late = late
        self._original = original
        self._lines = split_lines(original)
        self._theirs = [line.rstrip() for line in self._turns(self._lines)]
        snippet = _indented_as(snippet if original.startswith(_FENCES) else _unfenced(snippet), original)
        self._new = [line.rstrip("\r\n") for line in self._turns(split_lines(snippet))]
        self._ours = [line.rstrip() for line in self._new]
        self._known = Counter(self._theirs)

    def merged(self) -> str:
        """The merged text. Raises _RefusedError."""
        unknown = {at for at, line in enumerate(self._turns(self._ours)) if line not in self._known}
        marks = {at for at in unknown if is_marker(self._ours[at])}
        if any(_INSIDE.search(self._ours[at]) for at in unknown - marks):
            raise _RefusedError(NO_PLACE)
        if not marks:
            shown = Counter(filter(None, self._ours)) & self._known
            if not any(self._ours) or shown.total() < _WHOLE * sum(map(bool, self._theirs)):
                raise _RefusedError(NO_PLACE)
            return self._joined(self._new)
        places, found = self._places(), list[str]()
        for (at, row), (following, after) in pairwise([(-1, -1), *places, (len(self._ours), len(self._theirs))]):
            between, edge = range(at + 1, following), at < 0 or following == len(self._ours)
            if not marks.isdisjoint(between):
                # A line beside a marker may be new, or a change of what is left out.
                if any(self._ours[each] for each in between if each not in marks):
                    raise _RefusedError(NO_PLACE)
                found += self._lines[row + 1 : after]
            elif edge and sum(map(bool, self._theirs[row + 1 : after])) > len(between):
                raise _RefusedError(NO_PLACE)  # without a marker at its end, the rest of the file would be deleted
            else:
                found += self._new[at + 1 : following]
            found += self._lines[after : after + 1]
        return self._joined(found)

    def _places(self) -> list[tuple[int, int]]:
        """The snippet's and the file's number of each line that is certainly the same. Raises _RefusedError."""
        ours, theirs, count = self._ours, self._theirs, Counter(self._ours)
        rows = {line: row for row, line in enumerate(theirs)}
        found = {at: rows[line] for at, line in enumerate(ours) if line and count[line] == self._known[line] == 1}
        taken = set(found.values())
        for step in (1, -1):
            for start in self._turns(sorted(found)):
                at, row = start + step, found[start] + step
                while ours[at : at + 1] == theirs[row : row + 1] != [] and at not in found and row not in taken:
                    found[at] = row
                    taken.add(row)
                    at, row = at + step, row + step
        places = sorted(found.items())
        if not places or any(row >= after for (_, row), (_, after) in pairwise(places)):
            raise _RefusedError(NO_PLACE)
        return places

    def _turns(self, items: Sequence[T]) -> Iterator[T]:
        """The items. Raises _RefusedError when it is late."""
        for at, item in enumerate(items):
            if at % _TURN == 0 and self._late():
                raise _RefusedError(TOO_LONG)
            yield item

    def _joined(self, lines: Sequence[str]) -> str:
        """The text of lines with or without their ends, which ends as the original does."""
        end = line_end_of(self._original)
        text = "".join(line if line.endswith(("\n", "\r")) else line + end for line in self._turns(lines))
        ended = not self._original.strip() or self._original.endswith(("\n", "\r"))
        return text if ended else text.removesuffix(end)


def _indented_as(snippet: str, original: str) -> str:
    """The snippet, indented with tabs if the original is."""
    if "\n\t" not in original or "\n  " in original or "\n\t" in snippet:
        return snippet
    step = min((len(each) for each in re.findall(r"(?m)^ {2,}", snippet)), default=4)
    return re.sub(r"(?m)^ +", lambda each: "\t" * (len(each[0]) // step) + " " * (len(each[0]) % step), snippet)
