"""What a person does in a file, and what must, may and must not be offered meanwhile: one text file a scenario.

A file is a txtar archive. Its head says in words what it is about, then `name: value`: `file` is the name of the file
that is edited, `editors` where it is played (in all, unless it says so), `ends: mixed` that lines which end in `␍` end
in CR LF, `ends: crlf` that all do, `fails: WHY` that this is how it is not yet. Its sections:

    before    the file as it is opened
    steps     what is done, one step a line, see `STEPS`
    must      lines that taking an offer puts in, each of which has to be offered
    may       lines that may be
    must not  lines that may not be, text at the cursor included
    after     the file in the end, where that matters

In the three lists a line stands without the white space around it, and `*` for any text. What a next edit puts in and
stands in no list may not be offered either; text at the cursor may be anything else. What vanishes is not listed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import pytest

from calomel.replay.scenario import split

FOLDER: Final = Path(__file__).parent / "scenarios"
EDITORS: Final = ("neovim", "vscode")
_MOST_TAKEN: Final = 16
# Of each step, how many words come before its text.
STEPS: Final = {
    "replace": 2,  # replace LINE OLD NEW: the first OLD of a line, which has no blanks, becomes NEW, by typing
    "behind": 1,  # behind LINE TEXT: the cursor behind the first TEXT of a line, ready to type
    "open": 1,  # open LINE: a new line below, ready to type
    "type": 0,  # type TEXT: \n is the Enter key, \t the Tab key
    "paste": 0,  # paste TEXT: at once
    "delete": 1,  # delete LINE
    "comment": 1,  # comment LINE: by the editor's own command
    "leave": 0,  # done with typing: Esc in an editor with modes, Home in another
    "undo": 0,
    "redo": 0,
    "checkout": 0,  # the file on disk becomes what it was at first, and is read anew
    "reload": 0,  # the file is read anew from the disk, which holds what was opened
    "follow": 0,  # whatever next edit is offered is taken, until none is
    "silent": 0,  # nothing may be offered here
    "jump": 0,  # the key that takes an edit from anywhere, once
    "neovim": 0,  # keys in Neovim's notation; other editors leave this out
    "vscode": 0,  # keys with blanks between them; other editors leave this out
}
_ESCAPES: Final = {"\\n": "\n", "\\t": "\t"}


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its words, and the text behind them."""

    name: str
    words: tuple[str, ...]
    text: str

    @property
    def line(self) -> int:
        """The line that it names, from 1."""
        return int(self.words[0])


@dataclass(frozen=True, slots=True)
class Scenario:
    """See the module's own words."""

    name: str
    file: str
    editors: tuple[str, ...]
    fails: str
    before: str
    steps: tuple[Step, ...]
    must: tuple[str, ...]
    may: tuple[str, ...]
    must_not: tuple[str, ...]
    after: str | None


@dataclass(slots=True)
class Verdict:
    """What was offered, held against a scenario.

    Attributes:
        offers: how many there were.
        wrong: what should not have been, or was not, in words.
        must, may, must_not, unlisted: lines that were offered, by where they are listed.
    """

    offers: int = 0
    wrong: list[str] = field(default_factory=list)
    must: set[str] = field(default_factory=set)
    may: set[str] = field(default_factory=set)
    must_not: set[str] = field(default_factory=set)
    unlisted: set[str] = field(default_factory=set)

    def add(self, scenario: Scenario, lines: Iterable[str], *, ghost: bool = False) -> None:
        """One offer: the lines that taking it puts in. Text at the cursor may be anything that is not forbidden."""
        self.offers += 1
        for line in map(str.strip, lines):
            if not line:
                continue
            if _in(line, scenario.must_not):
                self.must_not.add(line)
                self.wrong.append(f"must not be offered: {line}")
            elif _in(line, scenario.must):
                self.must.add(line)
            elif ghost or _in(line, scenario.may):
                self.may.add(line)
            else:
                self.unlisted.add(line)
                self.wrong.append(f"offered, and listed nowhere: {line}")

    def close(self, scenario: Scenario, text: str) -> None:
        """The end, with the file's text."""
        seen = self.must
        missing = [line for line in scenario.must if not any(fnmatchcase(each, _pattern(line)) for each in seen)]
        self.wrong += [f"must be offered: {line}" for line in missing]
        if scenario.after is not None and scenario.after != text:
            self.wrong.append(f"in the end the file holds\n{text}not\n{scenario.after}")


def read(path: Path) -> Scenario:
    """A scenario of a file, named after it. Raises ValueError for what it does not know."""
    name = path.stem
    head, parts = split(path.read_text(encoding="utf-8"))
    values = dict(line.split(": ", 1) for line in head.splitlines() if _is_value(line))
    unknown = set(parts) - {"before", "steps", "must", "may", "must not", "after"}
    if unknown or "before" not in parts:
        raise ValueError(f"{name}: {sorted(unknown)}")
    ends = values.get("ends", "lf")
    return Scenario(
        name,
        values["file"],
        tuple(values.get("editors", " ".join(EDITORS)).split()),
        values.get("fails", ""),
        _ended(parts["before"], ends),
        tuple(_step(line) for line in parts.get("steps", "").splitlines() if line),
        _lines(parts, "must"),
        _lines(parts, "may"),
        _lines(parts, "must not"),
        _ended(parts["after"], ends) if "after" in parts else None,
    )


def scenarios(editor: str) -> list[Scenario]:
    """All that are played in an editor, in order."""
    return [each for each in map(read, sorted(FOLDER.glob("*.txtar"))) if editor in each.editors]


def cases(editor: str) -> list[Any]:
    """The same as the parameters of a test; what is known not to work yet is expected to fail."""
    return [
        pytest.param(each, id=each.name, marks=[pytest.mark.xfail(reason=each.fails)] if each.fails else [])
        for each in scenarios(editor)
    ]


class Player:
    """Plays one scenario, and looks at what is offered whenever the editor is at rest: `do_STEP` does each step."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.verdict = Verdict()

    def play(self) -> Verdict:
        """What was offered, once the last step is done."""
        for step in self.scenario.steps:
            getattr(self, f"do_{step.name}", self.do_nothing)(step)
            self.look()
        self.verdict.close(self.scenario, self.end())
        return self.verdict

    def do_nothing(self, _: Step) -> None:
        """A step for other editors."""

    def do_follow(self, _: Step) -> None:
        for _again in range(_MOST_TAKEN):
            taken = self.take()
            if taken is None:
                return
            if not taken:
                self.verdict.wrong.append("an offer could not be taken")
                return
        self.verdict.wrong.append("there was no end")

    def do_silent(self, step: Step) -> None:
        if said := self.offer():
            self.verdict.wrong.append(f"not silent at step {self.scenario.steps.index(step) + 1}: {said}")

    def look(self) -> None:
        """Judge what is shown."""
        raise NotImplementedError

    def offer(self) -> Any:
        """What is offered once the editor had its time for that; None for nothing."""
        raise NotImplementedError

    def take(self) -> bool | None:
        """Take the next edit that is offered, and say whether that worked; None when none is."""
        raise NotImplementedError

    def end(self) -> str:
        """The file's text at the end."""
        raise NotImplementedError


def added(before: str, after: str) -> list[str]:
    """The lines of a text that the one before did not have, so often."""
    left = before.splitlines()
    found = []
    for line in after.splitlines():
        if line in left:
            left.remove(line)
        else:
            found.append(line)
    return found


def _is_value(line: str) -> bool:
    return line.split(": ", 1)[0] in {"file", "editors", "ends", "fails"}


def _lines(parts: dict[str, str], name: str) -> tuple[str, ...]:
    return tuple(map(str.strip, parts.get(name, "").splitlines()))


def _ended(text: str, ends: str) -> str:
    if ends == "crlf":
        return text.replace("\n", "\r\n")
    return text.replace("␍\n", "\r\n") if ends == "mixed" else text


def _step(line: str) -> Step:
    name, _, rest = line.partition(" ")
    if name not in STEPS:
        raise ValueError(f"no step {name!r}")
    words = rest.split(" ", STEPS[name])
    count = STEPS[name]
    text = words[count] if len(words) > count else ""
    for shown, meant in _ESCAPES.items():
        text = text.replace(shown, meant)
    return Step(name, tuple(words[:count]), text)


def _in(line: str, listed: tuple[str, ...]) -> bool:
    return any(fnmatchcase(line, _pattern(each)) for each in listed)


def _pattern(line: str) -> str:
    """With `*` as the only character that stands for others."""
    return line.replace("[", "[[]").replace("?", "[?]")
