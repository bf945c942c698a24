"""A tiny random DiffuCoder in the files that its makers publish: Dream's, with a padding token of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.families.published import dream

CONTROLS = (*dream.CONTROLS, "<|dlm_pad|>")


def write(folder: Path, *, seed: int = 0, **more: Any) -> Path:
    """A folder with everything that is published."""
    return dream.write(folder, seed=seed, controls=CONTROLS, _name_or_path="apple/DiffuCoder-7B-Base", **more)


WRITERS = {"diffucoder": write}
