"""The decoder against the reference implementation of its architecture."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.engine.conftest import CONFIG, random
from tests.engine.test_attention import encode

from calomel.engine import ModelConfig
from calomel.engine.attention import Piece, forward
from calomel.families.loading import load_checkpoint

transformers = pytest.importorskip("transformers")
WHOLE = replace(CONFIG, sliding_window=None, layer_types=(), rope_theta=10_000.0)


@pytest.mark.parametrize("config", [WHOLE, replace(CONFIG, tie_word_embeddings=False)], ids=["tied", "with a window"])
def test_logits_equal_those_of_transformers_qwen3(tmp_path: Path, config: ModelConfig) -> None:
    raw = {name: value for name, value in config.to_dict().items() if name != "diffusion"}
    windows = config.sliding_window is not None
    reference = transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(**raw, use_sliding_window=windows, attn_implementation="eager")
    )
    for parameter in random(reference, scale=0.2).parameters():
        if parameter.dim() == 1:
            parameter.data += torch.randn_like(parameter) * 0.2
    reference.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()), encoding="utf-8")
    tokens = torch.randint(0, 95, (40,)).tolist()

    model = load_checkpoint(tmp_path)
    buffer = encode(model, [])
    actual = forward(model, [Piece(tokens, buffer, 0, causal=True, read=range(40))])

    torch.testing.assert_close(actual, reference(torch.tensor([tokens])).logits[0], atol=1e-4, rtol=1e-4)
