"""Zed's prompts for its own models, in the two formats that a local server gets, and the answers to them.

    <[fim-suffix]> text behind the region <[fim-prefix]><filename>other.rs … <filename>edit_history … <filename>this.rs
    zeta2:    text before the region, <<<<<<< CURRENT, the region with <|user_cursor|>, =======
    zeta2.1:  text before the region <|marker_1|> a block of the region <|marker_2|> … <|marker_n|>
    <[fim-middle]>

An answer in zeta2 is the whole region; in zeta2.1 it is what stands between two markers, which the editor finds again
by their numbers. What the user's code has of these words makes no difference, or the prompt is refused: an edit that
lands in the wrong place is worse than none. zeta2.1 is written, too, for such a model behind another server.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from calomel.prompts.edit_prompt import (
    EditPrompt,
    ForeignPromptError,
    cut_cursor,
    parse_edits,
    sort_snippets,
    split_files,
)
from calomel.prompts.own import diff_text
from calomel.prompts.parts import EditRegion, PromptParts, common_prefix

SUFFIX: Final = "<[fim-suffix]>"
PREFIX: Final = "<[fim-prefix]>"
MIDDLE: Final = "<[fim-middle]>"
FILE: Final = "<filename>"
CURSOR: Final = "<|user_cursor|>"
SEPARATOR: Final = "=======\n"
UPDATED: Final = ">>>>>>> UPDATED\n"
END: Final = "<[end▁of▁sentence]>"
HISTORY: Final = "edit_history"

_MARKER: Final = re.compile(r"<\|marker_([1-9][0-9]{0,3})\|>")
_LAST_MARKER: Final = re.compile(r"<\|marker_([1-9][0-9]{0,3})\|>\s{0,8}\Z")
# How long a last marker with the blanks behind it may be.
_TAIL: Final = 32
_CURRENT_LINE: Final = re.compile(r"^<<<<<<< CURRENT\n", re.MULTILINE)
# Rows that an excerpt leaves out.
_GAP: Final = re.compile(r"^\.\.\.\n", re.MULTILINE)
# What the editor would read as its own words if it stood in an answer.
_WORDS: Final = re.compile(r"<\|marker_\+?[0-9]|<\|user_cursor\|>|<\[end▁of▁sentence\]>")
_FORGED: Final = re.compile("|".join((*map(re.escape, (SUFFIX, PREFIX, MIDDLE, FILE, CURSOR, END)), r"<\|marker_")))
# As many files as anybody puts into a prompt.
_FILES_KEPT: Final = 256


@dataclass(frozen=True, slots=True)
class ZetaPrompt:
    """A prompt, and what its answer needs.

    Attributes:
        edit: what it shows.
        markers: offsets of the markers in the region, the first at its beginning, the last at its end; none in zeta2.
        line_end: what stands behind the region but does not belong to it.
    """

    edit: EditPrompt
    markers: tuple[int, ...]
    line_end: str = ""


def is_zeta(prompt: str) -> bool:
    """Whether a prompt has one of these formats."""
    front = _front(prompt)
    return (
        prompt.startswith(SUFFIX)
        and front is not None
        and (prompt.endswith(f"\n{SEPARATOR}", 0, front) or _last_marker(prompt, front) is not None)
    )


def parse_zeta(prompt: str) -> ZetaPrompt:
    """Read a prompt of either format.

    Raises:
        ForeignPromptError: it is none, or there is no telling where its region begins or ends.
    """
    front = _front(prompt)
    if front is None or not is_zeta(prompt):
        raise ForeignPromptError("The prompt is in neither of the formats zeta2 and zeta2.1.")
    divided = prompt.find(f"\n{PREFIX}{FILE}", 0, front) + 1 or prompt.find(PREFIX, 0, front)
    if divided < 0:
        raise ForeignPromptError("The prompt has no <[fim-prefix]>.")
    suffix = prompt[len(SUFFIX) : divided]
    files = split_files(prompt[divided + len(PREFIX) : front], (FILE,))[-_FILES_KEPT:]
    path, text = files[-1]
    if _last_marker(prompt, front) is None:
        return _zeta2(path, text, suffix, files[:-1])
    return _zeta21(path, text, suffix, files[:-1])


def zeta_answer(prompt: ZetaPrompt, region: str | None, stop: Sequence[str] = ()) -> str:
    """The answer that makes `region` of the region; None when there is nothing to do, which is an answer too.

    An answer that the editor would misread, or that one of the `stop` texts would end too early, becomes that too.
    """
    answer, end = _zeta2_answer(prompt, region) if not prompt.markers else _zeta21_answer(prompt, region)
    found = [(at, at + len(text)) for text in stop if (at := answer.find(text)) >= 0]
    stopped, behind = min(found, default=(len(answer), len(answer) + 1))
    if behind > end:
        return answer[:stopped]
    # Silence has no text to stop in, unless even its marker is one.
    return "" if region is None else zeta_answer(prompt, None, stop)


def write_zeta(parts: PromptParts) -> str:
    """The prompt of zeta2.1 about a region as one block; what the user's text has of its words is broken up by a blank.

    A region ends before its last line end, as the editor's do.
    """
    region = parts.region or EditRegion("")
    text = region.text.removesuffix("\n")
    end = region.text[len(text) :]
    at = None if region.cursor is None else min(region.cursor, len(text))
    inside = _plain(text) if at is None else f"{_plain(text[:at])}{CURSOR}{_plain(text[at:])}"
    files = [(each.path, _plain(each.text)) for each in (*parts.related, *parts.far)]
    edits = (f"--- a/{hunk.path}\n+++ b/{hunk.path}\n{_plain(diff_text(hunk))}" for hunk in parts.edits)
    files += [(HISTORY, "".join(edits))] if parts.edits else []
    others = "".join(f"{FILE}{path}\n{_whole_lines(shown)}\n" for path, shown in files)
    own = f"{FILE}{parts.path or 'untitled'}\n{_plain(parts.prefix)}{_marker(0)}{inside}{_marker(1)}"
    return f"{SUFFIX}{_whole_lines(_plain(end + parts.suffix))}{PREFIX}{others}{own}\n{MIDDLE}"


def read_zeta(answer: str, region: str) -> str | None:
    """What an answer to `write_zeta` makes of `region`; None for one without both markers."""
    marks = list(_MARKER.finditer(answer))
    if len(marks) < 2:  # noqa: PLR2004 (the first and the last)
        return None
    if marks[0][1] == marks[-1][1]:
        return region
    text = _MARKER.sub("", answer[marks[0].end() : marks[-1].start()]).replace(CURSOR, "")
    return text + region[len(region.removesuffix("\n")) :]


def _plain(text: str) -> str:
    return _FORGED.sub(lambda found: f"{found[0][:1]} {found[0][1:]}", text)


def _zeta2(path: str | None, text: str, suffix: str, files: Sequence[tuple[str | None, str]]) -> ZetaPrompt:
    marks = list(_CURRENT_LINE.finditer(text))
    if len(marks) != 1:
        raise ForeignPromptError("The prompt has not exactly one line <<<<<<< CURRENT before its region.")
    prefix, region = text[: marks[0].start()], text[marks[0].end() : -len(SEPARATOR)]
    cursor, region = cut_cursor(region, CURSOR)
    # The editor's regions end before a line end, with which the suffix begins then; the prompt adds one.
    line_end = "\n" if suffix.startswith("\n") and region.endswith("\n") and cursor != len(region) else ""
    return ZetaPrompt(_edit(path, prefix, region.removesuffix(line_end), suffix, cursor, files), (), line_end)


def _zeta21(path: str | None, text: str, suffix: str, files: Sequence[tuple[str | None, str]]) -> ZetaPrompt:
    marks = list(_MARKER.finditer(text))
    if len(marks) < 2 or [int(mark[1]) for mark in marks] != list(range(1, len(marks) + 1)):  # noqa: PLR2004
        raise ForeignPromptError("The markers of the region are not numbered 1, 2, 3, …")
    blocks = [text[one.end() : other.start()] for one, other in pairwise(marks)]
    cursor, _ = cut_cursor("".join(blocks), CURSOR)
    blocks = [block.replace(CURSOR, "") for block in blocks]
    markers = tuple(accumulate(map(len, blocks), initial=0))
    edit = _edit(path, text[: marks[0].start()], "".join(blocks), suffix, cursor, files)
    return ZetaPrompt(edit, markers)


def _edit(
    path: str | None,
    prefix: str,
    region: str,
    suffix: str,
    cursor: int | None,
    files: Sequence[tuple[str | None, str]],
) -> EditPrompt:
    others = [(name, text) for name, text in files if name != HISTORY]
    # Between two files the prompt has a blank line.
    pieces = [(name, piece) for name, text in others for piece in _GAP.split(text.removesuffix("\n")) if piece]
    related, staged = sort_snippets(((name, _whole_lines(piece)) for name, piece in pieces), path)
    history = "".join(text for name, text in files if name == HISTORY)
    edits = (*staged, *parse_edits(history, path or ""))
    return EditPrompt(path, prefix, region, suffix, cursor, edits, related)


def _zeta2_answer(prompt: ZetaPrompt, region: str | None) -> tuple[str, int]:
    """The answer, and where its text ends."""
    if region is None or region == prompt.edit.region:
        # Nothing at all: the end marker alone would delete the region.
        return "", 0
    text = region + (prompt.line_end if region and not region.endswith("\n") else "")
    if _WORDS.search(text) or text.endswith(UPDATED) or text.lstrip().startswith("NO_EDITS"):
        return "", 0
    return text + UPDATED, len(text)


def _zeta21_answer(prompt: ZetaPrompt, region: str | None) -> tuple[str, int]:
    """The answer, and where its text ends."""
    old, markers = prompt.edit.region, prompt.markers
    if region is None or region == old:
        nearest = min(range(len(markers)), key=lambda at: abs(markers[at] - (prompt.edit.cursor or 0)))
        return _marker(nearest) * 2, 2 * len(_marker(nearest))
    first, last = min(_around(old, region, markers), key=lambda pair: markers[pair[1]] - markers[pair[0]])
    span = region[markers[first] : len(region) - (len(old) - markers[last])]
    if _WORDS.search(span):
        return _zeta21_answer(prompt, None)
    answer = f"{_marker(first)}{span}{_marker(last)}"
    return answer, len(answer)


def _around(old: str, new: str, markers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs of markers that hold the change; its place is not always certain, as of the lost `a` of `aa`."""
    latest = common_prefix(old, new)
    removed = len(old) - latest - common_prefix(old[latest:][::-1], new[latest:][::-1])
    # Text that was only put in or taken out could also have been so a bit further in front.
    earliest = len(old) - common_prefix(old[::-1], new[::-1]) - removed
    places = {latest, earliest, *markers, *(marker - removed for marker in markers)}
    for place in sorted((place for place in places if earliest <= place <= latest), reverse=True):
        first = bisect_right(markers, place, hi=len(markers) - 1) - 1
        yield first, bisect_left(markers, place + removed, lo=first + 1)


def _marker(index: int) -> str:
    return f"<|marker_{index + 1}|>"


def _front(prompt: str) -> int | None:
    """Where the `<[fim-middle]>` at the end of the prompt begins; None when there is none."""
    end = len(prompt)
    while end and len(prompt) - end < _TAIL and prompt[end - 1].isspace():
        end -= 1
    return end - len(MIDDLE) if prompt.endswith(MIDDLE, 0, end) else None


def _last_marker(prompt: str, front: int) -> re.Match[str] | None:
    return _LAST_MARKER.search(prompt[max(0, front - _TAIL) : front])


def _whole_lines(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"
