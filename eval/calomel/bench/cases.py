"""The cases of a suite of next-edit scenarios: one for each question of each `*.txtar` file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from calomel.replay.events import LogError, Problem, ReplayLog
from calomel.replay.scenario import Scenario, parse_scenario, read_scenario
from calomel.replay.txtar import split


class SuiteError(Exception):
    """A suite cannot be read; the message is a sentence for its user."""


@dataclass(frozen=True, slots=True)
class Case:
    """One question: which edit comes next?

    Attributes:
        name: of the file, without its ending, and the row where a scenario asks at several places.
        scenario: that asks it.
        offset: of the cursor.
        file: it was read from.
        blank_end: line feeds that the file has at the end of its expected text beyond those of its document. The
            scenario leaves them out; the published figures count them as a change.
    """

    name: str
    scenario: Scenario
    offset: int
    file: Path
    blank_end: int = 0

    @property
    def text(self) -> str:
        """Of the document."""
        return self.scenario.text

    @property
    def expected(self) -> str | None:
        """The right text; None when silence is right."""
        return self.scenario.expected

    @property
    def fill_offset(self) -> int:
        """Where a model that only fills is asked: the scenario says so where that is another place."""
        place = self.scenario.fill_place
        return self.offset if place is None else self.scenario.offset(place)

    def log(self) -> ReplayLog:
        """What happened before the question."""
        return read_scenario(_text_of(self.file), self.file.stem)


def read_suite(path: Path) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """The cases of a folder, or of one file, in order of names, and what is wrong with files. Raises SuiteError."""
    files = sorted(path.glob("*.txtar")) if path.is_dir() else [path]
    if not files:
        raise SuiteError(f"{path} has no *.txtar file")
    cases: list[Case] = []
    problems: list[str] = []
    for file in files:
        text = _text_of(file)
        try:
            scenario = parse_scenario(text, file.stem)
        except LogError as error:
            raise SuiteError(str(error)) from error
        problems += [_sentence(file, problem) for problem in scenario.problems]
        cases += [
            Case(name.replace(scenario.name, file.stem, 1), scenario, offset, file, _blank_end(text))
            for name, offset in scenario.questions
        ]
    return tuple(cases), tuple(problems)


def _blank_end(archive: str) -> int:
    _, files = split(archive)
    expected = files.get("expected", files.get("expected.txt", ""))
    return max(0, _line_feeds(expected) - _line_feeds(files.get("buffer.txt", ""))) if expected.strip() else 0


def _line_feeds(text: str) -> int:
    return len(text) - len(text.rstrip("\n"))


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SuiteError(f"{file} cannot be read: {error}") from error


def _sentence(file: Path, problem: Problem) -> str:
    return f"{file.name}, line {problem.entry + 1}: {problem.message}"
