"""The public suite of next-edit scenarios: its cases, its score case by case and as a whole, and its intervals.

Score = deltaChrF x gate / 100, where gate is the harmonic mean of the show rate (cases that expect an edit and got one)
and the quiet rate (positions that expect silence and got it). deltaChrF is averaged over all cases that expect an edit;
a case without an answer is scored with the unchanged text.

Several of the suite's expected texts end in an empty line that their documents do not have, and the published figures
count it as a change that should have been made. `delta_chrf` and `score` do the same, to be comparable with them;
`delta_chrf_trimmed`, `score_trimmed` and all other figures leave out line feeds at the end of a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calomel.replay.events import LogError, ReplayLog
from calomel.replay.figures import is_exact, suite_delta_chrf
from calomel.replay.scenario import Scenario, parse_scenario, scenario_log, split
from calomel.report.result import ROUNDS, Floats, Value, percentile, put_interval, wilson


class SuiteError(Exception):
    """A suite cannot be read; the message is a sentence for the user."""


@dataclass(frozen=True, slots=True)
class Case:
    """One question: which edit comes next?

    Attributes:
        name: the file's, without its extension, plus the row where a scenario asks at several places.
        scenario: the one that asks it.
        log: what happened before the question.
        offset: of the cursor.
        blank_end: line feeds that the file has at the end of its expected text beyond those of its document. The
            scenario leaves them out; the published figures count them as a change.
    """

    name: str
    scenario: Scenario
    log: ReplayLog
    offset: int
    blank_end: int = 0

    @property
    def text(self) -> str:
        """The document's text."""
        return self.scenario.text

    @property
    def expected(self) -> str | None:
        """The right text; None when silence is right."""
        return self.scenario.expected


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a case.

    Attributes:
        text: the document after the suggestion; None for silence.
        reason: for silence, where one is known.
        latency_ms: until the answer arrived; None when no model was asked.
        harms: what is wrong with it whatever is expected, of `calomel.bench.harm`; None where that was not checked.
        proposed: the document after each proposal that was judged for it.
    """

    text: str | None
    reason: str | None = None
    latency_ms: float | None = None
    harms: tuple[str, ...] | None = None
    proposed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseScore:
    """One row of the result.

    Attributes:
        name: of the case.
        expects: `edit` or `silence`.
        shown: a suggestion changes the text.
        right: it gives the expected text, or the expected silence.
        delta_chrf: as the suite computes it; None where silence is expected.
        delta_chrf_trimmed: without empty lines at the ends; None there, too.
        reason: for silence.
        latency_ms: of the answer.
        harms: of the answer.
        proposed: whether each proposal that was judged is the expected text.
    """

    name: str
    expects: str
    shown: bool
    right: bool
    reason: str | None
    latency_ms: float | None
    delta_chrf: float | None = None
    delta_chrf_trimmed: float | None = None
    harms: tuple[str, ...] | None = None
    proposed: tuple[bool, ...] = ()


def read_suite(path: Path) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """The cases of a folder, or of one file, sorted by name, and problems of the files. Raises SuiteError."""
    files = sorted(path.glob("*.txtar")) if path.is_dir() else [path]
    if not files:
        raise SuiteError(f"{path} has no *.txtar file")
    cases: list[Case] = []
    problems: list[str] = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
            scenario = parse_scenario(text, file.stem)
        except (OSError, UnicodeDecodeError) as error:
            raise SuiteError(f"cannot read {file}: {error}") from error
        except LogError as error:
            raise SuiteError(str(error)) from error
        problems += [f"{file.name}, line {each.entry + 1}: {each.message}" for each in scenario.problems]
        log, blank = scenario_log(scenario), _blank_end(text)
        cases += [
            Case(name.replace(scenario.name, file.stem, 1), scenario, log, offset, blank)
            for name, offset in scenario.questions
        ]
    return tuple(cases), tuple(problems)


def _blank_end(archive: str) -> int:
    _, files = split(archive)
    texts = files.get("expected", files.get("expected.txt", "")), files.get("buffer.txt", "")
    expected, before = (len(text) - len(text.rstrip("\n")) for text in texts)
    return max(0, expected - before) if texts[0].strip() else 0


def score_case(case: Case, reply: Reply) -> CaseScore:
    """The score of the answer to a case."""
    before = case.text.rstrip("\n")
    after = before if reply.text is None else reply.text.rstrip("\n")
    shown = not is_exact(after, before)
    common: dict[str, Any] = {
        "name": case.name,
        "shown": shown,
        "reason": None if shown else reply.reason,
        "latency_ms": reply.latency_ms,
        "harms": reply.harms,
    }
    if case.expected is None:
        return CaseScore(expects="silence", right=not shown, **common)
    expected = case.expected.rstrip("\n")
    return CaseScore(
        expects="edit",
        right=is_exact(after, expected),
        proposed=tuple(is_exact(each.rstrip("\n"), expected) for each in reply.proposed),
        delta_chrf=suite_delta_chrf(before, after, expected + "\n" * case.blank_end),
        delta_chrf_trimmed=suite_delta_chrf(before, after, expected),
        **common,
    )


def score_suite(rows: Sequence[CaseScore]) -> dict[str, float | None]:
    """Scores of the whole suite; rates and scores are 0 to 1, `delta_chrf` 0 to 100, None without such cases.

    `score` is None unless both kinds of cases are there.
    """
    edits, quiet = _apart(rows)
    show_rate = _mean([row.shown for row in edits])
    quiet_rate = _mean([not row.shown for row in quiet])
    quality = _mean([row.delta_chrf or 0.0 for row in edits])
    trimmed = _mean([row.delta_chrf_trimmed or 0.0 for row in edits])
    return {
        "score": suite_score(quality, show_rate, quiet_rate),
        "score_trimmed": suite_score(trimmed, show_rate, quiet_rate),
        "delta_chrf": quality,
        "delta_chrf_trimmed": trimmed,
        "show_rate": show_rate,
        "quiet_rate": quiet_rate,
        "exact_match": _mean([row.right for row in edits]),
    }


def suite_score(quality: float | None, show_rate: float | None, quiet_rate: float | None) -> float | None:
    """`quality` (0 to 100) times the harmonic mean of the rates, over 100."""
    if quality is None or show_rate is None or quiet_rate is None:
        return None
    total = show_rate + quiet_rate
    return quality * (2 * show_rate * quiet_rate / total) / 100 if total else 0.0


def figures(rows: Sequence[CaseScore], seed: int) -> dict[str, Value]:
    """A suite's figures as flat keys, with intervals."""
    edits, quiet = _apart(rows)
    flat: dict[str, Value] = {**score_suite(rows), "edit_cases": len(edits), "quiet_positions": len(quiet)}
    for key, values in zip(("score", "delta_chrf"), _rounds(rows, seed) or (), strict=False):
        low, high = _bounds(values)
        # All rounds gave the same: this few cases cannot tell how certain that is.
        known = low < high
        flat |= {f"{key}_low": low if known else None, f"{key}_high": high if known else None}
    put_interval(flat, "show_rate", wilson(sum(row.shown for row in edits), len(edits)))
    put_interval(flat, "quiet_rate", wilson(sum(not row.shown for row in quiet), len(quiet)))
    put_interval(flat, "exact_match", wilson(sum(row.right for row in edits), len(edits)))
    latencies = [row.latency_ms for row in rows if row.latency_ms is not None]
    return flat | {"latency_p50_ms": percentile(latencies, 50), "latency_p90_ms": percentile(latencies, 90)}


def score_above(rows: Sequence[CaseScore], theirs: Sequence[CaseScore], other: str, seed: int) -> dict[str, Value]:
    """By how much the score exceeds another's on the same cases, with bounds: both are resampled alike."""
    ours, others = (_rounds(each, seed) for each in (rows, theirs))
    scores = score_suite(rows)["score"], score_suite(theirs)["score"]
    if ours is None or others is None or scores[0] is None or scores[1] is None:
        return {}
    low, high = _bounds(ours[0] - others[0])
    key = f"score_over_{other}"
    return {key: scores[0] - scores[1], f"{key}_low": low, f"{key}_high": high}


def _rounds(rows: Sequence[CaseScore], seed: int) -> tuple[Floats, Floats] | None:
    """Score and deltaChrF of each round: the two kinds of cases are resampled separately."""
    edits, quiet = _apart(rows)
    if not edits or not quiet:
        return None
    rng = np.random.default_rng(seed)
    picks = rng.integers(0, len(edits), size=(ROUNDS, len(edits)))
    quality = np.asarray([row.delta_chrf or 0.0 for row in edits])[picks].mean(axis=1)
    show = np.asarray([float(row.shown) for row in edits])[picks].mean(axis=1)
    picks = rng.integers(0, len(quiet), size=(ROUNDS, len(quiet)))
    silent = np.asarray([float(not row.shown) for row in quiet])[picks].mean(axis=1)
    total = np.maximum(show + silent, np.finfo(np.float64).tiny)
    return quality * (2 * show * silent / total) / 100, quality


def _bounds(values: Floats) -> tuple[float, float]:
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def _apart(rows: Sequence[CaseScore]) -> tuple[list[CaseScore], list[CaseScore]]:
    """Those that expect an edit, and those that expect silence."""
    return [row for row in rows if row.expects == "edit"], [row for row in rows if row.expects == "silence"]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
