"""Zed's prompts in two formats, and the answers: read for Zed's users, written for models trained on them.

    <[fim-suffix]> text after the region <[fim-prefix]><filename>other.rs … <filename>edit_history … <filename>this.rs
    zeta2:    text before the region, <<<<<<< CURRENT, the region with <|user_cursor|>, =======
    zeta2.1:  text before the region <|marker_1|> a block of the region <|marker_2|> … <|marker_n|>
    <[fim-middle]>

An answer in zeta2 is the whole region; in zeta2.1 it is the text between two markers, which the editor finds again by
their numbers. Such words in the user's code make no difference, or the prompt is rejected: an edit in the wrong place
is worse than none.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from typing import Final

from calomel.prompts.edit_prompt import (
    EditPrompt,
    ForeignPromptError,
    cut_cursor,
    ended_like,
    mended,
    numbered,
    parse_edits,
    sort_snippets,
    split_files,
    unforged,
    whole_line,
)
from calomel.prompts.parts import EditRegion, Hunk, PromptParts, common_prefix

SUFFIX: Final = "<[fim-suffix]>"
PREFIX: Final = "<[fim-prefix]>"
MIDDLE: Final = "<[fim-middle]>"
FILE: Final = "<filename>"
CURSOR: Final = "<|user_cursor|>"
CURRENT: Final = "<<<<<<< CURRENT\n"
SEPARATOR: Final = "=======\n"
UPDATED: Final = ">>>>>>> UPDATED\n"
END: Final = "<[end▁of▁sentence]>"
HISTORY: Final = "edit_history"

_MARKER: Final = re.compile(r"<\|marker_([1-9][0-9]{0,3})\|>")
_LAST_MARKER: Final = re.compile(r"<\|marker_([1-9][0-9]{0,3})\|>\s{0,8}\Z")
# Maximum length of a last marker with the blanks after it.
_TAIL: Final = 32
_CURRENT_LINE: Final = re.compile(f"^{CURRENT}", re.MULTILINE)
# Stands for rows that an excerpt leaves out.
_ELLIPSIS: Final = "...\n"
_GAP: Final = re.compile(f"^{re.escape(_ELLIPSIS)}", re.MULTILINE)
_ACCEPTED: Final = "// User accepted prediction:\n"
_NO_EDITS: Final = "NO_EDITS"
# How the editor cuts a region for zeta2.1: lines of a block, and how far it searches for a block's first line.
_LEAST_LINES: Final = 6
_MOST_LINES: Final = 16
_NUDGE: Final = 5
_TAILS: Final = ("", "break", "continue", "return", "throw", "end")
# The newest edits that are shown.
_EDITS_SHOWN: Final = 6
# Lines of context in the editor's diffs.
_CONTEXT: Final = 3
# What the editor would read as its own markup if it occurred in an answer.
_WORDS: Final = re.compile(r"<\|marker_\+?[0-9]|<\|user_cursor\|>|<\[end▁of▁sentence\]>")
# As many files as anybody puts into a prompt.
_FILES_KEPT: Final = 256


@dataclass(frozen=True, slots=True)
class ZetaPrompt:
    """A prompt, and what is needed to read its answer.

    Attributes:
        edit: what it shows.
        markers: offsets of the markers in the region, the first at its beginning, the last at its end; none in zeta2.
        line_end: what follows the region but does not belong to it.
    """

    edit: EditPrompt
    markers: tuple[int, ...]
    line_end: str = ""

    @property
    def guess(self) -> str:
        """As `Reply.guess`: the region as it is, with all its markers."""
        if not self.markers:
            return self.answered(self.edit.region)
        blocks = (self.edit.region[start:end] for start, end in pairwise(self.markers))
        return "".join(f"{_marker(at)}{block}" for at, block in enumerate((*blocks, "")))

    def answered(self, region: str) -> str:
        """As `Reply.answered`."""
        text = unforged(region).removesuffix(self.line_end)
        if self.markers:
            return zeta_answer(self, text)
        return f"{whole_line(text) if text else ''}{UPDATED}"

    def read(self, answer: str) -> str | None:
        """As `Reply.read`."""
        found = (_between if self.markers else _before_end)(self, answer.partition(END)[0].replace(CURSOR, ""))
        return None if found is None else mended(found) + self.line_end


def is_zeta(prompt: str) -> bool:
    """Whether a prompt has one of these formats."""
    front = _front(prompt)
    return (
        prompt.startswith(SUFFIX)
        and front is not None
        and (prompt.endswith(f"\n{SEPARATOR}", 0, front) or _last_marker(prompt, front) is not None)
    )


def write_zeta(parts: PromptParts, *, blocks: bool) -> tuple[str, ZetaPrompt]:
    """A prompt of zeta2.1, or without `blocks` of zeta2, as the editor writes it, and what its answer needs."""
    region = parts.region or EditRegion("")
    # The editor's regions end before a line end.
    line_end = "\n" if region.text.endswith("\n") else ""
    text = region.text.removesuffix("\n")
    # The editor asks at the cursor alone: another place gets it in its middle.
    cursor = len(unforged(text[: _middle(text) if region.cursor is None else region.cursor]))
    edit = EditPrompt(parts.path, parts.prefix, unforged(text), parts.suffix, cursor)
    prompt = ZetaPrompt(edit, _boundaries(edit.region) if blocks else (), line_end)
    related = "".join(
        f"{FILE}{unforged(path)}\n{_ELLIPSIS.join(whole_line(unforged(each.text)) for each in excerpts)}"
        for path, excerpts in groupby((*parts.related, *parts.far), lambda each: each.path)
    )
    edits = "".join(_event(each, parts) for each in parts.edits[-_EDITS_SHOWN:])
    others = f"{related}\n" * bool(related) + f"{FILE}{HISTORY}\n{edits}\n" * bool(edits)
    shown = _marked(prompt) if blocks else CURRENT + _with_cursor(edit.region, cursor)
    own = f"{FILE}{unforged(parts.path or 'untitled')}\n{unforged(parts.prefix)}{whole_line(shown)}"
    front = f"{whole_line(SUFFIX + line_end + unforged(parts.suffix))}{PREFIX}{others}{own}"
    return f"{front}{'' if blocks else SEPARATOR}{MIDDLE}", prompt


def parse_zeta(prompt: str) -> ZetaPrompt:
    """Read a prompt of either format.

    Raises:
        ForeignPromptError: it has neither format, or the ends of its region are ambiguous.
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
    """The answer that turns the region into `region`; None if there is nothing to do, which has an answer too.

    The same answer replaces one that the editor would misread, or that a `stop` text would end too early.
    """
    answer, end = _zeta2_answer(prompt, region) if not prompt.markers else _zeta21_answer(prompt, region)
    found = [(at, at + len(text)) for text in stop if (at := answer.find(text)) >= 0]
    stopped, behind = min(found, default=(len(answer), len(answer) + 1))
    if behind > end:
        return answer[:stopped]
    # An empty answer contains no stop text, unless its marker does.
    return "" if region is None else zeta_answer(prompt, None, stop)


def _event(hunk: Hunk, parts: PromptParts) -> str:
    path = unforged(hunk.path)
    diff = numbered(hunk, *_context(hunk, parts))
    return f"{_ACCEPTED * hunk.predicted}--- a/{path}\n+++ b/{path}\n{unforged(diff)}"


def _context(hunk: Hunk, parts: PromptParts) -> tuple[list[str], list[str]]:
    """The unchanged lines around an edit in the shown text, if it can be found there."""
    new = hunk.after.splitlines(keepends=True)
    if hunk.path != parts.path or not (new or hunk is parts.edits[-1]):
        return [], []
    region = "" if parts.region is None else parts.region.text
    lines = f"{parts.prefix}{region}{parts.suffix}".splitlines(keepends=True)
    row, most = hunk.start_line - parts.first_line, len(lines) - len(new)
    # Later edits may have moved it.
    rows = sorted(range(most + 1), key=lambda at: abs(at - row)) if new else [row] * (0 <= row <= most)
    at = next((at for at in rows if lines[at : at + len(new)] == new), None)
    if at is None:
        return [], []
    end = at + len(new)
    return lines[max(0, at - _CONTEXT) : at], lines[end : end + _CONTEXT]


def _middle(text: str) -> int:
    """Where the line in the middle begins."""
    lines = text.splitlines(keepends=True)
    return len("".join(lines[: len(lines) // 2]))


def _marked(prompt: ZetaPrompt) -> str:
    """The region with its markers, and with the cursor in the first block that it touches."""
    text, cursor, shown = prompt.edit.region, prompt.edit.cursor, ""
    for at, (start, end) in enumerate(pairwise(prompt.markers)):
        block = text[start:end]
        if cursor is not None and (start < cursor <= end or cursor == start == 0):
            block = _with_cursor(block, cursor - start)
        shown += f"{_marker(at)}{block}"
    return f"{shown}{_marker(len(prompt.markers) - 1)}"


def _with_cursor(text: str, cursor: int | None) -> str:
    return text if cursor is None else f"{text[:cursor]}{CURSOR}{text[cursor:]}"


def _boundaries(text: str) -> tuple[int, ...]:
    """Where the blocks of a region begin, and where the last one ends.

    A block begins after a blank line if that leaves enough lines on both sides, or if the previous one is too long;
    preferably not with a line that closes something, but with one of the next lines.
    """
    lines = text.removesuffix("\n").split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    markers, begun, at = [0], 0, 0
    while at < len(lines):
        target = next((row for row in range(at, min(at + _NUDGE, len(lines))) if _opens(lines[row])), at)
        behind_blank = at - begun >= _LEAST_LINES and lines[at].strip() and not lines[at - 1].strip()
        if (behind_blank and len(lines) - target >= _LEAST_LINES) or at - begun >= _MOST_LINES:
            markers.append(starts[target])
            begun = at = target
        at += 1
    return (*markers, len(text))


def _opens(line: str) -> bool:
    text = line.strip()
    return not text.startswith(("}", "]", ")")) and text.rstrip(";") not in _TAILS


def _before_end(prompt: ZetaPrompt, answer: str) -> str | None:
    text, ended, _ = answer.partition(UPDATED.rstrip())
    if text.lstrip().startswith(_NO_EDITS):
        return prompt.edit.region
    return ended_like(text, prompt.edit.region) if ended else None


def _between(prompt: ZetaPrompt, answer: str) -> str | None:
    """The region with the text between the first and the last marker; markers between those are ignored."""
    tags, old, markers = list(_MARKER.finditer(answer)), prompt.edit.region, prompt.markers
    if len(tags) < 2 or answer[tags[-1].end() :].strip():  # noqa: PLR2004
        return None
    first, last = int(tags[0][1]) - 1, int(tags[-1][1]) - 1
    if first == last:
        return old
    if not first < last < len(markers):
        return None
    new = _MARKER.sub("", answer[tags[0].end() : tags[-1].start()])
    return old[: markers[first]] + new + old[markers[last] :]


def _zeta2(path: str | None, text: str, suffix: str, files: Sequence[tuple[str | None, str]]) -> ZetaPrompt:
    marks = list(_CURRENT_LINE.finditer(text))
    if len(marks) != 1:
        raise ForeignPromptError("The prompt must have exactly one line <<<<<<< CURRENT before its region.")
    prefix, region = text[: marks[0].start()], text[marks[0].end() : -len(SEPARATOR)]
    cursor, region = cut_cursor(region, CURSOR)
    # The editor's regions end before a line end, with which the suffix then begins; the prompt adds one.
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
    # The prompt has a blank line between two files.
    pieces = [(name, piece) for name, text in others for piece in _GAP.split(text.removesuffix("\n")) if piece]
    related, staged = sort_snippets(((name, whole_line(piece)) for name, piece in pieces), path)
    history = "".join(text for name, text in files if name == HISTORY)
    edits = (*staged, *parse_edits(history, path or ""))
    return EditPrompt(path, prefix, region, suffix, cursor, edits, related)


def _zeta2_answer(prompt: ZetaPrompt, region: str | None) -> tuple[str, int]:
    """The answer, and where its text ends."""
    if region is None or region == prompt.edit.region:
        # Nothing at all: the end marker alone would delete the region.
        return "", 0
    text = region + (prompt.line_end if region and not region.endswith("\n") else "")
    if _WORDS.search(text) or text.endswith(UPDATED) or text.lstrip().startswith(_NO_EDITS):
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
    """Pairs of markers around the change; its place is not always certain, as when `aa` loses an `a`."""
    latest = common_prefix(old, new)
    removed = len(old) - latest - common_prefix(old[latest:][::-1], new[latest:][::-1])
    # Text that was only inserted or deleted could also have been so a bit earlier.
    earliest = len(old) - common_prefix(old[::-1], new[::-1]) - removed
    places = {latest, earliest, *markers, *(marker - removed for marker in markers)}
    for place in sorted((place for place in places if earliest <= place <= latest), reverse=True):
        first = bisect_right(markers, place, hi=len(markers) - 1) - 1
        yield first, bisect_left(markers, place + removed, lo=first + 1)


def _marker(index: int) -> str:
    return f"<|marker_{index + 1}|>"


def _front(prompt: str) -> int | None:
    """Where the `<[fim-middle]>` at the end of the prompt begins; None if there is none."""
    end = len(prompt)
    while end and len(prompt) - end < _TAIL and prompt[end - 1].isspace():
        end -= 1
    return end - len(MIDDLE) if prompt.endswith(MIDDLE, 0, end) else None


def _last_marker(prompt: str, front: int) -> re.Match[str] | None:
    return _LAST_MARKER.search(prompt[max(0, front - _TAIL) : front])
