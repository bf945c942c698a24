from __future__ import annotations

import contextlib

import hypothesis.strategies as st
import torch
from hypothesis import given, settings
from tests.engine.conftest import Context, check

from calomel.engine import DiffusionConfig, ModelConfig
from calomel.engine.cache import Lease, PrefixCache, common_beginning
from calomel.engine.errors import CacheFullError

CONFIG = ModelConfig(10, 4, 4, 2, 1, 1, 2, 64, DiffusionConfig(8, 9))
CPU = torch.device("cpu")
SIZE = 4


def new_cache(pages: int = 8) -> PrefixCache:
    return PrefixCache(CONFIG, pages=pages, page_size=SIZE, dtype=torch.float32, device=CPU)


def rows_of(tokens: Context) -> torch.Tensor:
    """Stands for what a model computes: each row depends on all tokens up to its own."""
    return torch.tensor([float(hash(tokens[: end + 1]) % 10_007) for end in range(len(tokens))])


def held(table: Lease, length: int) -> list[float]:
    """The rows that a table has, read where they are; values are the negative keys."""
    runs = table.runs(0, length)
    keys, values = (
        [row for run in runs for row in pool[1][0, run, 1].tolist()] for pool in (table.pool.keys, table.pool.values)
    )
    assert values == [-key for key in keys]
    return keys


def begin(cache: PrefixCache, tokens: Context, chunk: int = 100, keep: float = 100) -> tuple[int, Lease]:
    """Acquire, compute the rest, store; every row must be the right one, from the cache or not."""
    table, rows = cache.acquire(tokens, keep), rows_of(tokens)
    reused = table.length
    assert held(table, reused) == rows[:reused].tolist()
    try:
        for stop in [*range(reused + chunk, len(tokens), chunk), len(tokens)]:
            cache.reserve(table, stop + 2)  # and room for a canvas, which is written to
            for at, row in (
                (at, float(rows[at]) if at < stop else 0.5) for at in range(table.length, stop + 2) if at < len(rows)
            ):
                (place,) = table.runs(at, at + 1)
                for keys, values in zip(table.pool.keys, table.pool.values, strict=True):
                    keys[:, place], values[:, place] = row, -row
            table.length = stop
            cache.store(table, tokens)
    except CacheFullError:
        cache.release(table)
        raise
    assert held(table, len(tokens)) == rows.tolist()
    return reused, table


def reused(cache: PrefixCache, *contexts: Context, keep: float = 100) -> list[int]:
    """Serve them one behind the other."""
    found = []
    for tokens in contexts:
        count, table = begin(cache, tokens, keep=keep)
        cache.release(table)
        check(cache)
        found.append(count)
    return found


def test_shared_pages_are_held_once_and_a_growing_context_takes_the_place_of_its_shorter_ones() -> None:
    cache = new_cache()
    reused(cache, *((1, 2, 3, 4, 5, 6, 7, 8, tail) for tail in (1, 2, 3)))
    assert cache.held_tokens == SIZE * (2 + 3)

    cache = new_cache()
    reused(cache, *((1, 2, 3, 4, 5, 6)[:size] for size in range(1, 7)))
    assert cache.held_tokens == SIZE * 2


def test_what_is_encoded_is_shared_while_its_request_runs() -> None:
    cache, tokens = new_cache(), (1, 2, 3, 4, 5, 6)
    begin(cache, tokens)

    assert begin(cache, tokens)[0] == len(tokens)


def test_the_least_recently_used_page_goes_first() -> None:
    cache = new_cache(pages=4)
    reused(cache, *((token,) * 4 for token in (1, 2, 3, 1, 4)))

    assert reused(cache, *((token,) * 4 for token in (1, 3, 4, 2))) == [4, 4, 4, 0]


def test_a_path_goes_from_its_end_on_once_it_is_the_least_recently_used() -> None:
    cache = new_cache(pages=5)
    reused(cache, (1,) * 8, (2,) * 4, (1,) * 8, (3,) * 4, (4,) * 4)

    assert reused(cache, (1,) * 8) == [8]


def test_what_only_the_next_keystrokes_want_goes_before_what_others_want() -> None:
    cache = new_cache(pages=5)
    reused(cache, (1,) * 4)
    reused(cache, (2,) * 4, (3,) * 4, (4,) * 4, (5,) * 4, keep=0)

    assert reused(cache, (1,) * 4, (5,) * 4, (2,) * 4) == [4, 4, 0]


def test_pages_that_are_freed_together_lie_side_by_side() -> None:
    """Else the keys of a long context would be read in as many pieces as it has pages."""
    cache, size = new_cache(pages=320), 40 * SIZE
    for number in range(60):  # keystrokes in eight files in turn
        tokens = (*[number % 8] * (size - 3 * SIZE), *range(100 + number, 100 + number + 3 * SIZE))
        reused(cache, tokens, keep=size - 3 * SIZE)
    _, table = begin(cache, (9,) * size)

    assert len(table.runs(0, size)) <= len(table.pages) // 4


sequences = st.lists(st.integers(0, 2), min_size=1, max_size=14).map(tuple)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(sequences, st.integers(1, 5), st.booleans()), max_size=25))
def test_reuse_equals_the_longest_common_prefix_but_for_ends_of_pages(
    requests: list[tuple[Context, int, bool]],
) -> None:
    cache = new_cache(pages=400)
    stored: list[Context] = []
    running: list[tuple[Lease, Context]] = []
    for tokens, chunk, release_all in requests:
        found, table = begin(cache, tokens, chunk)
        running.append((table, tokens))
        best = max((in_common(tokens, other) for other in stored), default=0)
        assert best - best % SIZE <= found <= best
        stored.append(tokens)
        check(cache, *(each for each, _ in running))
        while release_all and running:
            cache.release(running.pop()[0])
            check(cache, *(each for each, _ in running))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(sequences, st.integers(1, 5), st.integers(0, 3)), max_size=40))
def test_a_small_cache_is_right_whatever_is_evicted(requests: list[tuple[Context, int, int]]) -> None:
    cache = new_cache(pages=10)
    running: list[tuple[Lease, Context]] = []
    for tokens, chunk, keep in requests:
        with contextlib.suppress(CacheFullError):
            running.append((begin(cache, tokens, chunk)[1], tokens))
        check(cache, *(each for each, _ in running))
        for table, own in running:
            assert held(table, len(own)) == rows_of(own).tolist()
        while len(running) > keep:
            cache.release(running.pop(0)[0])
            check(cache, *(each for each, _ in running))


def in_common(first: Context, second: Context) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(first), len(second)))


long_sequences = st.lists(st.integers(0, 1), max_size=200).map(tuple)


@given(long_sequences, long_sequences, long_sequences)
def test_a_common_beginning_is_what_comparing_token_by_token_finds(both: Context, one: Context, other: Context) -> None:
    one, other = both * 3 + one, both * 3 + other

    assert common_beginning(one, other) == common_beginning(other, one) == in_common(one, other)
