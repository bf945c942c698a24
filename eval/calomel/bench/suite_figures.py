"""The figures of a suite of next-edit scenarios, with intervals that come from resampling its cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from calomel.bench.report import Value
from calomel.bench.stats import percentile, wilson
from calomel.bench.suite_score import CaseScore, SuiteScore, score_suite

_ROUNDS: Final = 2000

Rounds = NDArray[np.float64]


def figures(rows: Sequence[CaseScore], whole: SuiteScore, seed: int) -> dict[str, Value]:
    """The flat keys of a suite, with intervals."""
    edits = [row for row in rows if row.expects == "edit"]
    quiet = [row for row in rows if row.expects == "silence"]
    flat: dict[str, Value] = {
        "score": whole.score,
        **_score_interval(rows, seed),
        "score_trimmed": whole.score_trimmed,
        "delta_chrf": whole.delta_chrf,
        "delta_chrf_trimmed": whole.delta_chrf_trimmed,
        "delta_chrf_grams": whole.delta_chrf_grams,
        "line_f1": whole.line_f1,
    }
    for key, hits, of in (
        ("show_rate", sum(row.shown for row in edits), len(edits)),
        ("quiet_rate", sum(not row.shown for row in quiet), len(quiet)),
        ("exact_match", sum(row.right for row in edits), len(edits)),
    ):
        interval = wilson(hits, of)
        flat[key] = interval.value if interval else None
        flat[f"{key}_low"] = interval.low if interval else None
        flat[f"{key}_high"] = interval.high if interval else None
    latencies = [row.latency_ms for row in rows if row.latency_ms is not None]
    return flat | {
        "edit_cases": len(edits),
        "quiet_positions": len(quiet),
        "latency_p50_ms": percentile(latencies, 50),
        "latency_p90_ms": percentile(latencies, 90),
    }


def score_above(rows: Sequence[CaseScore], theirs: Sequence[CaseScore], other: str, seed: int) -> dict[str, Value]:
    """By how much the score is above another's for the same cases, with bounds: both are resampled alike."""
    ours, others = (_rounds(each, seed) for each in (rows, theirs))
    scores = score_suite(rows).score, score_suite(theirs).score
    if ours is None or others is None or scores[0] is None or scores[1] is None:
        return {}
    low, high = (float(bound) for bound in np.percentile(ours[0] - others[0], [2.5, 97.5]))
    key = f"score_over_{other}"
    return {key: scores[0] - scores[1], f"{key}_low": low, f"{key}_high": high}


def _score_interval(rows: Sequence[CaseScore], seed: int) -> dict[str, Value]:
    """Bounds of score and deltaChrF; null where all rounds agree."""
    rounds = _rounds(rows, seed)
    if rounds is None:
        return {}
    found: dict[str, Value] = {}
    for key, values in zip(("score", "delta_chrf"), rounds, strict=True):
        low, high = (float(bound) for bound in np.percentile(values, [2.5, 97.5]))
        # All rounds alike: so few cases cannot tell how sure that is.
        known = low < high
        found |= {f"{key}_low": low if known else None, f"{key}_high": high if known else None}
    return found


def _rounds(rows: Sequence[CaseScore], seed: int) -> tuple[Rounds, Rounds] | None:
    """Score and deltaChrF of each round: both kinds of cases are resampled, each among its own."""
    edits = [row for row in rows if row.expects == "edit"]
    quiet = [row for row in rows if row.expects == "silence"]
    if not edits or not quiet:
        return None
    rng = np.random.default_rng(seed)
    picks = rng.integers(0, len(edits), size=(_ROUNDS, len(edits)))
    quality = np.asarray([row.delta_chrf or 0.0 for row in edits])[picks].mean(axis=1)
    show = np.asarray([float(row.shown) for row in edits])[picks].mean(axis=1)
    picks = rng.integers(0, len(quiet), size=(_ROUNDS, len(quiet)))
    silent = np.asarray([float(not row.shown) for row in quiet])[picks].mean(axis=1)
    total = np.maximum(show + silent, np.finfo(np.float64).tiny)
    return quality * (2 * show * silent / total) / 100, quality
