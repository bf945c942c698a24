"""Weights from shards into their places; what is wrong with a file is named, and nothing but tensors is ever read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.families.published.layout import write_weights
from torch import Tensor, nn

from calomel.engine import CheckpointError
from calomel.families.loading import load_into
from calomel.families.shards import INDEX_FILE, Shards

TENSORS = {f"layer.{number}.weight": torch.full((3, 2), float(number)) for number in range(5)}


def cut(folder: Path) -> None:
    file = folder / "model-00002-of-00002.safetensors"
    file.write_bytes(file.read_bytes()[:-4])


def promise(folder: Path) -> None:
    index = json.loads((folder / INDEX_FILE).read_text())
    index["weight_map"]["lm_head.weight"] = "model-00001-of-00002.safetensors"
    (folder / INDEX_FILE).write_text(json.dumps(index))


def lead(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / INDEX_FILE).write_text(json.dumps({"weight_map": {"a": name}}))


def pickled(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04")


ELSEWHERE = r"names files that are not \.safetensors files of its folder"


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (cut, r"-00002-of-00002\.safetensors is damaged or cut short: .*; fetch it again"),
        (lambda folder: next(folder.glob("*.safetensors")).write_bytes(b"not found\n"), "damaged or cut short"),
        (lambda folder: (folder / "model-00001-of-00002.safetensors").unlink(), r"-00001-.*\.safetensors is missing"),
        (promise, r"lists lm_head\.weight in .*, which does not contain it"),
        (lead("../secret.safetensors"), ELSEWHERE),
        (lead("pytorch_model-00001-of-00002.bin"), ELSEWHERE),
        (lead("/etc/x.safetensors"), ELSEWHERE),
        (pickled, r"only pickled weights \(pytorch_model\.bin\).*does not read"),
    ],
    ids=["cut", "something else", "missing", "promised", "outside", "a pickle in the index", "absolute", "pickles"],
)
def test_a_file_that_is_not_what_it_should_be_is_named(
    tmp_path: Path, spoil: Callable[[Path], object], told: str
) -> None:
    write_weights(tmp_path, TENSORS)
    spoil(tmp_path)

    with pytest.raises(CheckpointError, match=told):
        Shards(tmp_path)


PLACES = (
    ("qkv.weight", ("q", "k", "v")),
    ("experts", ("e.0", "e.1")),
    ("kept", ("t",)),
    ("embed.weight", ("embed",)),
)
SHAPES = {"q": (2, 2), "k": (2, 2), "v": (2, 2), "e.0": (3, 2), "e.1": (3, 2), "t": (3, 2), "embed": (4, 2)}
FOUND = {name: torch.arange(0.0, float(h * w)).reshape(h, w) + len(name) for name, (h, w) in SHAPES.items()}


class Net(nn.Module):
    kept: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(2, 6, bias=False)
        self.experts = nn.Parameter(torch.empty(6, 2))
        self.register_buffer("kept", torch.empty(3, 2))
        self.embed = nn.Embedding(4, 2)
        self.head = nn.Linear(2, 4, bias=False)
        self.head.weight = self.embed.weight


def loaded(folder: Path, found: dict[str, Tensor], skipped: int = 0, ignored: str = "none") -> tuple[Net, list[str]]:
    write_weights(folder, found)
    placed: list[str] = []
    with torch.device("meta"):
        net = Net()
    load_into(
        net,
        PLACES[skipped:],
        Shards(folder),
        dtype=torch.bfloat16,
        keep=lambda name: torch.float32 if name == "experts" else None,
        placed=placed.append,
        ignored=lambda name: name.endswith(ignored),
    )
    return net, placed


def test_every_tensor_stands_in_its_place_in_its_type_and_tied_ones_stay_tied(tmp_path: Path) -> None:
    net, placed = loaded(tmp_path, FOUND)

    assert torch.equal(net.qkv.weight.float(), torch.cat([FOUND["q"], FOUND["k"], FOUND["v"]]))
    assert torch.equal(net.experts, torch.cat([FOUND["e.0"], FOUND["e.1"]]))
    assert torch.equal(net.kept.float(), FOUND["t"])
    assert net.head.weight is net.embed.weight
    assert not any(parameter.requires_grad or parameter.is_meta for parameter in net.parameters())
    assert (net.qkv.weight.dtype, net.experts.dtype) == (torch.bfloat16, torch.float32)
    assert placed == [ours for ours, _ in PLACES]


def test_what_does_not_fit_is_named_unless_the_family_knows_it(tmp_path: Path) -> None:
    more = {**FOUND, "rotary_emb.inv_freq": torch.ones(2)}

    with pytest.raises(CheckpointError, match=r"do not fit its config\.json: unknown rotary_emb\.inv_freq"):
        loaded(tmp_path, more)
    loaded(tmp_path, more, ignored="inv_freq")
    with pytest.raises(CheckpointError, match=r"missing e\.1, k"):
        loaded(tmp_path, {name: tensor for name, tensor in FOUND.items() if name not in {"k", "e.1"}})
    with pytest.raises(CheckpointError, match=r"leaves qkv\.weight without a tensor"):
        loaded(tmp_path, {name: tensor for name, tensor in FOUND.items() if name not in {"q", "k", "v"}}, skipped=1)


@pytest.mark.parametrize(("name", "shape"), [("v", (3, 2)), ("v", (1, 2)), ("e.1", (3, 3)), ("embed", (5, 2))])
def test_a_tensor_of_another_shape_is_named_with_both(tmp_path: Path, name: str, shape: tuple[int, int]) -> None:
    with pytest.raises(CheckpointError, match=rf"\b{name} .*does not match .*, whose shape in config\.json is \("):
        loaded(tmp_path, {**FOUND, name: torch.ones(shape)})
