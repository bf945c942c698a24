from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tests.families.published.layout import write_weights

from calomel.engine import CheckpointError
from calomel.families.shards import INDEX_FILE, Shards

TENSORS = {f"layer.{number}.weight": torch.full((3, 2), float(number)) for number in range(5)}


@pytest.mark.parametrize("count", [1, 2, 3])
def test_tensors_are_known_by_name_and_read_one_by_one(tmp_path: Path, count: int) -> None:
    write_weights(tmp_path, TENSORS, shards=count)

    shards = Shards(tmp_path)

    assert {name: held.shape for name, held in shards.tensors.items()} == dict.fromkeys(TENSORS, (3, 2))
    assert {held.dtype for held in shards.tensors.values()} == {"F32"}
    assert all(torch.equal(shards.read(name), tensor) for name, tensor in TENSORS.items())


def test_a_file_that_is_cut_short_is_named_with_both_sizes(tmp_path: Path) -> None:
    write_weights(tmp_path, TENSORS)
    file = tmp_path / "model-00002-of-00002.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-4])

    with pytest.raises(CheckpointError) as caught:
        Shards(tmp_path)

    assert str(caught.value) == (
        f"{file} is cut short: it has {len(whole) - 4} bytes, its header says {len(whole)}; fetch it again"
    )


def test_a_file_that_holds_something_else_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"not found\n")

    with pytest.raises(CheckpointError, match="damaged or cut short: its header does not fit"):
        Shards(tmp_path)


def test_a_shard_that_the_index_names_and_nobody_has_is_named(tmp_path: Path) -> None:
    write_weights(tmp_path, TENSORS)
    (tmp_path / "model-00001-of-00002.safetensors").unlink()

    with pytest.raises(CheckpointError, match=r"model-00001-of-00002\.safetensors is missing"):
        Shards(tmp_path)


def test_an_index_that_promises_a_tensor_too_many_is_told(tmp_path: Path) -> None:
    write_weights(tmp_path, TENSORS)
    index = json.loads((tmp_path / INDEX_FILE).read_text())
    index["weight_map"]["lm_head.weight"] = "model-00001-of-00002.safetensors"
    (tmp_path / INDEX_FILE).write_text(json.dumps(index))

    with pytest.raises(CheckpointError, match=r"has lm_head\.weight, which it does not have"):
        Shards(tmp_path)


@pytest.mark.parametrize("name", ["../secret.safetensors", "pytorch_model-00001-of-00002.bin", "/etc/x.safetensors"])
def test_an_index_leads_nowhere_but_to_safetensors_of_its_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / INDEX_FILE).write_text(json.dumps({"weight_map": {"a": name}}))

    with pytest.raises(CheckpointError, match=r"names files that are no \.safetensors files of its folder"):
        Shards(tmp_path)


def test_pickles_are_never_read_and_the_way_out_is_told(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04")

    with pytest.raises(CheckpointError, match=r"weights as pickles alone \(pytorch_model\.bin\).*never read"):
        Shards(tmp_path)
