"""The whole bench, through the real programs and the shipped weights."""

from __future__ import annotations

from typing import Any

import pytest

from calomel.bench.keystrokes import run_keystrokes

pytestmark = [pytest.mark.slow, pytest.mark.e2e]


def test_keystrokes_are_measured_through_the_real_programs() -> None:
    figures: Any = run_keystrokes(quick=True).flat
    for name in ("change_p50_ms", "change_p99_ms", "suggest_2k_p50_ms", "suggest_8k_p50_ms", "suggest_8k_p95_ms",
                 "initialize_ms", "first_suggestion_ms"):  # fmt: skip
        assert figures[name] > 0, name
    assert 0.9 < figures["prefix_reuse"] <= 1
    for name in ("prefix_reuse_settled", "prefix_reuse_jump"):
        assert 0 <= figures[name] <= 1, name
