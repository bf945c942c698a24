"""The data of a prompt, before any format orders it, and helpers for the lines of a text.

What the editor's side knows and a model may see is plain text with plain numbers, so that it can be sent to another
process as it is. Lines are counted from 0. Nothing here has been checked for secrets: the door by which it leaves does
that. Hunks of whole lines are the diff stream that a model reads and is trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from io import StringIO
from typing import Annotated, Final, NamedTuple

from msgspec import Meta

# Beyond this many characters on either side it is a paste, a formatter or another branch, and only counted.
SIZE_LIMIT: Final = 6144
# PATH_MAX of Linux, uinteger of the Language Server Protocol: limits for what comes from outside.
Path = Annotated[str, Meta(max_length=4096)]
Line = Annotated[int, Meta(ge=0, le=2**31 - 1)]
# An excerpt has a heading of about ten tokens, so more of them would be headings alone.
_MAX_EXCERPTS: Final = Meta(max_length=1024)
_RegionLines = Annotated[int, Meta(ge=0, le=1000)]
# difflib is quadratic at worst; larger regions are shown as one replacement.
_DIFF_LINES: Final = 200
# After an accepted edit more of the same often follows (Copilot's autoExpandEditWindowLines).
_EXTENDED_BELOW: Final = 10


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some lines of a file, as they are.

    Attributes:
        path: relative to the workspace, with forward slashes.
        start_line: where `text` begins in the file.
        text: whole lines, each with its line end.
    """

    path: Path
    start_line: Line
    text: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """One settled edit of the diff stream, as a person would name it.

    Attributes:
        path: relative to the workspace, with forward slashes.
        start_line: of the old text, in the file as it was before the edit.
        before: the replaced lines, each with its line end; empty for an insertion.
        after: the lines that replace them; empty for a deletion.
        predicted: whether the user accepted it as a suggestion.
    """

    path: Path
    start_line: Line
    before: str
    after: str
    predicted: bool = False


@dataclass(frozen=True, slots=True)
class FileText:
    """The whole file around a window, for whoever hides secrets: what announces one may be far above it.

    Attributes:
        text: of the file.
        start: where the window of a prompt begins in it.
    """

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class EditRegion:
    """The lines around a place that a next-edit model may rewrite.

    `prefix + text + suffix` of the prompt's parts is the window of the file that the model sees.

    Attributes:
        text: the region's current text.
        cursor: offset of the cursor in `text`, in characters; None when the cursor is elsewhere.
    """

    text: str
    cursor: int | None = None


@dataclass(frozen=True, slots=True)
class PromptParts:
    """What a model sees, most stable part first.

    Attributes:
        related: excerpts of other files, the most useful one last.
        far: excerpts of the current file around the window, as of the last snapshot, in file order. The window itself
            may be among them.
        edits: the settled edits, oldest first. Append-only between two snapshots.
        path: of the current file; None when it has none.
        prefix: the window's text before the hole (or the region).
        suffix: the window's text after it.
        region: what to rewrite; None if the hole is empty, which is fill-in-the-middle.
        first_line: where the window begins in the file; 0 if that is unknown. Set for regions.
    """

    related: Annotated[tuple[Excerpt, ...], _MAX_EXCERPTS] = ()
    far: Annotated[tuple[Excerpt, ...], _MAX_EXCERPTS] = ()
    edits: Annotated[tuple[Hunk, ...], _MAX_EXCERPTS] = ()
    path: Path | None = None
    prefix: str = ""
    suffix: str = ""
    region: EditRegion | None = None
    first_line: Line = 0

    def with_window(self, prefix: str, suffix: str) -> PromptParts:
        """The same with less of the window: the end of its prefix, and the beginning of its suffix."""
        left_out = self.prefix.count("\n") - prefix.count("\n")
        return replace(self, prefix=prefix, suffix=suffix, first_line=max(0, self.first_line + left_out))

    def with_paths(self, shown: Callable[[str], str]) -> PromptParts:
        """The same with other names of the files."""
        return replace(
            self,
            related=tuple(replace(each, path=shown(each.path)) for each in self.related),
            far=tuple(replace(each, path=shown(each.path)) for each in self.far),
            edits=tuple(replace(each, path=shown(each.path)) for each in self.edits),
            path=None if self.path is None else shown(self.path),
        )

    def with_line_feeds(self) -> PromptParts:
        r"""The same with \n for \r\n: models know hardly any other line end."""
        region = self.region
        if region is not None:
            cursor = None if region.cursor is None else len(line_feeds(region.text[: region.cursor]))
            region = EditRegion(line_feeds(region.text), cursor)
        return replace(
            self,
            related=tuple(replace(each, text=line_feeds(each.text)) for each in self.related),
            far=tuple(replace(each, text=line_feeds(each.text)) for each in self.far),
            edits=tuple(
                replace(each, before=line_feeds(each.before), after=line_feeds(each.after)) for each in self.edits
            ),
            prefix=line_feeds(self.prefix),
            suffix=line_feeds(self.suffix),
            region=region,
        )


def line_feeds(text: str) -> str:
    r"""A text with \n for \r\n."""
    return text.replace("\r\n", "\n")


@dataclass(frozen=True, slots=True)
class RegionBounds:
    """How large a region to rewrite may be; a checkpoint says what it was trained with.

    Attributes:
        above: lines above the line that the region is for.
        below: lines below it.
        characters: of the whole region; lines at its ends are left out until it fits.
        context: maximum tokens of a prompt about a region; 0 for the usual maximum.
        whole: the function around the line is the region, or the whole text, if it has no more lines than this.
    """

    # The values of Copilot and of Sweep.
    above: _RegionLines = 2
    below: _RegionLines = 5
    characters: Annotated[int, Meta(ge=1, le=2**53)] = 6000
    context: Annotated[int, Meta(ge=0, le=2**20)] = 0
    whole: _RegionLines = 0

    def within(self, tokens: int) -> RegionBounds:
        """The same, but with no more characters than a prompt of `tokens` can show beside an answer as long."""
        return replace(self, characters=max(1, min(self.characters, tokens * 3 // 2)))

    def extended(self) -> RegionBounds:
        """The same with more lines below."""
        return replace(self, below=max(self.below, _EXTENDED_BELOW))


def region_around(text: str, focus: int, bounds: RegionBounds) -> tuple[int, int]:
    """The range of the lines around `focus`; its own line alone if that is too long already.

    The nearest lines come first, of two equally near ones the lower: what is written next is below.
    """
    start, end = line_start(text, focus), next_line(text, focus)
    above, below = bounds.above, bounds.below
    while above or below:
        if below and (below - bounds.below >= above - bounds.above or not above):
            below -= 1
            further = start, next_line(text, end)
        else:
            above -= 1
            further = line_start(text, _before_line_end(text, start)) if start else start, end
        if further[1] - further[0] <= bounds.characters:
            start, end = further
        elif further[0] < start:
            above = 0
        else:
            below = 0
    return start, end


def line_start(text: str, offset: int) -> int:
    """Where the line of `offset` begins."""
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def line_end(text: str, offset: int) -> int:
    """Where the line of `offset` ends, before its line end."""
    return min((at for at in (text.find("\n", offset), text.find("\r", offset)) if at >= 0), default=len(text))


def next_line(text: str, offset: int) -> int:
    """Where the line after that of `offset` begins; the end of the text for the last one."""
    end = line_end(text, offset)
    return min(len(text), end + (2 if text[end : end + 2] == "\r\n" else 1))


def row_of(text: str, offset: int) -> int:
    r"""Index of the line of `offset`, by \n and lone \r."""
    rows = text.count("\n", 0, offset)
    if text.find("\r", 0, offset) >= 0:
        rows += text.count("\r", 0, offset) - text.count("\r\n", 0, offset)
    return rows


def _before_line_end(text: str, start: int) -> int:
    """Before the line end directly before `start`."""
    return start - (2 if text[start - 2 : start] == "\r\n" else 1)


def text_hunks(path: str, old: str, new: str, *, predicted: bool = False) -> tuple[Hunk, ...]:
    """The differences of two texts as hunks of whole lines.

    None for whitespace-only differences, nor for those too large to be one person's edit.

    Args:
        path: of the file.
        old: the text before.
        new: the text after.
        predicted: whether the user accepted the edit as a suggestion.
    """
    start, old_lines, new_lines = _changed_lines(old, new)
    if max(sum(map(len, old_lines)), sum(map(len, new_lines))) > SIZE_LIMIT:
        return ()
    if len(old_lines) + len(new_lines) > _DIFF_LINES:
        blocks = [(0, len(old_lines), 0, len(new_lines))]
    else:
        blocks = differences(old_lines, new_lines)
    return tuple(
        Hunk(path, start + low, "".join(old_lines[low:high]), "".join(new_lines[first:last]), predicted)
        for low, high, first, last in blocks
        if "".join(old_lines[low:high]).split() != "".join(new_lines[first:last]).split()
    )


def _changed_lines(old: str, new: str) -> tuple[int, list[str], list[str]]:
    """The first line that differs, and the lines of both texts from there to the last that differs."""
    prefix = common_prefix(old, new)
    begin = line_start(old, prefix)
    # No line begins between a CR and an LF.
    if begin and old[begin - 1] == "\r" and "\n" in (old[begin : begin + 1], new[begin : begin + 1]):
        begin = line_start(old, begin - 1)
    suffix = common_suffix(old[begin:], new[begin:])
    # What both have in common after the next line end is left out; a CR LF is kept whole.
    end = old.find("\n", len(old) - suffix) + 1
    rest = len(old) - end if end else 0
    old_lines = split_lines(old[begin : len(old) - rest])
    new_lines = split_lines(new[begin : len(new) - rest])
    while old_lines and new_lines and old_lines[-1] == new_lines[-1]:
        old_lines.pop()
        new_lines.pop()
    return row_of(old, begin), old_lines, new_lines


class Edit(NamedTuple):
    """Replace the characters from `start` to `end` of a text by `text`."""

    start: int
    end: int
    text: str

    def apply(self, text: str) -> str:
        """The text after the edit. Raises ValueError if the range is outside of the text."""
        if not 0 <= self.start <= self.end <= len(text):
            raise ValueError(f"the range {self.start} to {self.end} is not inside {len(text)} characters")
        return text[: self.start] + self.text + text[self.end :]

    def inverse(self, text: str) -> Edit:
        """The edit that undoes this one of `text`."""
        return Edit(self.start, self.start + len(self.text), text[self.start : self.end])


def edited(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """`text` after edits, which are sorted, do not overlap, and all refer to `text` itself."""
    pieces: list[str] = []
    at = 0
    for start, end, new in edits:
        pieces += (text[at:start], new)
        at = end
    return "".join((*pieces, text[at:]))


def composed(length: int, edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Successive edits as edits of the text of `length` before the first: sorted, not touching.

    Those at one place, or at neighbouring ones, become one.
    """
    # Where each character of the text so far comes from; a string is one that was inserted.
    origin: list[int | str] = list(range(length))
    for edit in edits:
        origin[edit.start : edit.end] = edit.text
    found: list[Edit] = []
    at, written = 0, ""
    for each in (*origin, length):
        if isinstance(each, str):
            written += each
            continue
        if written or each > at:
            found.append(Edit(at, each, written))
        at, written = each + 1, ""
    return tuple(found)


def split_lines(text: str) -> list[str]:
    """Lines with their ends; the last one has none and may be empty, so there is always one.

    A line ends at LF, CRLF or CR, as in the Language Server Protocol; not at the other ends that `str.splitlines`
    knows.
    """
    lines = list(StringIO(text, newline=""))
    if not lines or lines[-1][-1] in "\r\n":
        lines.append("")
    return lines


def trimmed(text: str, edits: Iterable[tuple[int, int, str]]) -> tuple[Edit, ...]:
    """Edits of `text` without what their old and new text have in common at both ends; none that changes nothing."""
    found: list[Edit] = []
    for low, high, new in edits:
        start, end, new_end = changed_span(text[low:high], new)
        if start < max(end, new_end):
            found.append(Edit(low + start, low + end, new[start:new_end]))
    return tuple(found)


def differences(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int, int, int, int]]:
    """The parts that differ, in order, each as (start, end, new start, new end)."""
    found = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(low, high, first, last) for tag, low, high, first, last in found if tag != "equal"]


def changed_span(old: Sequence[object], new: Sequence[object]) -> tuple[int, int, int]:
    """The changed part, as (start, end, new end): `old[start:end]` became `new[start:new end]`."""
    prefix = common_prefix(old, new)
    suffix = common_suffix(old[prefix:], new[prefix:])
    return prefix, len(old) - suffix, len(new) - suffix


def common_prefix(one: Sequence[object], other: Sequence[object]) -> int:
    """The length of the longest common beginning of two texts, tuples or lists, by bisection over their slices."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(one: Sequence[object], other: Sequence[object]) -> int:
    """The length of the longest common end, in the same way."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low
