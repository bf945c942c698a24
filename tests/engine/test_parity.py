"""The decoder against the reference implementation of its architecture."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from calomel.engine import DiffusionConfig, ModelConfig
from calomel.engine.attention import Piece, forward
from calomel.engine.cache import KeyValueBuffer
from calomel.engine.config import LayerType
from calomel.families.loading import load_checkpoint

transformers = pytest.importorskip("transformers")


@pytest.mark.parametrize(("tied", "window"), [(True, None), (False, 9)])
def test_logits_equal_those_of_transformers_qwen3(tmp_path: Path, *, tied: bool, window: int | None) -> None:
    config = ModelConfig(
        vocab_size=97,
        hidden_size=48,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=256,
        diffusion=DiffusionConfig(95, 96),
        rope_theta=10_000.0,
        tie_word_embeddings=tied,
    )
    if window:
        layers: tuple[LayerType, ...] = ("full_attention", "sliding_attention", "sliding_attention")
        config = replace(config, sliding_window=window, layer_types=layers)
    raw = {name: value for name, value in config.to_dict().items() if name != "diffusion"}
    torch.manual_seed(0)
    reference = transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(**raw, use_sliding_window=window is not None, attn_implementation="eager")
    ).eval()
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.2 + (parameter.dim() == 1))
    reference.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()), encoding="utf-8")
    tokens = torch.randint(0, 95, (40,)).tolist()

    model = load_checkpoint(tmp_path)
    buffer = KeyValueBuffer(config, 40, dtype=torch.float32, device=torch.device("cpu"))
    actual = forward(model, [Piece(tokens, buffer, 0, causal=True, read=range(40))])

    with torch.no_grad():
        expected = reference(torch.tensor([tokens])).logits[0]
    torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-4)
