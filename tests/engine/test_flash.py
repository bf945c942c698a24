"""Which flash-attn is taken, and that every one of them is asked for the same attention."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from calomel.engine.flash import flash_varlen

Window = tuple[int | None, int | None]


def attend(q: Tensor, k: Tensor, v: Tensor, ends_q: Tensor, ends_k: Tensor, left: int, right: int) -> Tensor:
    """Naive: segments one behind the other, each row at its place before the end of its segment; -1 is no bound."""
    outs = []
    for segment in range(len(ends_q) - 1):
        rows = q[ends_q[segment] : ends_q[segment + 1]]
        groups = q.shape[1] // k.shape[1]
        keys, values = (p[ends_k[segment] : ends_k[segment + 1]].repeat_interleave(groups, 1) for p in (k, v))
        place = torch.arange(len(rows))[:, None] + len(keys) - len(rows)
        key = torch.arange(len(keys))[None]
        seen = (key >= place - left) if left >= 0 else torch.ones(len(rows), len(keys), dtype=torch.bool)
        if right >= 0:
            seen = seen & (key <= place + right)
        scores = torch.einsum("qhd,khd->hqk", rows, keys) / q.shape[-1] ** 0.5
        outs.append(torch.einsum("hqk,khd->qhd", scores.masked_fill(~seen, -torch.inf).softmax(-1), values))
    return torch.cat(outs)


def old(  # flash-attn 2 and 3
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int, max_seqlen_k: int,
    *, causal: bool = False, window_size: tuple[int, int] = (-1, -1),
) -> Tensor:  # fmt: skip
    return attend(q, k, v, cu_seqlens_q, cu_seqlens_k, window_size[0], 0 if causal else window_size[1])


def cute(  # flash-attn 4
    q: Tensor, k: Tensor, v: Tensor, *, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int | None = None,
    causal: bool = False, window_size: Window = (None, None),
) -> tuple[Tensor, None]:  # fmt: skip
    left, right = (-1 if size is None else size for size in window_size)
    return attend(q, k, v, cu_seqlens_q, cu_seqlens_k, left, 0 if causal else right), None


def ours(
    query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor, cu_seq_k: Tensor, max_q: int, max_k: int, *,
    window_size: tuple[int, int] = (-1, -1), enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    assert enable_gqa
    return attend(query, key, value, cu_seq_q, cu_seq_k, *window_size)


PACKAGES: dict[str, tuple[str, Callable[..., Any]]] = {
    "flash_attn_interface": ("flash_attn_varlen_func", old),
    "flash_attn.cute": ("flash_attn_varlen_func", cute),
    "flash_attn": ("flash_attn_varlen_func", old),
    "torch.nn.attention.varlen": ("varlen_attn", ours),
}


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Installs `names` alone, beside a GPU of generation `major`."""

    def put(*names: str, major: int = 9) -> None:
        for module, (name, function) in PACKAGES.items():
            fake = ModuleType(module) if module in names else None
            if fake is not None:
                setattr(fake, name, function)
            monkeypatch.setitem(sys.modules, module, fake)
        if "flash_attn.cute" in names and "flash_attn" not in names:
            monkeypatch.setitem(sys.modules, "flash_attn", ModuleType("flash_attn"))
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (major, 0))
        flash_varlen.cache_clear()

    yield put
    flash_varlen.cache_clear()


@pytest.mark.parametrize("package", list(PACKAGES))
@pytest.mark.parametrize(("causal", "past"), [(True, -1), (False, -1), (True, 4), (False, 4)])
def test_every_package_is_asked_for_the_same(
    install: Callable[..., None], package: str, causal: Any, past: int
) -> None:
    generator = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(size, heads, 8, generator=generator) for size, heads in ((9, 4), (23, 2), (23, 2)))
    ends_q, ends_k = torch.tensor([0, 3, 9]), torch.tensor([0, 10, 23])
    install(package)
    flash = flash_varlen()
    assert flash is not None

    found = flash(q, k, v, ends_q, ends_k, 6, 13, causal=causal, window_size=(past, 0 if causal else -1))

    expected = attend(q, k, v, ends_q, ends_k, past, 0 if causal else -1)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("major", "name"), [(8, "_plain"), (9, "_plain"), (10, "_cute"), (12, "_cute")])
def test_the_newest_package_that_fits_is_taken(install: Callable[..., None], major: int, name: str) -> None:
    install(*PACKAGES, major=major)

    found: Any = flash_varlen()
    assert found.func.__name__ == name


def test_a_gpu_without_any_package_gets_none(install: Callable[..., None]) -> None:
    install()

    assert flash_varlen() is None
