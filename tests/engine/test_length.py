from __future__ import annotations

import pytest
import torch

from calomel.engine.length import best_length, score_lengths


def test_a_length_scores_the_mean_confidence_less_its_bias() -> None:
    confidences = [torch.tensor([0.5, 0.7]), torch.tensor([0.9, 0.9, 0.3])]

    assert score_lengths(confidences, (2, 3)) == pytest.approx([0.6, 0.7])
    assert score_lengths(confidences, (2, 3), {3: 0.25}) == pytest.approx([0.6, 0.45])


def test_a_canvas_without_a_masked_position_is_certain() -> None:
    assert score_lengths([torch.tensor([])], (2,)) == [1.0]


def test_the_highest_score_wins_and_of_equal_ones_the_shortest() -> None:
    assert best_length((4, 8, 16), (0.2, 0.5, 0.4)) == 1
    assert best_length((16, 8), (0.5, 0.5)) == 1
