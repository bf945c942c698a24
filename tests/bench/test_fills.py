"""What an editor would show of a small model's answers, recorded with their log-probabilities at 1,000 places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from calomel.bench.fills import FillsOptions, run_fills

RECORDED = Path(__file__).with_name("smollm2.jsonl.zst")
# Of a gate by the mean log-probability of the whole text, on the same answers.
WRONG_CHARACTERS, WRONG_FIRST_WORD, RIGHT_CHARACTERS = 567, 24, 796


def figures(**more: Any) -> dict[str, Any]:
    return dict(run_fills(FillsOptions(RECORDED, **more)).flat)


@pytest.mark.slow
def test_a_text_is_shown_as_far_as_it_is_right() -> None:
    found = figures()
    assert found["right_characters"] >= RIGHT_CHARACTERS
    assert found["wrong_characters"] <= WRONG_CHARACTERS / 3
    assert found["wrong_first_word"] <= 0.85 * WRONG_FIRST_WORD


@pytest.mark.slow
def test_who_wants_fewer_gets_surer_ones() -> None:
    quiet, eager = (figures(aggressiveness=name) for name in ("quiet", "eager"))
    for found, least in ((quiet, 0.8), (eager, 0.6)):
        assert found["wholly_right"] >= least * found["shown"]
    assert quiet["shown"] < eager["shown"]
