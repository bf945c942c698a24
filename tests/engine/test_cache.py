from __future__ import annotations

import hypothesis.strategies as st
import torch
from hypothesis import given, settings
from tests.engine.conftest import Context, check

from calomel.engine import DiffusionConfig, ModelConfig
from calomel.engine.cache import KeyValueBuffer, Lease, PrefixCache, Spares, common_beginning
from calomel.engine.errors import CacheFullError

CONFIG = ModelConfig(10, 4, 4, 2, 1, 1, 2, 64, DiffusionConfig(8, 9))
CPU = torch.device("cpu")


def new_cache(pages: int = 8) -> PrefixCache:
    return PrefixCache(CONFIG, pages=pages, page_size=4, dtype=torch.float32, device=CPU)


def new_buffer(length: int = 0) -> KeyValueBuffer:
    buffer = KeyValueBuffer(CONFIG, 64, dtype=torch.float32, device=CPU)
    buffer.length = length
    return buffer


def rows_of(tokens: Context) -> torch.Tensor:
    """Stands for what a model computes: each row depends on all tokens up to its own."""
    return torch.tensor([float(hash(tokens[: end + 1]) % 10_007) for end in range(len(tokens))])


def serve(cache: PrefixCache, tokens: Context, chunk: int = 100) -> tuple[int, Lease]:
    """Acquire, compute the rest, store; every row that came from the cache must be the right one."""
    buffer, rows = new_buffer(), rows_of(tokens)
    lease = cache.acquire(tokens, buffer)
    reused = lease.length
    assert buffer.keys[1, 0, :reused, 0].tolist() == rows[:reused].tolist()
    assert buffer.values[0, 0, :reused, 1].tolist() == (-rows[:reused]).tolist()
    buffer.keys[:, :, : len(tokens)] = rows[:, None]
    buffer.values[:, :, : len(tokens)] = -rows[:, None]
    for stop in range(reused, len(tokens), chunk):
        cache.store(lease, tokens[: stop + chunk], buffer)
    return reused, lease


def reused(cache: PrefixCache, *contexts: Context) -> list[int]:
    """Serve them one behind the other."""
    found = []
    for tokens in contexts:
        count, lease = serve(cache, tokens)
        cache.release(lease)
        check(cache)
        found.append(count)
    return found


def test_shared_pages_are_held_once_and_a_growing_context_fills_up_its_last_one() -> None:
    cache = new_cache()
    reused(cache, *((1, 2, 3, 4, 5, 6, 7, 8, tail) for tail in (1, 2, 3)))
    assert cache.free_pages == 8 - 2 - 3

    cache = new_cache()
    reused(cache, *((1, 2, 3, 4, 5, 6)[:size] for size in range(1, 7)))
    assert cache.free_pages == 8 - 2


def test_the_least_recently_used_page_goes_first() -> None:
    cache = new_cache(pages=3)
    reused(cache, *((token,) * 4 for token in (1, 2, 3, 1, 4)))

    assert reused(cache, *((token,) * 4 for token in (1, 3, 4, 2))) == [4, 4, 4, 0]


def test_a_path_goes_from_its_end_on_once_it_is_the_least_recently_used() -> None:
    cache = new_cache(pages=4)
    reused(cache, (1,) * 8, (2,) * 4, (1,) * 8, (3,) * 4, (4,) * 4)

    assert reused(cache, (1,) * 8) == [8]


def test_the_spare_context_that_shares_most_is_taken_and_cut() -> None:
    spares: Spares[KeyValueBuffer] = Spares(1000, block=2)
    for tokens in ((1, 2, 3, 4), (1, 2, 9, 9), (1, 2, 3, 4, 5, 6, 7)):
        spares.put(tokens, new_buffer(len(tokens)))

    assert spares.take((8, 8)) is None
    assert spares.take((1, 2, 8, 8, 8)) is None  # less than half: its owner will want it back
    assert [taken.length if (taken := spares.take((1, 2, 3, 4, 5, 8))) else 0 for _ in range(3)] == [4, 4, 0]


def test_spare_contexts_beyond_their_room_are_let_go_the_longest_unused_first() -> None:
    spares: Spares[KeyValueBuffer] = Spares(3 * 64)
    for token in range(4):
        spares.put((token,), new_buffer(1))

    spares.trim()
    assert spares.take((0,)) is None
    spares.trim(beside=64)
    assert spares.take((1,)) is None
    assert spares.take((3,)) is not None


sequences = st.lists(st.integers(0, 2), min_size=1, max_size=14).map(tuple)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(sequences, st.integers(1, 5), st.booleans()), max_size=25))
def test_reuse_equals_the_longest_common_prefix(requests: list[tuple[Context, int, bool]]) -> None:
    cache = new_cache(pages=400)
    stored: list[Context] = []
    held: list[Lease] = []
    for tokens, chunk, release_all in requests:
        found, lease = serve(cache, tokens, chunk)
        held.append(lease)
        assert found == max((in_common(tokens, other) for other in stored), default=0)
        stored.append(tokens)
        check(cache)
        while release_all and held:
            cache.release(held.pop())
            check(cache)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(sequences, st.integers(1, 5), st.integers(0, 3)), max_size=40))
def test_a_small_cache_is_right_whatever_is_evicted(requests: list[tuple[Context, int, int]]) -> None:
    cache = new_cache(pages=6)
    held: list[tuple[Context, Lease]] = []
    for tokens, chunk, keep in requests:
        try:
            held.append((tokens, serve(cache, tokens, chunk)[1]))
        except CacheFullError:
            # The lease of the refused request is lost with `serve`: begin anew.
            cache, held = new_cache(pages=6), []
        check(cache)
        while len(held) > keep:
            cache.release(held.pop(0)[1])
            check(cache)
        for kept, _ in held:
            assert reused(cache, kept) == [len(kept)]


def in_common(first: Context, second: Context) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(first), len(second)))


long_sequences = st.lists(st.integers(0, 1), max_size=200).map(tuple)


@given(long_sequences, long_sequences, long_sequences)
def test_a_common_beginning_is_what_comparing_token_by_token_finds(both: Context, one: Context, other: Context) -> None:
    one, other = both * 3 + one, both * 3 + other

    assert common_beginning(one, other) == common_beginning(other, one) == in_common(one, other)
