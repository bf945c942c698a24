"""Attention over pages on CUDA, in Triton: the operation `calomel::attend` in two launches, whatever the requests are.

The query heads of a group are rows of their key head. A program takes a tile of these rows and a share of the keys, by
pages, as flash attention does (arXiv 2205.14135); with few tiles, the keys are shared out to many programs, whose
results are joined by their normalisers. What a row does not see is never read, so that it may be anything.
"""

from __future__ import annotations

from typing import Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from calomel.engine import attention
from calomel.engine.attention import TILE, Sight

# The tiles up to which the keys are shared out, and to how many programs.
_FEW: Final = 48
_SHARES: Final = 8
# How far the kernel may be from products of matrices, by type.
_CLOSE: Final = {torch.float32: 1e-4, torch.bfloat16: 3e-2, torch.float16: 3e-2}


@triton.jit
def _attend(
    q, keys, values, positions, seen, first, floor, tables, tiles, parts, norms,
    q_row, q_head, k_head, k_row, pages, count, scale,
    GROUP: tl.constexpr, WIDTH: tl.constexpr, PAGE: tl.constexpr, WINDOW: tl.constexpr, ROWS: tl.constexpr,
    SHARES: tl.constexpr,
):  # fmt: skip
    tile, head, share = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    piece = tl.load(tiles + tile)
    if piece >= 0:
        begin = tl.load(first + piece)
        own = tl.load(tiles + count + tile) + tl.arange(0, ROWS)
        here = own < (tl.load(first + piece + 1) - begin) * GROUP
        row, at = begin + own // GROUP, head * GROUP + own % GROUP
        column = tl.arange(0, WIDTH)
        x = tl.load(q + row[:, None] * q_row + at[:, None] * q_head + column[None, :], mask=here[:, None], other=0.0)
        limit = tl.load(seen + row, mask=here, other=0)
        low = tl.zeros((ROWS,), tl.int32)
        if WINDOW > 0:
            place = tl.load(positions + row, mask=here, other=2147483647)
            low = tl.minimum(tl.maximum(place - WINDOW + 1, 0), tl.load(floor + piece))
        begins, ends = tl.min(tl.where(here, low, 2147483647)) // PAGE, (tl.max(limit) + PAGE - 1) // PAGE
        each = (ends - begins + SHARES - 1) // SHARES
        begins += share * each
        most = tl.full((ROWS,), -1e30, tl.float32)
        total = tl.zeros((ROWS,), tl.float32)
        found = tl.zeros((ROWS, WIDTH), tl.float32)
        for number in range(begins, tl.minimum(begins + each, ends)):
            page = tl.load(tables + piece * pages + number)
            key = number * PAGE + tl.arange(0, PAGE)
            there = key < tl.max(limit)
            place_k = head * k_head + (page * PAGE + tl.arange(0, PAGE)[:, None]) * k_row + column[None, :]
            k = tl.load(keys + place_k, mask=there[:, None], other=0.0)
            v = tl.load(values + place_k, mask=there[:, None], other=0.0)
            visible = (key[None, :] < limit[:, None]) & (key[None, :] >= low[:, None])
            score = tl.where(visible, tl.dot(x, tl.trans(k)) * scale, -1e30)
            higher = tl.maximum(most, tl.max(score, 1))
            shrink = tl.exp(most - higher)
            chance = tl.where(visible, tl.exp(score - higher[:, None]), 0.0)
            total = total * shrink + tl.sum(chance, 1)
            found = found * shrink[:, None] + tl.dot(chance.to(v.dtype), v)
            most = higher
        some = tl.where(total > 0, total, 1.0)
        place_o = (row * GROUP * tl.num_programs(1) + at) * SHARES + share
        tl.store(parts + place_o[:, None] * WIDTH + column[None, :], found / some[:, None], mask=here[:, None])
        tl.store(norms + place_o, tl.where(total > 0, most + tl.log(some), -1e30), mask=here)


@triton.jit
def _join(parts, norms, out, WIDTH: tl.constexpr, SHARES: tl.constexpr):
    own = tl.program_id(0)
    share, column = tl.arange(0, SHARES), tl.arange(0, WIDTH)
    norm = tl.load(norms + own * SHARES + share)
    weight = tl.exp(norm - tl.max(norm))
    part = tl.load(parts + (own * SHARES + share[:, None]) * WIDTH + column[None, :])
    found = tl.sum(part * weight[:, None], 0) / tl.sum(weight)
    tl.store(out + own * WIDTH + column, found.to(out.dtype.element_ty))


def attend(q: Tensor, keys: Tensor, values: Tensor, sight: Sight) -> Tensor:
    """See `calomel::attend`: q [T, Hq, D] over keys and values [Hkv, S, D] of one layout."""
    (rows, heads, width), held = q.shape, len(keys)
    tiles = sight.tiles.shape[1]
    shares = _SHARES if tiles <= _FEW else 1
    if not tiles or not rows:
        return torch.empty_like(q)
    parts = q.new_empty((rows, heads, shares, width), dtype=torch.float32)
    norms = q.new_empty((rows, heads, shares), dtype=torch.float32)
    _attend[(tiles, held, shares)](
        q, keys, values, sight.positions, sight.seen, sight.first, sight.floor, sight.tables, sight.tiles,
        parts, norms, q.stride(0), q.stride(1), keys.stride(0), keys.stride(1), sight.tables.shape[1], tiles,
        width**-0.5, GROUP=heads // held, WIDTH=width, PAGE=sight.page, WINDOW=sight.window, ROWS=TILE,
        SHARES=shares,
    )  # fmt: skip
    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    _join[(rows * heads,)](parts, norms, out, WIDTH=width, SHARES=shares)
    return out


def check(device: torch.device, width: int, page: int, dtype: torch.dtype = torch.bfloat16) -> None:
    """Compare the kernel with products of matrices: rows of both kinds, a window, pages anywhere, NaN beyond them.

    Raises:
        AssertionError: they differ.
    """
    generator = torch.Generator().manual_seed(0)
    pieces = ((5, page + 9, True), (7, 2 * page + 3, False), (1, 0, True))  # rows, keys before them, causal
    first, kinds = [0, 5, 12, 13], dict[str, list[int]](positions=[], seen=[], floor=[])
    for rows, context, causal in pieces:
        kinds["positions"] += range(context, context + rows)
        kinds["seen"] += range(context + 1, context + rows + 1) if causal else [context + rows] * rows
        kinds["floor"].append((1 << 31) - 1 if causal else context)
    tables = [[6, 1, 0, 0], [2, 7, 4, 0], [5, 0, 0, 0]]

    def here(values: object) -> Tensor:
        return torch.tensor(values, dtype=torch.int32, device=device)

    q, keys, values = (
        torch.randn(shape, generator=generator).to(device, dtype)
        for shape in ((13, 4, width), (2, 9 * page, width), (2, 9 * page, width))
    )
    positions, seen, floor = (here(kinds[name]) for name in ("positions", "seen", "floor"))
    tiles = here([[0, 1, 2, -1], [0, 0, 0, 0]])
    for window in (0, page // 2):
        sight = Sight(positions, seen, here(first), floor, here(tables), tiles, page, window)
        wanted = attention.attend(q, keys, values, sight)
        unseen = keys.clone(), values.clone()
        for number, (rows, context, _) in enumerate(pieces):
            last = tables[number][(context + rows - 1) // page]
            for held in unseen:
                held[:, last * page + (context + rows - 1) % page + 1 : (last + 1) * page] = torch.nan
        found = attend(q, *unseen, sight)
        torch.testing.assert_close(found, wanted, atol=_CLOSE[dtype], rtol=_CLOSE[dtype])
