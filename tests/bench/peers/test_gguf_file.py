from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.bench.peers.conftest import random_checkpoint

from calomel.bench.peer_engines import NumberType, write_gguf
from calomel.families.loading import load_checkpoint


def test_the_file_holds_every_tensor_in_llamacpps_names(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    model = load_checkpoint(random_checkpoint(tmp_path / "checkpoint", 12))
    write_gguf(model, tmp_path / "model.gguf", "f32")
    found = {tensor.name: np.array(tensor.data) for tensor in gguf.GGUFReader(tmp_path / "model.gguf").tensors}
    config, state = model.config, model.state_dict()
    assert len(found) == 2 + 11 * config.num_hidden_layers
    assert np.array_equal(found["token_embd.weight"], state["embed_tokens.weight"].numpy())
    fused = state["layers.1.self_attn.qkv_proj.weight"].numpy()
    parts = [found[f"blk.1.attn_{part}.weight"] for part in "qkv"]
    assert np.array_equal(np.concatenate(parts), fused)
    assert found["blk.1.attn_k.weight"].shape == (config.num_key_value_heads * config.head_dim, config.hidden_size)
    gates = [found[f"blk.0.ffn_{part}.weight"] for part in ("gate", "up")]
    assert np.array_equal(np.concatenate(gates), state["layers.0.mlp.gate_up_proj.weight"].numpy())


def test_smaller_numbers_make_smaller_files(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    model = load_checkpoint(random_checkpoint(tmp_path / "checkpoint", None))
    kinds: tuple[NumberType, ...] = ("f32", "f16", "bf16", "q8_0")
    for kind in kinds:
        write_gguf(model, tmp_path / kind, kind)
    whole = (tmp_path / "f32").stat().st_size
    assert (tmp_path / "f16").stat().st_size < 0.75 * whole
    assert (tmp_path / "bf16").stat().st_size < 0.75 * whole
    assert (tmp_path / "q8_0").stat().st_size < (tmp_path / "f16").stat().st_size
