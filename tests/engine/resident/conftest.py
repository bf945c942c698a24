from __future__ import annotations

from dataclasses import replace

import pytest
from tests.engine.conftest import CONFIG

from calomel.engine import ModelConfig


@pytest.fixture(params=[False, True], ids=["plain", "shifted"])
def config(request: pytest.FixtureRequest) -> ModelConfig:
    """Without a memory: fixed shapes do not look anything up."""
    return replace(CONFIG, diffusion=replace(CONFIG.diffusion, logit_shift=request.param))
