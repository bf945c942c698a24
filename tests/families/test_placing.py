from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.families.published.layout import write_weights
from torch import Tensor, nn

from calomel.engine import CheckpointError
from calomel.families.loading import load_into
from calomel.families.shards import Shards

PLACES = (
    ("qkv.weight", ("q", "k", "v")),
    ("experts", ("e.0", "e.1")),
    ("kept", ("t",)),
    ("embed.weight", ("embed",)),
)


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


def tensors() -> dict[str, Tensor]:
    shapes = {"q": (2, 2), "k": (2, 2), "v": (2, 2), "e.0": (3, 2), "e.1": (3, 2), "t": (3, 2), "embed": (4, 2)}
    return {name: torch.arange(0.0, float(h * w)).reshape(h, w) + len(name) for name, (h, w) in shapes.items()}


def loaded(folder: Path, found: dict[str, Tensor], ignored: Callable[[str], bool] = lambda _: False) -> Net:
    write_weights(folder, found)
    with torch.device("meta"):
        net = Net()
    load_into(net, PLACES, Shards(folder), dtype=torch.float32, ignored=ignored)
    return net


def test_every_tensor_stands_in_its_place_and_tied_ones_stay_tied(tmp_path: Path) -> None:
    found = tensors()

    net = loaded(tmp_path, found)

    assert torch.equal(net.qkv.weight, torch.cat([found["q"], found["k"], found["v"]]))
    assert torch.equal(net.experts, torch.cat([found["e.0"], found["e.1"]]))
    assert torch.equal(net.kept, found["t"])
    assert net.head.weight is net.embed.weight
    assert not any(parameter.requires_grad or parameter.is_meta for parameter in net.parameters())


def test_a_tensor_that_nobody_wants_is_named_unless_the_family_knows_it(tmp_path: Path) -> None:
    found = {**tensors(), "rotary_emb.inv_freq": torch.ones(2)}

    with pytest.raises(CheckpointError, match=r"do not fit its config\.json: unknown rotary_emb\.inv_freq"):
        loaded(tmp_path, found)
    loaded(tmp_path, found, ignored=lambda name: name.endswith("inv_freq"))


def test_tensors_that_are_missing_are_named(tmp_path: Path) -> None:
    found = tensors()
    del found["k"], found["e.1"]

    with pytest.raises(CheckpointError, match=r"missing e\.1, k"):
        loaded(tmp_path, found)


@pytest.mark.parametrize(("name", "shape"), [("v", (3, 2)), ("v", (1, 2)), ("e.1", (3, 3)), ("embed", (5, 2))])
def test_a_tensor_of_another_shape_is_named_with_both(tmp_path: Path, name: str, shape: tuple[int, int]) -> None:
    with pytest.raises(CheckpointError, match=r"does not make up .*, for which config\.json says"):
        loaded(tmp_path, {**tensors(), name: torch.ones(shape)})


def test_a_table_that_forgets_a_place_is_a_fault_of_the_family(tmp_path: Path) -> None:
    write_weights(tmp_path, tensors())
    with torch.device("meta"):
        net = Net()

    with pytest.raises(CheckpointError, match=r"leaves qkv\.weight without a tensor"):
        load_into(net, PLACES[1:], Shards(tmp_path), dtype=torch.float32)


def test_types_are_as_wished_for_each(tmp_path: Path) -> None:
    write_weights(tmp_path, tensors())
    with torch.device("meta"):
        net = Net()
    seen: list[str] = []

    load_into(
        net,
        PLACES,
        Shards(tmp_path),
        dtype=torch.bfloat16,
        keep=lambda name: torch.float32 if name == "experts" else None,
        placed=seen.append,
    )

    assert (net.qkv.weight.dtype, net.experts.dtype) == (torch.bfloat16, torch.float32)
    assert seen == [ours for ours, _ in PLACES]
