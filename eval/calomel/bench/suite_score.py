"""The score of the public suite of next-edit scenarios, case by case and as a whole.

Score = deltaChrF x gate / 100, where gate is the harmonic mean of the show rate (cases that expect an edit and got one)
and the quiet rate (positions that expect silence and got it). deltaChrF is averaged over all cases that expect an edit;
a case without an answer is scored with the text as it was. Where a scenario asks several times, its first answer that
changes the text is scored, and any answer counts as shown.

Several of the suite's expected texts end in an empty line that their documents do not have, and the published figures
count it as a change that should have been made. `delta_chrf` and `score` do the same, to be comparable with them;
`delta_chrf_trimmed`, `score_trimmed` and all other figures leave out line feeds at the end of a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from calomel.bench.cases import Case
from calomel.replay.metrics.chrf import delta_chrf, suite_delta_chrf
from calomel.replay.metrics.lines import is_exact, line_score

_NO_FIGURES: Final[dict[str, Any]] = dict.fromkeys(("delta_chrf", "delta_chrf_trimmed", "delta_chrf_grams", "line_f1"))


@dataclass(frozen=True, slots=True)
class Reply:
    """What was said to a case.

    Attributes:
        text: the document after the suggestion; None for silence.
        reason: for silence, where one is known.
        latency_ms: until the answer was there; None when nobody was asked, or nobody measured.
    """

    text: str | None
    reason: str | None = None
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class CaseScore:
    """One row of the result.

    Attributes:
        name: of the case.
        expects: `edit` or `silence`.
        shown: something was suggested that changes the text.
        right: the expected text, or the expected silence.
        delta_chrf: as the suite computes it; None where silence is expected.
        delta_chrf_trimmed: without empty lines at the ends; None there, too.
        delta_chrf_grams: the stricter one, of n-grams that came and went; None there, too.
        line_f1: of removed and added lines; None there, too.
        reason: of silence.
        latency_ms: of the slowest answer.
    """

    name: str
    expects: str
    shown: bool
    right: bool
    delta_chrf: float | None
    delta_chrf_trimmed: float | None
    delta_chrf_grams: float | None
    line_f1: float | None
    reason: str | None
    latency_ms: float | None

    def to_json(self) -> dict[str, Any]:
        """By name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class SuiteScore:
    """The result of a suite; rates are 0 to 1, `delta_chrf` 0 to 100, `score` 0 to 1. None: no such case."""

    score: float | None
    score_trimmed: float | None
    delta_chrf: float | None
    delta_chrf_trimmed: float | None
    delta_chrf_grams: float | None
    show_rate: float | None
    quiet_rate: float | None
    exact_match: float | None
    line_f1: float | None
    edit_cases: int
    quiet_positions: int


def score_case(case: Case, replies: Sequence[Reply]) -> CaseScore:
    """What the answers to a case, in order, deserve."""
    before = case.text.rstrip("\n")
    texts = [
        reply.text for reply in replies if reply.text is not None and not is_exact(reply.text.rstrip("\n"), before)
    ]
    produced = texts[0] if texts else case.text
    latencies = [reply.latency_ms for reply in replies if reply.latency_ms is not None]
    common: dict[str, Any] = {
        "name": case.name,
        "shown": bool(texts),
        "reason": None if texts else next((reply.reason for reply in replies if reply.reason), None),
        "latency_ms": max(latencies, default=None),
    }
    if case.expected is None:
        return CaseScore(expects="silence", right=not texts, **_NO_FIGURES, **common)
    after, expected = produced.rstrip("\n"), case.expected.rstrip("\n")
    return CaseScore(
        expects="edit",
        right=is_exact(after, expected),
        delta_chrf=suite_delta_chrf(before, after, expected + "\n" * case.blank_end),
        delta_chrf_trimmed=suite_delta_chrf(before, after, expected),
        delta_chrf_grams=delta_chrf(before, after, expected),
        line_f1=line_score(before, after, expected).f1,
        **common,
    )


def score_suite(rows: Sequence[CaseScore]) -> SuiteScore:
    """The whole; `score` is None unless both kinds of cases are there."""
    edits = [row for row in rows if row.expects == "edit"]
    quiet = [row for row in rows if row.expects == "silence"]
    show_rate = _mean([row.shown for row in edits])
    quiet_rate = _mean([not row.shown for row in quiet])
    quality = _mean([row.delta_chrf or 0.0 for row in edits])
    trimmed = _mean([row.delta_chrf_trimmed or 0.0 for row in edits])
    return SuiteScore(
        score=suite_score(quality, show_rate, quiet_rate),
        score_trimmed=suite_score(trimmed, show_rate, quiet_rate),
        delta_chrf=quality,
        delta_chrf_trimmed=trimmed,
        delta_chrf_grams=_mean([row.delta_chrf_grams or 0.0 for row in edits]),
        show_rate=show_rate,
        quiet_rate=quiet_rate,
        exact_match=_mean([row.right for row in edits]),
        line_f1=_mean([row.line_f1 or 0.0 for row in edits]),
        edit_cases=len(edits),
        quiet_positions=len(quiet),
    )


def suite_score(quality: float | None, show_rate: float | None, quiet_rate: float | None) -> float | None:
    """`quality` (0 to 100) times the harmonic mean of the rates, over 100."""
    if quality is None or show_rate is None or quiet_rate is None:
        return None
    total = show_rate + quiet_rate
    return quality * (2 * show_rate * quiet_rate / total) / 100 if total else 0.0


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
