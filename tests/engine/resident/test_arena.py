from __future__ import annotations

import gc
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from calomel.engine import ModelConfig
from calomel.engine.resident.arena import PAGE, Arena, ArenaBuffer


@pytest.fixture
def arena(config: ModelConfig) -> Arena:
    return Arena(replace(config), 4 * PAGE, dtype=torch.float32, device=torch.device("cpu"))


def test_buffers_are_spans_of_one_tensor_that_begin_at_pages(arena: Arena) -> None:
    first, second = arena.take(10), arena.take(PAGE + 1)

    assert first is not None
    assert second is not None
    assert (first.start, first.capacity, second.start, second.capacity) == (0, PAGE, PAGE, 2 * PAGE)
    second.keys[1, 3] = 5.0
    assert arena.keys[1, PAGE + 3].unique().tolist() == [5.0]
    assert arena.free == PAGE


def test_a_buffer_that_nobody_holds_gives_its_span_back(arena: Arena) -> None:
    buffers = [arena.take(PAGE) for _ in range(4)]
    assert arena.take(1) is None

    del buffers[1:3]
    gc.collect()

    again = arena.take(2 * PAGE)
    assert again is not None
    assert again.start == PAGE


def test_a_growing_buffer_keeps_what_is_committed(arena: Arena) -> None:
    grown, blocker = arena.take(PAGE), arena.take(PAGE)
    assert isinstance(grown, ArenaBuffer)
    assert blocker is not None
    grown.length = 7
    grown.keys[:, :7] = 1.5

    grown.reserve(PAGE + 1)

    assert (grown.start, grown.capacity) == (2 * PAGE, 2 * PAGE)
    assert grown.keys[:, :7].unique().tolist() == [1.5]
    assert arena.free == PAGE

    grown.reserve(4 * PAGE)  # there is none so long

    assert grown.start is None
    assert grown.capacity >= 4 * PAGE
    assert grown.keys[:, :7].unique().tolist() == [1.5]
    assert arena.free == 3 * PAGE


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3 * PAGE)), max_size=30))
def test_spans_never_overlap_and_none_is_lost(steps: list[tuple[bool, int]]) -> None:
    arena = Arena.__new__(Arena)
    arena.unread = 12 * PAGE
    arena._free = [(0, arena.unread)]
    held: list[tuple[int, int]] = []
    for gives_back, size in steps:
        if gives_back and held:
            arena.release(*held.pop(size % len(held)))
        elif (start := arena.claim(size)) is not None:
            held.append((start, start + size + -size % PAGE))
        spans = sorted([*held, *arena._free])
        assert [stop for _, stop in spans[:-1]] == [start for start, _ in spans[1:]]
        assert (spans[0][0], spans[-1][1]) == (0, arena.unread)
