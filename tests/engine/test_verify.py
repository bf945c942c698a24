from __future__ import annotations

import pytest

from calomel.engine.verify import agreement


@pytest.mark.parametrize(
    ("draft", "predicted", "room", "fixed"),
    [
        pytest.param([], [5], 9, 1, id="no draft: one token"),
        pytest.param([1, 2, 3], [1, 2, 3, 4], 9, 4, id="all agree: one more"),
        pytest.param([1, 2, 3], [1, 7, 3, 4], 9, 2, id="the correction is fixed too"),
        pytest.param([1, 2, 3], [7, 2, 3, 4], 9, 1, id="nothing agrees"),
        pytest.param([1, 2, 3], [1, 0, 3, 4], 9, 2, id="an end token ends it"),
        pytest.param([1, 2, 3], [1, 2, 3, 4], 2, 2, id="no more than there is room for"),
        pytest.param([1, 2], [1], 9, 1, id="known without the rest"),
    ],
)
def test_the_agreeing_prefix_and_the_correction_are_fixed(
    draft: list[int], predicted: list[int], room: int, fixed: int
) -> None:
    assert agreement(draft, predicted, end_token_id=0, room=room) == fixed
