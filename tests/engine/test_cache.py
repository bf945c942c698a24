from __future__ import annotations

from collections.abc import Callable

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from tests.engine.cache_books import check

from calomel.engine import DiffusionConfig, ModelConfig
from calomel.engine.cache import KeyValueBuffer, Lease, PrefixCache, Spares, common_beginning
from calomel.engine.errors import CacheFullError

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
        check(cache)
        cache.release(lease)

    cache = new_cache()
    cache.release(serve(cache, first)[1])
    actual, lease = serve(cache, second)
    cache.release(lease)
    check(cache)

    assert actual == reused


def test_shared_pages_are_held_once() -> None:
    cache = new_cache(pages=8)
    leases = [serve(cache, (1, 2, 3, 4, 5, 6, 7, 8, tail))[1] for tail in (1, 2, 3)]

    assert cache.free_pages == 8 - 2 - 3
    for lease in leases:
        cache.release(lease)
    check(cache)


def test_a_growing_context_fills_up_its_last_page() -> None:
    cache = new_cache(pages=8)
    tokens: Tokens = ()
    for token in (1, 2, 3, 4, 5, 6):
        tokens += (token,)
        cache.release(serve(cache, tokens)[1])

    assert cache.free_pages == 6
    check(cache)


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
        check(cache)

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
    check(cache)
    cache.release(lease)
    cache.release(held)

    assert serve(cache, (2,) * 4)[0] == 0
    check(cache)


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


def test_the_spare_context_that_shares_most_is_taken_and_cut() -> None:
    spares: Spares[KeyValueBuffer] = Spares(1000, block=2)
    for tokens in ((1, 2, 3, 4), (1, 2, 9, 9), (1, 2, 3, 4, 5, 6, 7)):
        buffer = new_buffer()
        buffer.length = len(tokens)
        spares.put(tokens, buffer)

    assert spares.take((8, 8)) is None
    assert spares.take((1, 2, 8, 8, 8)) is None  # less than half: its owner will want it back
    assert [taken.length if (taken := spares.take((1, 2, 3, 4, 5, 8))) else 0 for _ in range(3)] == [4, 4, 0]


def test_spare_contexts_beyond_their_room_are_let_go_the_longest_unused_first() -> None:
    spares: Spares[KeyValueBuffer] = Spares(3 * 64)
    for token in range(4):
        buffer = new_buffer()
        buffer.length = 1
        spares.put((token,), buffer)

    spares.trim()
    assert spares.take((0,)) is None
    spares.trim(beside=64)
    assert spares.take((1,)) is None
    assert spares.take((3,)) is not None


def test_concurrent_requests_of_one_context_share_what_both_computed() -> None:
    cache = new_cache(pages=4)
    buffers = [KeyValueBuffer(CONFIG, 64, dtype=torch.float32, device=CPU) for _ in range(2)]
    leases = [cache.acquire((1, 2, 3, 4, 5), buffer) for buffer in buffers]
    for lease, buffer in zip(leases, buffers, strict=True):
        cache.store(lease, (1, 2, 3, 4, 5), buffer)

    assert cache.free_pages == 2
    for lease in leases:
        cache.release(lease)
    check(cache)


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
        check(cache)
        if release_all:
            for each in held:
                cache.release(each)
            held.clear()
            check(cache)


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
        check(cache)
        while len(held) > keep:
            cache.release(held.pop(0)[1])
            check(cache)
        for kept, _ in held:
            reused, lease = serve(cache, kept)
            cache.release(lease)
            assert reused == len(kept)


def test_a_path_goes_from_its_end_on_once_it_is_the_least_recently_used() -> None:
    cache = new_cache(pages=4)
    cache.release(serve(cache, (1,) * 8)[1])
    cache.release(serve(cache, (2,) * 4)[1])
    cache.release(serve(cache, (1,) * 8)[1])
    for token in (3, 4):
        cache.release(serve(cache, (token,) * 4)[1])

    assert serve(cache, (1,) * 8)[0] == 8
    check(cache)


def _common(first: Tokens, second: Tokens) -> int:
    pairs: Callable[[], zip[tuple[int, int]]] = lambda: zip(first, second, strict=False)  # noqa: E731
    return next((index for index, (a, b) in enumerate(pairs()) if a != b), min(len(first), len(second)))


long_sequences = st.lists(st.integers(0, 1), max_size=200).map(tuple)


@given(long_sequences, long_sequences, long_sequences)
def test_it_is_what_comparing_token_by_token_finds(both: Tokens, one: Tokens, other: Tokens) -> None:
    one, other = both * 3 + one, both * 3 + other
    pairs = enumerate(zip(one, other, strict=False))
    expected = next((at for at, (ours, theirs) in pairs if ours != theirs), min(len(one), len(other)))

    assert expected == common_beginning(one, other) == common_beginning(other, one)


@pytest.mark.parametrize("at", [0, 1, 63, 64, 65, 575, 576, 577, 30_000])
def test_one_other_token_is_found_wherever_it_stands(at: int) -> None:
    one = tuple(range(30_001))
    assert common_beginning(one, (*one[:at], -1, *one[at + 1 :])) == at
