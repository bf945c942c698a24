"""The cache without copies keeps what the model class gives it, shows what a query may see, and can be cut back."""

from __future__ import annotations

import pytest
import torch

from calomel.bench.peer_engines import RoomyLayer


def rows(first: int, count: int) -> torch.Tensor:
    return torch.arange(first, first + count, dtype=torch.float32)[None, None, :, None]


def seen(layer: RoomyLayer, first: int, count: int) -> list[int]:
    keys, values = layer.update(rows(first, count), -rows(first, count))
    assert torch.equal(keys, -values)
    return [int(row) for row in keys.flatten()]


def test_without_a_window_all_is_seen() -> None:
    layer = RoomyLayer(None)
    assert seen(layer, 0, 3) == [0, 1, 2]
    assert seen(layer, 3, 1) == [0, 1, 2, 3]
    assert layer.get_seq_length() == 4


def test_a_window_shows_what_its_first_query_may_see_and_what_follows() -> None:
    layer = RoomyLayer(3)
    assert seen(layer, 0, 5) == [0, 1, 2, 3, 4]
    assert layer.get_mask_sizes(2) == (4, 3)
    assert seen(layer, 5, 2) == [3, 4, 5, 6]


@pytest.mark.parametrize("window", [None, 3])
def test_what_was_cut_away_is_forgotten(window: int | None) -> None:
    layer = RoomyLayer(window)
    seen(layer, 0, 8)
    layer.crop(-6)
    assert seen(layer, 20, 1) == [0, 1, 20]


def test_a_cache_grows_beyond_its_room() -> None:
    layer = RoomyLayer(None)
    seen(layer, 0, 10)
    assert seen(layer, 10, 9000) == list(range(9010))
