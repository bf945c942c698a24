from __future__ import annotations

from collections.abc import Callable

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from calomel.engine import CacheCorruptError, CacheFullError, DiffusionConfig, ModelConfig
from calomel.engine.buffer import KeyValueBuffer
from calomel.engine.cache import Lease, PrefixCache

CONFIG = ModelConfig(10, 4, 4, 2, 1, 1, 2, 64, DiffusionConfig(8, 9))
CPU = torch.device("cpu")
Tokens = tuple[int, ...]


def new_cache(pages: int = 8, page_size: int = 4) -> PrefixCache:
    return PrefixCache(CONFIG, pages=pages, page_size=page_size, dtype=torch.float32, device=CPU)


def expected_keys(tokens: Tokens) -> list[int]:
    """Stands for what a model computes: each row depends on all tokens up to its own."""
    return [hash(tokens[: end + 1]) % 10_007 for end in range(len(tokens))]


def new_buffer() -> KeyValueBuffer:
    return KeyValueBuffer(CONFIG, 64, dtype=torch.float32, device=CPU)


def serve(
    cache: PrefixCache, tokens: Tokens, chunk: int = 100, buffer: KeyValueBuffer | None = None
) -> tuple[int, Lease]:
    """Acquire, compute the rest, store; every row that came from the cache must be the right one."""
    buffer = buffer or new_buffer()
    lease = cache.acquire(tokens, buffer)
    reused = lease.length
    rows = torch.tensor(expected_keys(tokens), dtype=torch.float32)
    assert buffer.keys[1, :reused, 0, 0].tolist() == rows[:reused].tolist()
    assert buffer.values[0, :reused, 0, 1].tolist() == (-rows[:reused]).tolist()
    buffer.keys[:, : len(tokens)] = rows[:, None, None]
    buffer.values[:, : len(tokens)] = -rows[:, None, None]
    for stop in range(reused, len(tokens), chunk):
        cache.store(lease, tokens[: stop + chunk], buffer)
    return reused, lease


@pytest.mark.parametrize(
    ("first", "second", "reused"),
    [
        pytest.param((1, 2, 3, 4, 5, 6, 7, 8), (1, 2, 3, 4, 5, 6, 7, 8), 8, id="the same, whole pages"),
        pytest.param((1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 6), 6, id="the same, partial page"),
        pytest.param((1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 6, 7, 7, 7), 6, id="a keystroke more"),
        pytest.param((1, 2, 3, 4, 5, 6, 7), (1, 2, 3, 4, 5), 5, id="a keystroke less"),
        pytest.param((1, 2, 3, 4, 5, 6, 7, 8), (1, 2, 3, 4, 5, 6, 0, 8), 6, id="parting within a page"),
        pytest.param((1, 2, 3, 4, 5), (1, 2, 0), 2, id="parting within the first page"),
        pytest.param((1, 2, 3), (2, 3), 0, id="nothing in common"),
    ],
)
def test_reuse_is_exact_to_the_token(first: Tokens, second: Tokens, reused: int) -> None:
    cache = new_cache()
    for tokens in (first, second, first, second):
        _, lease = serve(cache, tokens)
        cache.check()
        cache.release(lease)

    cache = new_cache()
    cache.release(serve(cache, first)[1])
    actual, lease = serve(cache, second)
    cache.release(lease)
    cache.check()

    assert actual == reused


def test_shared_pages_are_held_once() -> None:
    cache = new_cache(pages=8)
    leases = [serve(cache, (1, 2, 3, 4, 5, 6, 7, 8, tail))[1] for tail in (1, 2, 3)]

    assert cache.free_pages == 8 - 2 - 3
    for lease in leases:
        cache.release(lease)
    cache.check()


def test_a_growing_context_fills_up_its_last_page() -> None:
    cache = new_cache(pages=8)
    tokens: Tokens = ()
    for token in (1, 2, 3, 4, 5, 6):
        tokens += (token,)
        cache.release(serve(cache, tokens)[1])

    assert cache.free_pages == 6
    cache.check()


def test_the_least_recently_used_page_goes_first() -> None:
    cache = new_cache(pages=3)
    for tokens in ((1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3), (1, 1, 1, 1), (4, 4, 4, 4)):
        cache.release(serve(cache, tokens)[1])
    reused = {}
    for token in (1, 3, 4):
        reused[token], lease = serve(cache, (token,) * 4)
        cache.release(lease)

    assert reused == {1: 4, 3: 4, 4: 4}
    assert serve(cache, (2,) * 4)[0] == 0


def test_a_page_in_use_is_never_evicted() -> None:
    cache = new_cache(pages=3)
    _, held = serve(cache, (1, 1, 1, 1, 1, 1, 1, 1))
    for token in (2, 3, 4):
        cache.release(serve(cache, (token,) * 4)[1])
        cache.check()

    reused, again = serve(cache, (1, 1, 1, 1, 1, 1, 1, 1))

    assert reused == 8
    cache.release(again)
    cache.release(held)


def test_a_full_cache_refuses_and_recovers() -> None:
    cache = new_cache(pages=2)
    _, held = serve(cache, (1,) * 8)
    buffer = KeyValueBuffer(CONFIG, 64, dtype=torch.float32, device=CPU)
    lease = cache.acquire((2,) * 4, buffer)
    with pytest.raises(CacheFullError, match="all 2 pages"):
        cache.store(lease, (2,) * 4, buffer)
    cache.check()
    cache.release(lease)
    cache.release(held)

    assert serve(cache, (2,) * 4)[0] == 0
    cache.check()


@pytest.mark.parametrize("there", [0, 1, 4, 6, 9, 10])
def test_what_the_buffer_holds_already_is_not_copied(there: int) -> None:
    cache, tokens = new_cache(), (1, 2, 3, 4, 5, 6, 7, 8, 9)
    cache.release(serve(cache, tokens)[1])
    rows = torch.tensor(expected_keys(tokens), dtype=torch.float32)
    buffer = KeyValueBuffer(CONFIG, 64, dtype=torch.float32, device=CPU)
    buffer.keys[:, :there] = torch.cat((rows, rows[:1]))[:there, None, None]
    buffer.length = there

    cache.release(cache.acquire(tokens, buffer))

    assert buffer.length == 9
    assert buffer.keys[0, :9, 0, 0].tolist() == rows.tolist()


def test_a_buffer_knows_what_it_shares() -> None:
    buffer = KeyValueBuffer(CONFIG, 64, dtype=torch.float32, device=CPU)
    assert buffer.common((1, 2)) == 0
    buffer.tokens = (1, 2, 3)
    assert [buffer.common(tokens) for tokens in ((1, 2, 3, 4), (1, 2), (1, 5, 3), (4,), ())] == [3, 2, 1, 0, 0]


def test_concurrent_requests_of_one_context_share_what_both_computed() -> None:
    cache = new_cache(pages=4)
    buffers = [KeyValueBuffer(CONFIG, 64, dtype=torch.float32, device=CPU) for _ in range(2)]
    leases = [cache.acquire((1, 2, 3, 4, 5), buffer) for buffer in buffers]
    for lease, buffer in zip(leases, buffers, strict=True):
        cache.store(lease, (1, 2, 3, 4, 5), buffer)

    assert cache.free_pages == 2
    for lease in leases:
        cache.release(lease)
    cache.check()


def test_the_books_are_verified() -> None:
    cache = new_cache()
    cache.release(serve(cache, (1, 2, 3, 4, 5))[1])
    cache._free.pop()

    with pytest.raises(CacheCorruptError, match="2 pages held and 5 free, of 8"):
        cache.check()


sequences = st.lists(st.integers(0, 2), min_size=1, max_size=14).map(tuple)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(sequences, st.integers(1, 5), st.booleans()), max_size=25))
def test_reuse_equals_the_longest_common_prefix(requests: list[tuple[Tokens, int, bool]]) -> None:
    cache = new_cache(pages=400)
    stored: list[Tokens] = []
    held: list[Lease] = []
    for tokens, chunk, release_all in requests:
        reused, lease = serve(cache, tokens, chunk)
        held.append(lease)
        assert reused == max((_common(tokens, other) for other in stored), default=0)
        stored.append(tokens)
        cache.check()
        if release_all:
            for each in held:
                cache.release(each)
            held.clear()
            cache.check()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(sequences, st.integers(1, 5), st.integers(0, 3)), max_size=40))
def test_a_small_cache_is_right_whatever_is_evicted(requests: list[tuple[Tokens, int, int]]) -> None:
    cache = new_cache(pages=6)
    held: list[tuple[Tokens, Lease]] = []
    for tokens, chunk, keep in requests:
        try:
            held.append((tokens, serve(cache, tokens, chunk)[1]))
        except CacheFullError:
            for _, lease in held:
                cache.release(lease)
            held.clear()
            # The lease of the refused request is lost with `serve`: begin anew.
            cache = new_cache(pages=6)
        cache.check()
        while len(held) > keep:
            cache.release(held.pop(0)[1])
            cache.check()
        for kept, _ in held:
            reused, lease = serve(cache, kept)
            cache.release(lease)
            assert reused == len(kept)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(sequences, st.integers(1, 5), st.integers(0, 1)), max_size=40))
def test_pages_that_a_buffer_remembers_are_those_that_are_looked_for(requests: list[tuple[Tokens, int, int]]) -> None:
    """Two buffers are used again and again, as the engine does, while pages are evicted behind their backs."""
    cache, buffers = new_cache(pages=6), (new_buffer(), new_buffer())
    for tokens, chunk, number in requests:
        buffer = buffers[number]
        buffer.length = buffer.common(tokens)
        reused, lease = serve(cache, tokens, chunk, buffer)
        other = cache.acquire(tokens, new_buffer())
        # Another request finds what this one remembered and what it stored.
        assert other.nodes[: len(lease.nodes)] == lease.nodes
        assert reused <= len(tokens) == lease.length
        cache.release(other)
        buffer.length, buffer.tokens = len(tokens), tokens
        cache.release(lease, buffer)
        cache.check()


def test_a_page_that_was_filled_up_by_another_is_not_remembered() -> None:
    cache, buffer = new_cache(), new_buffer()
    lease = serve(cache, (1, 2, 3, 4, 5, 6), buffer=buffer)[1]
    buffer.tokens = (1, 2, 3, 4, 5, 6, 0, 0, 0)
    cache.release(lease, buffer)
    cache.release(serve(cache, (1, 2, 3, 4, 5, 6, 7, 8))[1])
    buffer.length = 6

    reused, lease = serve(cache, (1, 2, 3, 4, 5, 6, 0, 0, 0), buffer=buffer)

    assert reused == 6
    cache.release(lease)
    cache.check()


def test_a_path_goes_from_its_end_on_once_it_is_the_least_recently_used() -> None:
    cache = new_cache(pages=4)
    cache.release(serve(cache, (1,) * 8)[1])
    cache.release(serve(cache, (2,) * 4)[1])
    cache.release(serve(cache, (1,) * 8)[1])
    for token in (3, 4):
        cache.release(serve(cache, (token,) * 4)[1])

    assert serve(cache, (1,) * 8)[0] == 8
    cache.check()


def _common(first: Tokens, second: Tokens) -> int:
    pairs: Callable[[], zip[tuple[int, int]]] = lambda: zip(first, second, strict=False)  # noqa: E731
    return next((index for index, (a, b) in enumerate(pairs()) if a != b), min(len(first), len(second)))
