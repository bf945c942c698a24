from __future__ import annotations

from calomel.context.default import MAX_BUDGET, default_budget


def test_nothing_measured_means_what_the_benches_support() -> None:
    limit = default_budget(positions=32_768, supported=2048, answer_tokens=64)
    assert limit.tokens == 2048
    assert "benches" in limit.why


def test_a_slow_device_gets_what_it_reads_in_time() -> None:
    limit = default_budget(
        positions=32_768, supported=8192, answer_tokens=64, prefill_rate=1000.0, first_use_seconds=3.0
    )
    assert limit.tokens == 3000
    assert "1,000 tokens/s measured" in limit.why


def test_a_fast_device_gets_what_is_supported() -> None:
    assert default_budget(positions=32_768, supported=8192, answer_tokens=64, prefill_rate=1e6).tokens == 8192


def test_a_very_slow_device_still_gets_enough_to_say_something() -> None:
    assert default_budget(positions=32_768, supported=8192, answer_tokens=64, prefill_rate=10.0).tokens == 512


def test_the_answer_needs_positions_too() -> None:
    limit = default_budget(positions=1024, supported=8192, answer_tokens=64)
    assert limit.tokens == 960
    assert "1,024 positions" in limit.why


def test_what_the_user_wants_goes_before_what_is_supported() -> None:
    limit = default_budget(positions=65_536, supported=2048, answer_tokens=64, wanted=16_000, prefill_rate=10.0)
    assert (limit.tokens, limit.why) == (16_000, "asked for")
    assert default_budget(positions=65_536, supported=2048, answer_tokens=64, wanted=60_000).tokens == MAX_BUDGET
