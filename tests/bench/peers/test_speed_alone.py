"""What is compared for speed alone: a random network in three engines, and DiffusionGemma's loop."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from calomel.bench.peers.gemma_loop import LoopSize, LoopTimes, loop_keys, loop_table, measure_loop
from calomel.bench.peers.half_billion import (
    Pace,
    half_a_billion,
    half_billion_keys,
    half_billion_table,
    measure_half_billion,
    pace,
)
from calomel.engine import DiffusionConfig, ModelConfig


class Steady:
    """Takes a second for a token, and two for the first answer."""

    settings = "steady"

    def __init__(self) -> None:
        self.asked: list[tuple[Sequence[int], int]] = []
        self.now = 0.0

    def answer(self, context: Sequence[int], count: int) -> int:
        self.now += count if self.asked else 2
        self.asked.append((context, count))
        return count


def test_the_first_prompt_warms_and_is_not_counted() -> None:
    speaker = Steady()
    found = pace(speaker, [[1, 2], [1, 3], [1, 4]], tokens=8, clock=lambda: speaker.now)
    assert found == Pace(1000.0, "steady")
    assert speaker.asked == [([1, 2], 1), ([1, 3], 8), ([1, 4], 8)]


def test_the_network_has_half_a_billion_weights() -> None:
    config = half_a_billion()
    matrices = config.hidden_size * (
        (config.num_attention_heads * 2 + config.num_key_value_heads * 2) * config.head_dim
        + 3 * config.intermediate_size
    )
    assert config.num_hidden_layers * matrices + config.vocab_size * config.hidden_size == pytest.approx(5e8, rel=0.02)


def test_every_engine_has_its_keys_and_its_row() -> None:
    paces = {"ours": Pace(10.0, "int8"), "transformers": Pace(40.0, "float32"), "llamacpp": Pace(20.0, "q8_0")}
    flat = half_billion_keys(paces)
    assert flat["half_b_ms_per_token_llamacpp"] == 20.0
    assert (flat["half_b_vs_transformers"], flat["half_b_vs_llamacpp"]) == (0.25, 0.5)
    assert "| llamacpp | 20.0 | q8_0 |" in half_billion_table(paces).to_markdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
def test_a_random_network_runs_in_every_engine_that_is_there() -> None:
    pytest.importorskip("transformers")
    config = ModelConfig(
        vocab_size=320,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=1024,
        diffusion=DiffusionConfig(mask_token_id=319, end_token_id=318, verifiable=True),
    )
    paces, missing = measure_half_billion(config, lambda _: None, quick=True, threads=1)
    assert {"ours", "ours_left_to_right", "transformers"} <= set(paces)
    assert len(paces) + len(missing) == 4
    assert all(found.milliseconds > 0 for found in paces.values())


def test_the_loops_ratio_is_the_median_of_turns() -> None:
    times = LoopTimes((1.0, 3.0, 2.0), (2.0, 3.0, 8.0), equal=True, steps=8)
    flat = loop_keys(times)
    assert flat["diffusion_gemma_vs_generate"] == 0.5
    assert (flat["diffusion_gemma_vs_generate_lowest"], flat["diffusion_gemma_vs_generate_highest"]) == (0.25, 1.0)
    assert flat["diffusion_gemma_tokens_equal"] is True
    assert "0.50 (0.25 to 1.00) | equal" in loop_table(times).to_markdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
def test_the_loop_draws_the_tokens_of_generate() -> None:
    pytest.importorskip("transformers.models.diffusion_gemma")
    size = LoopSize(canvas=16, context=40, steps=4, hidden=64, layers=3, vocabulary=512)
    times = measure_loop(1, size)
    assert times.equal
    assert len(times.ours) == len(times.theirs) == 1
