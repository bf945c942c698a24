"""Reads next-edit examples in Markdown: where it is from, what was edited before, where the cursor is, what is right.

    +++
    repository_url = "…"
    revision = "…"
    +++
    ## Edit History       diffs, oldest first; a line `// User accepted prediction:` in front of one that was predicted
    ## Cursor Position    a fenced excerpt named by its path, the cursor under a line that ends in `^[CURSOR_POSITION]`
    ## Expected Patch     a diff; several blocks are alternatives; none, or an empty one: silence is right

The shape of the Zed editor's examples. The excerpt is taken as the whole file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from calomel.replay.events import (
    Accepted,
    Changed,
    Closed,
    Edit,
    Event,
    Expected,
    Focused,
    LogError,
    Opened,
    Problem,
    ReplayLog,
    Selected,
    apply_edits,
)
from calomel.replay.language_ids import language_of
from calomel.replay.unified import DiffHunk, edit_of, hunks_of

PREDICTED: Final = "// User accepted prediction:"
_FRONT: Final = re.compile(r"\s*\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_SECTION: Final = re.compile(r"^##[ \t]+(.+?)[ \t]*$", re.MULTILINE)
_BLOCK: Final = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1[ \t]*$", re.DOTALL | re.MULTILINE)
_CURSOR: Final = re.compile(r"^(.*?)(\^|<)\[CURSOR_POSITION\].*$")
_HISTORY, _PLACE, _EXPECTED = "edit history", "cursor position", "expected patch"
_KNOWN: Final = frozenset({_HISTORY, _PLACE, _EXPECTED, "rejected patch", "uncommitted diff"})
# Seconds between what was edited and the question, and between two edits: long enough that each has settled.
_PAUSE: Final = 12.0


@dataclass(frozen=True, slots=True)
class _Block:
    """A fenced block: its line in the file, what stands behind its fence, its text, and the line in front of it."""

    line: int
    name: str
    text: str
    note: str


def read_example(text: str, name: str = "example") -> ReplayLog:
    """The events of an example. Raises LogError when it has no cursor position."""
    text = text.replace("\r\n", "\n")
    problems: list[Problem] = []
    metadata, rest = _front(text, problems)
    sections = _sections(rest, text.count("\n", 0, len(text) - len(rest)), problems)
    place = sections.get(_PLACE, [])
    if not place:
        raise LogError(f"{name} is no example: it has no cursor position with a fenced excerpt.")
    path = place[0].name or "example.txt"
    excerpt, offset = _cursor(place[0], problems)
    hunks = [
        (hunk, PREDICTED in (block.note, *block.text.splitlines()[:1]))
        for block in sections.get(_HISTORY, [])
        for hunk in hunks_of(block.text)
    ]
    events, accepts = _history(path, excerpt, hunks)
    now = events[-1].time + _PAUSE
    entry = len(hunks)
    alternatives = tuple(_alternatives(excerpt, path, sections.get(_EXPECTED, []), problems))
    events += [Focused(entry, now, path), Selected(entry, now, path, offset, offset)]
    if alternatives:
        events.append(Expected(entry, now, path, alternatives, offset, name=name))
    problems.sort(key=lambda each: each.entry)
    log = ReplayLog(name, "example", events, problems, metadata=metadata)
    log.checks.accepts = accepts
    return log


def _front(text: str, problems: list[Problem]) -> tuple[dict[str, str], str]:
    found = _FRONT.match(text)
    if found is None:
        return {}, text
    try:
        values = tomllib.loads(found[1])
    except tomllib.TOMLDecodeError as error:
        problems.append(Problem(0, f"The front matter is no TOML ({error}); it is left out."))
        values = {}
    return {name: str(value) for name, value in values.items()}, text[found.end() :]


def _sections(text: str, line: int, problems: list[Problem]) -> dict[str, list[_Block]]:
    """Fenced blocks by the heading they stand under."""
    blocks = list(_BLOCK.finditer(text))
    fenced = [(block.start(), block.end()) for block in blocks]
    heads = [head for head in _SECTION.finditer(text) if not any(start <= head.start() < end for start, end in fenced)]
    found: dict[str, list[_Block]] = {}
    for head, end in zip(heads, [*(each.start() for each in heads[1:]), len(text)], strict=False):
        title = head[1].lower()
        inside = found.setdefault(title, [])
        at = line + text.count("\n", 0, head.start())
        if title not in _KNOWN:
            problems.append(Problem(at, f"The section {head[1]!r} is not known; it is left out."))
        for block in blocks:
            if head.end() <= block.start() < end:
                note = text[head.end() : block.start()].rstrip().rpartition("\n")[2].strip()
                inside.append(_Block(line + text.count("\n", 0, block.start()), block[2].strip(), block[3], note))
        last = inside[-1] if inside else None
        if text.count("```", head.end(), end) % 2 and last is None:
            problems.append(Problem(at, f"A block under {head[1]!r} has no end; it is left out."))
    return found


def _cursor(block: _Block, problems: list[Problem]) -> tuple[str, int]:
    """The excerpt without its mark, and the offset that the mark points to."""
    lines = block.text.removesuffix("\n").split("\n")
    for number, line in enumerate(lines):
        found = _CURSOR.match(line)
        if found is None:
            continue
        del lines[number]
        above = lines[number - 1] if number else ""
        # `^` points up at its own column; `<` says: behind the line's last character.
        column = len(above) if found[2] == "<" else min(len(found[1]), len(above))
        start = sum(len(each) + 1 for each in lines[: max(number - 1, 0)])
        return "\n".join(lines) + "\n", start + (column if number else 0)
    problems.append(Problem(block.line, "No [CURSOR_POSITION] stands in the excerpt; the cursor is at its start."))
    return "\n".join(lines) + "\n", 0


def _history(path: str, excerpt: str, hunks: Sequence[tuple[DiffHunk, bool]]) -> tuple[list[Event], int]:
    """The document as it was, and the hunks as changes of it; those that are not in the excerpt elsewhere."""
    before = excerpt
    undone: list[Edit | None] = []
    for hunk, _ in reversed(hunks):
        back = edit_of(before, hunk, backwards=True) if _same(hunk.path, path) else None
        if back is None:
            undone.append(None)
            continue
        undone.append(Edit(back.start, back.start + len(back.text), before[back.start : back.end]))
        before = apply_edits(before, (back,))
    events: list[Event] = [Opened(0, 0.0, path, language_of(path), before)]
    accepts = 0
    for entry, ((hunk, predicted), edit) in enumerate(zip(hunks, reversed(undone), strict=True)):
        now = (entry + 1) * _PAUSE
        document, edits = path, (edit,) if edit is not None else ()
        if edit is None:
            document = f"{path}#{entry}" if _same(hunk.path, path) else hunk.path
            old, new = ("".join(f"{line}\n" for line in lines) for lines in (hunk.old, hunk.new))
            events.append(Opened(entry, now, document, language_of(hunk.path), old))
            edits = (Edit(0, len(old), new),)
        if predicted:
            accepts += 1
            events.append(Accepted(entry, now, document, edits))
        events.append(Changed(entry, now, document, edits, "accept" if predicted else "other"))
        if edit is None:
            events.append(Closed(entry, now, document))
    return events, accepts


def _alternatives(excerpt: str, path: str, blocks: list[_Block], problems: list[Problem]) -> Iterator[str | None]:
    """Right texts afterwards; None where silence is right."""
    if not blocks:
        yield None
    for block in blocks:
        text, fits = excerpt, True
        hunks = list(hunks_of(block.text))
        if not hunks and block.text.strip():
            problems.append(Problem(block.line, "The expected patch is no diff; this alternative is left out."))
            continue
        for hunk in hunks:
            edit = edit_of(text, hunk) if _same(hunk.path, path) else None
            if edit is None:
                where = "of another file" if not _same(hunk.path, path) else "not in the excerpt"
                message = f"A hunk of the expected patch is {where}; this alternative is left out."
                problems.append(Problem(block.line, message))
                fits = False
                break
            text = apply_edits(text, (edit,))
        if fits:
            yield text if text != excerpt else None


def _same(one: str, other: str) -> bool:
    """Whether two paths are of one file: some diffs name it from within the repository's folder."""
    return not one or one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")
