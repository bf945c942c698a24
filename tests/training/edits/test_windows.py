from __future__ import annotations

import random

import pytest

from calomel.training.edits.source import Source
from calomel.training.edits.windows import WHOLE_CHARACTERS, window

PIECES = [f"def step_{n}(value):\n    größe = value + {n}\n    return größe\n\n\n" for n in range(1_000)]
LARGE = Source("a.py", "python", "".join(PIECES))


def test_a_small_file_is_read_whole() -> None:
    source = Source("a.py", "python", "".join(PIECES[:10]))
    assert window(source, random.Random(0), 2_000) is source


@pytest.mark.parametrize("seed", range(10))
def test_of_a_large_file_some_whole_pieces_are_read(seed: int) -> None:
    assert len(LARGE.text) > WHOLE_CHARACTERS
    part = window(LARGE, random.Random(seed), 2_000)
    assert part.text in LARGE.text
    assert part.text.startswith("def step_")
    assert not part.has_error
    assert 1_900 <= len(part.text) <= 2_000


def test_a_piece_larger_than_a_window_is_read_alone() -> None:
    large = "def huge():\n" + "    call()\n" * 5_000
    texts = {window(Source("a.py", "python", large + large), random.Random(seed), 2_000).text for seed in range(5)}
    assert texts == {large}
