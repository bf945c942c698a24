"""Reads next-edit scenarios: a text, the edits just made to it, and the text that is right afterwards.

The txtar format of the public suite of cursortab.nvim: a description, a header of `name: value` lines, then files
between lines `-- name --`. Rows count from 1, columns from 0 in bytes of UTF-8, as in Neovim; a place beyond its line
is taken as the line's end. `row` 0, or none, is row 1. `cursor-positions` are further places for the same question,
which count separately where silence is right. `fim-row` and `fim-col`, the place for assistants that only fill at the
cursor, are not read.

`history` lists earlier edits, oldest first. Each is replayed as a change where its new text is in the buffer; one that
is not in the buffer (of another file, or of another part of this one) becomes an edit of a separate document. Without
`expected`, or with an empty one, silence is right. It gets as many trailing line ends as the buffer has: those after it
in the file are not part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from calomel.prompts.parts import Edit
from calomel.replay.events import (
    Changed,
    Closed,
    Event,
    Expected,
    Focused,
    LogError,
    Opened,
    Problem,
    ReplayLog,
    Selected,
    apply_edits,
    language_of,
    suffix_of,
)

_HEADER: Final = re.compile(r"([A-Za-z][A-Za-z-]*):[ \t]*(.*?)[ \t\r]*$")
_FILE_MARK: Final = re.compile(r"^-- (.+) --[ \t]*\r?$\n?", re.MULTILINE)
_PLACE: Final = re.compile(r"\s*(\d+)\s*:\s*(\d+)\s*")
_NAMES: Final = frozenset({
    "id", "description", "language", "file", "row", "col", "viewportTop", "viewportBottom", "fim-row", "fim-col",
    "modified", "skipHistory", "cursor-positions", "targets",
})  # fmt: skip
_FILES: Final = frozenset({"buffer.txt", "history", "steps", "expected", "expected.txt"})
_ACTIONS: Final = frozenset({"request-completion", "accept", "reject", "wait", "expect"})
# Seconds between what was edited and the question: long enough that the edits have settled.
_PAUSE: Final = 12.0


@dataclass(frozen=True, slots=True)
class Place:
    """A cursor position of a scenario: row from 1, column from 0 in bytes."""

    row: int
    column: int


@dataclass(frozen=True, slots=True)
class PastEdit:
    """An edit made before the question: the old lines and the new ones."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario.

    Attributes:
        name: its id.
        description: for people.
        language_id: as editors call it.
        file: path, as prompts name it.
        text: of the buffer.
        places: of the cursor, at least one; the first is `row` and `col`.
        history: oldest first.
        manual: it is requested by a key.
        expected: the right text afterwards; None: silence is right.
        problems: what is wrong with the file.
    """

    name: str
    description: str
    language_id: str
    file: str
    text: str
    places: tuple[Place, ...]
    history: tuple[PastEdit, ...]
    manual: bool
    expected: str | None
    problems: tuple[Problem, ...] = ()

    @property
    def questions(self) -> tuple[tuple[str, int], ...]:
        """Name and offset of each position that counts: those of a scenario with an `expected` are one question."""
        if self.expected is not None or len(self.places) == 1:
            return ((self.name, self.offset(self.places[0])),)
        return tuple((f"{self.name}@L{place.row}", self.offset(place)) for place in self.places)

    def offset(self, place: Place) -> int:
        """A place as code points from the start of the text."""
        lines = self.text.split("\n")
        row = min(max(place.row, 1), len(lines))
        line = lines[row - 1].removesuffix("\r")
        column = len(line.encode()[: place.column].decode("utf-8", "ignore"))
        return sum(len(each) + 1 for each in lines[: row - 1]) + column


def parse_scenario(text: str, name: str = "scenario") -> Scenario:
    """A scenario from the text of its file. Raises LogError when there is no buffer."""
    comment, files = split(text)
    problems: list[Problem] = []
    header, description = _header(comment, problems)
    if "buffer.txt" not in files:
        raise LogError(f"{name} is not a scenario: it has no buffer.txt.")
    for each in files:
        if each not in _FILES:
            message = f"Unknown file {each!r}: Calomel skips it."
            problems.append(Problem(_line_of(text, each) - 1, message))
    language = header.get("language", "")
    expected = files.get("expected", files.get("expected.txt", ""))
    first = Place(_number(header, "row", problems) or 1, _number(header, "col", problems))
    return Scenario(
        name=header.get("id") or name,
        description=header.get("description") or description,
        language_id=language,
        file=header.get("file") or f"eval{suffix_of(language)}",
        text=files["buffer.txt"],
        places=(first, *_places(header.get("cursor-positions", ""), problems)),
        history=tuple(_history(_content(files.get("history", "")), _line_of(text, "history"), problems)),
        manual=_manual(files.get("steps", ""), _line_of(text, "steps"), problems),
        expected=_ending_like(files["buffer.txt"], expected) if expected.strip() else None,
        problems=tuple(problems),
    )


def read_scenario(text: str, name: str = "scenario") -> ReplayLog:
    """The events of a scenario from the text of its file. Raises LogError when there is no buffer."""
    return scenario_log(parse_scenario(text, name))


def scenario_log(scenario: Scenario) -> ReplayLog:
    """The events of a scenario: its history as changes, then one question for each position that counts."""
    problems = sorted(scenario.problems, key=lambda each: each.entry)
    events: list[Event] = []
    before = scenario.text
    # Undone from the newest to the oldest, so that each stands where it did when it was made.
    undone: list[tuple[int, PastEdit, tuple[Edit, ...] | None]] = []
    for entry, past in reversed(list(enumerate(scenario.history))):
        at = _whole_lines(before, past.new) if past.new else None
        if at is None:
            undone.append((entry, past, None))
            continue
        undone.append((entry, past, (Edit(at, at + len(past.old), past.new),)))
        before = apply_edits(before, (Edit(at, at + len(past.new), past.old),))
    language = scenario.language_id or language_of(scenario.file)
    events.append(Opened(0, 0.0, scenario.file, language, before))
    now = 0.0
    for entry, past, edits in reversed(undone):
        now += _PAUSE
        if edits is not None:
            events.append(Changed(entry, now, scenario.file, edits, "other"))
            continue
        elsewhere = past.file if past.file and past.file != scenario.file else scenario.file
        # The other part of the file, or the other file, is missing: a document of that name stands in for it.
        document = elsewhere if elsewhere != scenario.file else f"{scenario.file}#{entry}"
        events.append(Opened(entry, now, document, language_of(elsewhere), past.old))
        events.append(Changed(entry, now, document, (Edit(0, len(past.old), past.new),), "other"))
        events.append(Closed(entry, now, document))
    now += _PAUSE
    entry = len(scenario.history)
    events.append(Focused(entry, now, scenario.file))
    for question, offset in scenario.questions:
        events.append(Selected(entry, now, scenario.file, offset, offset))
        right = (scenario.expected,)
        events.append(Expected(entry, now, scenario.file, right, offset, scenario.manual, question))
        now += _PAUSE
    log = ReplayLog(scenario.name, "scenario", events, problems)
    log.metadata["description"] = scenario.description
    return log


def _header(comment: str, problems: list[Problem]) -> tuple[dict[str, str], str]:
    header: dict[str, str] = {}
    description: list[str] = []
    for number, line in enumerate(comment.splitlines()):
        found = _HEADER.match(line)
        if found and found[1] in _NAMES:
            header[found[1]] = found[2]
        elif not header:
            description.append(line)
        elif line.strip():
            problems.append(Problem(number, f"Unknown header line {line!r}: Calomel skips it."))
    return header, " ".join(description).strip()


def _number(header: dict[str, str], name: str, problems: list[Problem]) -> int:
    value = header.get(name)
    if value is None:
        return 0
    if not value.isdecimal():
        problems.append(Problem(0, f"{name} is {value!r}, not a number; Calomel uses 0."))
        return 0
    return int(value)


def _places(value: str, problems: list[Problem]) -> Iterator[Place]:
    for each in filter(str.strip, value.split(",")):
        found = _PLACE.fullmatch(each)
        if found is None:
            problems.append(Problem(0, f"The cursor position {each.strip()!r} is not row:col; Calomel skips it."))
        else:
            yield Place(int(found[1]), int(found[2]))


def _history(text: str, first: int, problems: list[Problem]) -> Iterator[PastEdit]:
    file, part = "", ""
    parts: dict[str, list[str]] = {"old": [], "new": []}
    begun = False
    for number, line in enumerate([*text.split("\n"), "<|file|>"], first):
        if line.startswith("<|file|>"):
            if begun:
                yield PastEdit(file, "\n".join(parts["old"]), "\n".join(parts["new"]))
            file, part, begun = line.removeprefix("<|file|>").strip(), "", True
            parts = {"old": [], "new": []}
        elif line in {"<|old|>", "<|new|>"}:
            part = line[2:5]
        elif part:
            parts[part].append(line)
        elif line.strip():
            problems.append(Problem(number, f"The history line {line!r} is outside every part; Calomel skips it."))


def _manual(text: str, first: int, problems: list[Problem]) -> bool:
    """Whether one of the steps is a request by a key."""
    found = False
    for number, line in enumerate(text.splitlines(), first):
        action, *words = line.split("#", 1)[0].split() or [""]
        if action and action not in _ACTIONS:
            problems.append(Problem(number, f"Unknown step {action!r}: Calomel skips it."))
        found = found or (action == "request-completion" and "manual" in words)
    return found


def _line_of(text: str, name: str) -> int:
    """The line after the one with the file's name, from 0."""
    at = text.find(f"-- {name} --")
    return text.count("\n", 0, at) + 1 if at >= 0 else 0


def _content(text: str) -> str:
    """The content without the line end that the archive puts after each file."""
    return text.removesuffix("\n")


def _ending_like(text: str, expected: str) -> str:
    return expected.rstrip("\r\n") + text[len(text.rstrip("\r\n")) :]


def _whole_lines(text: str, lines: str) -> int | None:
    """Where these lines are in a text, as whole lines; None when they are nowhere, or in more than one place."""
    found = [match.start() for match in re.finditer(rf"^{re.escape(lines)}$", text, re.MULTILINE)]
    return found[0] if len(found) == 1 else None


def split(archive: str) -> tuple[str, dict[str, str]]:
    """A txtar archive: its comment, and its files by name; of two files with the same name the last one counts."""
    marks = list(_FILE_MARK.finditer(archive))
    ends = [*(mark.start() for mark in marks), len(archive)]
    files = {mark[1].strip(): archive[mark.end() : end] for mark, end in zip(marks, ends[1:], strict=True)}
    return archive[: ends[0]], files
