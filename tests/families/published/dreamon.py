"""A tiny random DreamOn in the files that its makers publish: Dream's, with a token that asks for room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.families.published import dream

CONTROLS = (*dream.CONTROLS, "<|expand|>")


def write(folder: Path, *, seed: int = 0, **more: Any) -> Path:
    """A folder with everything that is published."""
    generation = {"alg": "entropy", "number_transfer_tokens": 1}
    own = {"controls": CONTROLS, "_name_or_path": "checkpoints/DreamOn-v0-7B", "generation": generation}
    return dream.write(folder, seed=seed, **{**own, **more})


WRITERS = {"dreamon": write}
