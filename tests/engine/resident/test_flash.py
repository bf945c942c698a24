"""Kernels that read pages, played by naive attention: what they are told, and what comes of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from calomel.engine import Engine, ModelConfig, Request, Transformer
from calomel.engine.resident import ResidentOptions, opening
from calomel.engine.resident.arena import PAGE
from calomel.engine.resident.flash import Keyed, paged_kernel

Start = Callable[..., Engine]


def attend(q: Tensor, keys: Tensor, values: Tensor, table: Tensor, lengths: Tensor, left: int, right: int) -> Tensor:
    """Naive: q [B, R, Hq, D], keys and values [P, page, Hkv, D], the last row at the last key; -1 is no bound."""
    outs = []
    for row in range(len(q)):
        size = int(lengths[row])
        groups = q.shape[2] // keys.shape[2]
        own = [part[table[row].long()].flatten(0, 1)[:size].repeat_interleave(groups, 1) for part in (keys, values)]
        place = torch.arange(q.shape[1])[:, None] + size - q.shape[1]
        key = torch.arange(size)[None]
        seen = torch.ones(q.shape[1], size, dtype=torch.bool)
        if left >= 0:
            seen &= key >= place - left
        if right >= 0:
            seen &= key <= place + right
        scores = torch.einsum("qhd,khd->hqk", q[row], own[0]) / q.shape[-1] ** 0.5
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1).nan_to_num()
        outs.append(torch.einsum("hqk,khd->qhd", weights, own[1]))
    return torch.stack(outs)


def flash_2(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, k: None = None, v: None = None, *, cache_seqlens: Any = None,
    block_table: Any = None, causal: bool = False, window_size: tuple[int, int] = (-1, -1),
) -> Tensor:  # fmt: skip
    left, right = window_size
    return attend(q, k_cache, v_cache, block_table, cache_seqlens, left, 0 if causal else right)


def flash_3(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, *, cache_seqlens: Any = None, page_table: Any = None,
    causal: bool = False, window_size: tuple[int, int] = (-1, -1),
) -> Tensor:  # fmt: skip
    left, right = window_size
    return attend(q, k_cache, v_cache, page_table, cache_seqlens, left, 0 if causal else right)


def flash_4(
    q: Tensor, k: Tensor, v: Tensor, *, seqused_k: Any = None, page_table: Any = None, causal: bool = False,
    window_size: tuple[int | None, int | None] = (None, None),
) -> tuple[Tensor, None]:  # fmt: skip
    left, right = (-1 if size is None else size for size in window_size)
    return attend(q, k, v, page_table, seqused_k, left, 0 if causal else right), None


def varlen_attn(
    query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor, cu_seq_k: None, max_q: int, max_k: int, *,
    window_size: tuple[int, int] = (-1, -1), enable_gqa: bool = False, seqused_k: Any = None, block_table: Any = None,
) -> Tensor:  # fmt: skip
    assert enable_gqa
    assert cu_seq_q.tolist() == list(range(0, len(query) + 1, max_q))
    assert int(seqused_k.max()) <= max_k
    return attend(query.unflatten(0, (-1, max_q)), key, value, block_table, seqused_k, *window_size).flatten(0, 1)


@dataclass(frozen=True)
class Installed:
    """A package that offers `function` under `name`; found on a processor of `major`."""

    module: str
    name: str
    function: Any
    major: int = 9


PACKAGES = {
    "flash-attn 2": Installed("flash_attn", "flash_attn_with_kvcache", flash_2, 8),
    "flash-attn 3": Installed("flash_attn_interface", "flash_attn_with_kvcache", flash_3),
    "flash-attn 4": Installed("flash_attn.cute", "flash_attn_varlen_func", flash_4, 10),
    "torch": Installed("torch.nn.attention.varlen", "varlen_attn", varlen_attn),
}


def install(monkeypatch: pytest.MonkeyPatch, *packages: Installed) -> None:
    for package in PACKAGES.values():
        monkeypatch.setitem(sys.modules, package.module, None)
    for package in packages:
        module = ModuleType(package.module)
        setattr(module, package.name, package.function)
        monkeypatch.setitem(sys.modules, package.module, module)
        if "." in package.module:
            parent = package.module.partition(".")[0]
            monkeypatch.setitem(sys.modules, parent, sys.modules[parent] or ModuleType(parent))
    major = packages[0].major if packages else 9
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (major, 0))


@pytest.fixture
def wide(config: ModelConfig, model: Transformer) -> Transformer:
    """With a window that is longer than its canvases."""
    found = Transformer(replace(config, sliding_window=70)).requires_grad_(False)
    found.load_state_dict(model.state_dict())
    return found.to(model.embed_tokens.weight.device).eval()


@pytest.mark.parametrize("config", [False], ids=["plain"], indirect=True)
@pytest.mark.parametrize("package", list(PACKAGES))
def test_every_kernel_gives_the_answers_of_gathered_keys(
    wide: Transformer, start: Start, context: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    long = (*context, *context[::-1], *context)
    requests = [
        Request(long, 40, (20,), policy="threshold:0.3"),
        Request(long[90:], 9, (9,), policy="threshold:0.3", reuse=0),
        Request(long[:3], 9, (9,), policy="threshold:0.3"),
    ]
    expected = [handle.result(60) for handle in start(wide, resident=False).submit_all(requests)]
    install(monkeypatch, PACKAGES[package])
    kernel = paged_kernel(torch.device("cuda"), torch.bfloat16)
    assert kernel is not None
    monkeypatch.setattr(opening, "paged_kernel", lambda device, dtype: kernel)

    engine = start(wide, resident=ResidentOptions(look=3, tokens=4096))
    found = [handle.result(60) for handle in engine.submit_all(requests)]

    assert [(result.ids, result.steps) for result in found] == [(result.ids, result.steps) for result in expected]


def test_the_newest_kernel_that_fits_the_processor_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    device = torch.device("cuda")
    install(monkeypatch, *PACKAGES.values())
    names = {}
    for major in (8, 9, 10):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None, major=major: (major, 0))
        names[major] = paged_kernel(device, torch.float16).call  # type: ignore[union-attr]

    assert names == {8: flash_2, 9: flash_3, 10: flash_4}
    assert paged_kernel(device, torch.float32) is None
    assert paged_kernel(torch.device("cpu"), torch.bfloat16) is None


def test_a_release_without_block_tables_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, replace(PACKAGES["flash-attn 2"], function=lambda q, k_cache, v_cache: q))

    assert paged_kernel(torch.device("cuda"), torch.float16) is None


@pytest.mark.gpu
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("past", [-1, 99])
def test_the_installed_kernel_equals_the_naive_one(*, causal: bool, past: int) -> None:
    kernel = paged_kernel(torch.device("cuda"), torch.bfloat16)
    if kernel is None:
        pytest.skip("no kernel that reads pages")
    torch.manual_seed(0)
    keys, values = (torch.randn(8, PAGE, 2, 64, dtype=torch.bfloat16) for _ in range(2))
    q = torch.randn(2, 17, 4, 64, dtype=torch.bfloat16)
    table, lengths = torch.tensor([[1, 2, 3], [5, 6, 7]], dtype=torch.int32), torch.tensor([700, 40], dtype=torch.int32)
    expected = attend(q.float(), keys.float(), values.float(), table, lengths, past, 0 if causal else -1)

    keyed = Keyed(table.cuda(), lengths.cuda(), 768)
    found = kernel(q.cuda(), keys.cuda(), values.cuda(), keyed, causal=causal, past=past)

    torch.testing.assert_close(found.float().cpu(), expected, atol=2e-2, rtol=2e-2)
