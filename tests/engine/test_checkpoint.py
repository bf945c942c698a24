from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.engine.conftest import CONFIG, random
from tests.engine.test_weights import LLADA, QWEN

from calomel.engine import CheckpointError, ModelConfig, Transformer
from calomel.engine.checkpoint import native_dtype, round_checkpoint, save_checkpoint
from calomel.families.loading import load_checkpoint

DENSE = replace(CONFIG, tie_word_embeddings=False, qk_norm=False)
MIXED = replace(CONFIG, moe=LLADA, rotary_dim=4, output_bias=True, attention_bias=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_checkpoint(random(Transformer(CONFIG)), tmp_path, dtype=torch.float32)
    return tmp_path


@pytest.mark.parametrize("config", [DENSE, MIXED], ids=["dense", "mixed"])
def test_a_saved_checkpoint_is_read_back(config: ModelConfig, tmp_path: Path) -> None:
    model = random(Transformer(config))
    save_checkpoint(model, tmp_path, dtype=torch.float32)

    loaded = load_checkpoint(tmp_path)

    assert loaded.config == config
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name


@pytest.mark.parametrize("config", [DENSE, MIXED], ids=["dense", "mixed"])
def test_a_checkpoint_in_eight_bits_is_read_as_numbers_again(config: ModelConfig, tmp_path: Path) -> None:
    model = random(Transformer(config))
    save_checkpoint(model, tmp_path)
    shutil.copytree(tmp_path, tmp_path / "small")

    round_checkpoint(tmp_path, tmp_path / "small")

    whole, small = (
        load_checkpoint(tmp_path, dtype=torch.float32),
        load_checkpoint(tmp_path / "small", dtype=torch.float32),
    )
    assert torch.equal(small.embed_tokens.weight, whole.embed_tokens.weight)
    for name, tensor in whole.state_dict().items():
        # Half a step of the 127 that the largest number of a row has.
        allowed = tensor.abs().amax(-1, keepdim=True) / 254 + 1e-6
        assert (small.state_dict()[name] - tensor).abs().le(allowed).all(), name
    files = [folder / "model.safetensors" for folder in (tmp_path, tmp_path / "small")]
    assert files[1].stat().st_size < 0.9 * files[0].stat().st_size


def test_the_default_type_is_the_devices_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for native, expected in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr("calomel.engine.checkpoint.native_bfloat16", lambda native=native: native)
        assert native_dtype("cpu") == expected
        assert native_dtype("cuda") == torch.bfloat16


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda held: held.pop("model.layers.1.self_attn.k_proj.weight"), r"missing model.layers.1.self_attn.k_proj"),
        (lambda held: held["model.norm.weight"].fill_(math.nan), r"norm\.weight"),
    ],
    ids=["missing", "no numbers"],
)
def test_a_wrong_tensor_is_named(folder: Path, edit: Callable[[dict[str, Any]], Any], message: str) -> None:
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors")

    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder)


def test_a_folder_without_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="does not exist"):
        load_checkpoint(tmp_path)


BLOCKS = {"block": 4, "verifiable": False, "max_canvas": 8}


@pytest.mark.parametrize(
    ("part", "changed", "message"),
    [
        ("", {"hidden_size": "wide"}, "hidden_size"),
        ("", {"hidden_size": 0}, "hidden_size"),
        ("", {"vocab_size": -1}, "vocab_size"),
        ("", {"num_attention_heads": 0}, "num_attention_heads"),
        ("", {"num_key_value_heads": 0}, "num_key_value_heads"),
        ("", {"num_key_value_heads": 3}, "must be a multiple of num_key_value_heads"),
        ("", {"rms_norm_eps": -1}, "rms_norm_eps"),
        ("", {"rms_norm_eps": math.nan}, "rms_norm_eps"),
        ("", {"rope_theta": 0}, "rope_theta"),
        ("", {"hidden_act": "gelu"}, "hidden_act"),
        ("", {"hidden_act": ["silu"]}, "hidden_act"),
        ("", {"layer_types": ["chunked_attention"] * 3}, "layer_types"),
        ("", {"layer_types": ["full_attention"]}, "layer_types names 1 layers"),
        ("", {"sliding_window": None}, "sliding_window is not set"),
        ("diffusion", None, "diffusion"),
        ("diffusion", {"max_canvas": -1}, "max_canvas"),
        ("diffusion", {"mask_token_id": 8192}, "mask_token_id"),
        ("diffusion", {"end_token_id": -1}, "end_token_id"),
        ("diffusion", {"end_token_id": "0"}, "end_token_id"),
        ("diffusion", {"block": 0}, "block"),
        ("diffusion", {"block": 4}, "neither verifiable"),
        ("diffusion", {**BLOCKS, "max_canvas": 6}, "max_canvas"),
        ("diffusion", {**BLOCKS, "logit_shift": True}, "nor shifted"),
        ("moe", {"chosen": 9}, "9 experts cannot be chosen out of 1 groups of 6"),
        ("moe", {"experts": 8, "chosen": 5, "groups": 4, "chosen_groups": 2}, "5 experts cannot be chosen"),
        ("moe", {"experts": 8, "groups": 3}, "8 experts are not 3 groups of one size"),
        ("moe", {"groups": 2, "chosen_groups": 3}, "3 of 2 groups"),
        ("moe", {"score": "relu"}, "moe.score"),
    ],
)
def test_a_field_that_cannot_be_is_refused_by_its_name(part: str, changed: dict[str, Any] | None, message: str) -> None:
    raw = json.loads(json.dumps(replace(CONFIG, moe=QWEN).to_dict()))
    if changed is None:
        del raw[part]
    else:
        (raw[part] if part else raw).update(changed)

    with pytest.raises(CheckpointError, match=message):
        ModelConfig.from_dict(raw)


NAMES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
REPORT = f"""
import os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print(*map(os.environ.get, {NAMES}))
            raise SystemExit

sys.meta_path.insert(0, Watch())
from calomel.engine import Engine
"""


@pytest.mark.parametrize(
    ("own", "expected"), [({}, "PASSIVE 0 0 128 128"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE 0 0 128 128")]
)
def test_before_torch_is_imported_openmp_is_told_to_wait_passively_and_to_keep_little(
    own: dict[str, str], expected: str
) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in NAMES}
    run = subprocess.run([sys.executable, "-c", REPORT], env=clean | own, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == expected


def test_a_checkpoint_is_loaded_without_the_compiler_of_torch(folder: Path) -> None:
    code = (
        "import pathlib, sys; from calomel.families.loading import load_checkpoint;"
        "load_checkpoint(pathlib.Path(sys.argv[1])); sys.exit('torch._dynamo' in sys.modules)"
    )

    subprocess.run([sys.executable, "-c", code, folder], check=True)
