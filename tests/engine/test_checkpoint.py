from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from calomel.engine import BlockCausal, CheckpointError, Engine, ModelConfig, Request, Transformer
from calomel.engine.checkpoint import native_dtype, save_checkpoint
from calomel.families.loading import load_checkpoint
from calomel.weights import nano_path


@pytest.fixture
def folder(model: Transformer, tmp_path: Path) -> Path:
    save_checkpoint(model, tmp_path / "checkpoint", dtype=torch.float32)
    return tmp_path / "checkpoint"


def change(folder: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors")


def test_a_saved_checkpoint_is_read_back(model: Transformer, folder: Path) -> None:
    loaded = load_checkpoint(folder)

    assert loaded.config == model.config
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor.cpu()), name


def test_a_saved_checkpoint_gives_the_same_answer(model: Transformer, folder: Path, context: tuple[int, ...]) -> None:
    request = Request(context, 12, (12,), policy="threshold:0.4")
    with Engine(BlockCausal(model)) as engine, Engine(BlockCausal(load_checkpoint(folder), page_size=8)) as other:
        assert engine.submit(request).result(60).ids == other.submit(request).result(60).ids


def test_a_checkpoint_is_loaded_in_bfloat16(folder: Path, context: tuple[int, ...]) -> None:
    with Engine(BlockCausal(load_checkpoint(folder, dtype=torch.bfloat16))) as engine:
        for policy in ("threshold:0.4", "left_to_right"):
            assert engine.submit(Request(context, 6, (6,), policy=policy)).result(60).forwards >= 1


def test_the_default_type_is_the_devices_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for native, expected in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr("calomel.engine.checkpoint.native_bfloat16", lambda native=native: native)
        assert native_dtype("cpu") == expected
        assert native_dtype("cuda") == torch.bfloat16


def test_a_missing_tensor_is_named(folder: Path) -> None:
    change(folder, lambda tensors: tensors.pop("model.layers.1.self_attn.k_proj.weight"))

    with pytest.raises(CheckpointError, match=r"missing model.layers.1.self_attn.k_proj.weight"):
        load_checkpoint(folder)


def test_an_unknown_tensor_is_named(folder: Path) -> None:
    change(folder, lambda tensors: tensors.update({"model.extra": torch.zeros(1)}))

    with pytest.raises(CheckpointError, match=r"unknown model.extra"):
        load_checkpoint(folder)


def test_a_tensor_of_the_wrong_shape_is_named(folder: Path) -> None:
    change(folder, lambda tensors: tensors.update({"model.norm.weight": torch.zeros(5)}))

    with pytest.raises(
        CheckpointError,
        match=r"model.norm.weight \(5,\) does not make up norm.weight, for which config.json says \(32,\)",
    ):
        load_checkpoint(folder)


def test_weights_that_are_no_numbers_are_named(folder: Path) -> None:
    change(folder, lambda tensors: tensors["model.norm.weight"].fill_(math.nan))
    with pytest.raises(CheckpointError, match=r"norm\.weight"):
        load_checkpoint(folder)


def test_a_damaged_file_is_named(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"not tensors at all")

    with pytest.raises(CheckpointError, match=r"model.safetensors is damaged"):
        load_checkpoint(folder)


def test_pickled_weights_are_not_loaded(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model.bin")

    with pytest.raises(CheckpointError, match="has weights as pickles alone"):
        load_checkpoint(folder)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda raw: raw.pop("diffusion"), "no field 'diffusion'"),
        (lambda raw: raw.update(hidden_size="wide"), "wrong type"),
        (lambda raw: raw.update(layer_types=["full_attention"]), "layer_types names 1 layers"),
        (lambda raw: raw.update(sliding_window=None), "sliding_window is not set"),
        (lambda raw: raw.update(num_key_value_heads=3), "no multiple of num_key_value_heads"),
    ],
)
def test_a_wrong_configuration_is_explained(folder: Path, edit: Callable[[dict[str, Any]], Any], message: str) -> None:
    path = folder / "config.json"
    raw = json.loads(path.read_text(encoding="utf-8"))
    edit(raw)
    path.write_text(json.dumps(raw), encoding="utf-8")

    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder)


def test_a_folder_without_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="does not exist"):
        load_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match="not valid JSON"):
        load_checkpoint(tmp_path)


def test_a_configuration_is_read_back(config: ModelConfig) -> None:
    assert ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("vocab_size", -1),
        ("num_attention_heads", 0),
        ("num_key_value_heads", 0),
        ("hidden_size", 0),
        ("rms_norm_eps", -1),
        ("rms_norm_eps", math.nan),
        ("rope_theta", 0),
        ("hidden_act", "gelu"),
        ("hidden_act", ["silu"]),
        ("layer_types", ["chunked_attention"] * 6),
        ("diffusion.max_canvas", -1),
        ("diffusion.mask_token_id", 8192),
        ("diffusion.end_token_id", -1),
        ("diffusion.end_token_id", "0"),
    ],
)
def test_a_field_that_cannot_be_is_refused_by_its_name(field: str, value: Any) -> None:
    raw = json.loads((nano_path() / "config.json").read_text())
    name = field.removeprefix("diffusion.")
    (raw if name == field else raw["diffusion"])[name] = value

    with pytest.raises(CheckpointError, match=name):
        ModelConfig.from_dict(raw)
