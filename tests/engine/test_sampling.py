from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from calomel.engine import BlockCausal, Engine, Request, SamplingParams, Transformer
from calomel.engine.sampling import Choice, Counts, Draw, best_tokens, choose, count_tokens, penalise, sample

CPU = torch.device("cpu")


def draw(logits: list[list[float]], *draws: Draw) -> Choice:
    """With vocabulary entry 0 as the mask token and 1 as the end token."""
    return choose(torch.tensor(logits), draws, mask_token_id=0, end_token_ids=(1,))


def test_the_most_probable_token_is_taken_and_of_equal_ones_the_lower_id() -> None:
    choice = draw([[9.0, 1.0, 2.0, 3.0, 3.0], [9.0, 1.0, 1.0, 1.0, 1.0]])

    assert choice.token.tolist() == [3, 1]


@pytest.mark.parametrize(("rows", "vocab"), [(200, 97), (200, 256), (0, 97), (0, 256)])
def test_the_best_token_is_found_in_any_vocabulary(rows: int, vocab: int) -> None:
    logits = torch.randint(0, 12, (rows, vocab), generator=torch.Generator().manual_seed(0)).float()

    expected = [row.index(max(row)) for row in logits.tolist()]
    assert best_tokens(logits).tolist() == expected


def test_confidence_and_entropy_leave_out_the_mask_token() -> None:
    choice = draw([[50.0, 0.0, 0.0, 0.0, 0.0]])

    assert choice.log_prob.tolist() == pytest.approx([math.log(0.25)])
    assert choice.entropy.tolist() == pytest.approx([math.log(4)])


def test_the_end_token_is_left_out_where_it_must_not_come() -> None:
    rule = Draw(0, 2, SamplingParams(), without_end=[1])

    assert draw([[0.0, 5.0, 1.0, 2.0], [0.0, 5.0, 1.0, 2.0]], rule).token.tolist() == [1, 3]


def test_a_forced_token_has_the_probability_that_the_model_gives_it() -> None:
    choice = draw([[0.0, 0.0, 0.0, math.log(2)]], Draw(0, 1, SamplingParams(), forced={0: 2}))

    assert choice.token.tolist() == [2]
    assert choice.log_prob.tolist() == pytest.approx([math.log(0.25)])


def frequencies(logits: list[float], **params: float) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    rows = torch.tensor([logits]).expand(4000, -1)
    drawn = sample(rows, SamplingParams(**{"temperature": 1.0, **params}), generator)  # type: ignore[arg-type]
    return torch.bincount(drawn, minlength=len(logits)) / 4000


def test_samples_follow_the_distribution() -> None:
    probabilities = torch.tensor([0.5, 0.3, 0.15, 0.05])

    torch.testing.assert_close(frequencies(probabilities.log().tolist()), probabilities, atol=0.03, rtol=0)


def test_temperature_sharpens_the_distribution() -> None:
    expected = torch.tensor([0.5, 0.3, 0.2]) ** 2
    actual = frequencies([math.log(0.5), math.log(0.3), math.log(0.2)], temperature=0.5)

    torch.testing.assert_close(actual, expected / expected.sum(), atol=0.03, rtol=0)


def test_top_k_draws_from_the_best_k() -> None:
    assert (frequencies([1.0, 3.0, 2.0, 0.0], top_k=2) > 0).tolist() == [False, True, True, False]


def test_top_p_draws_from_the_smallest_set_that_reaches_it() -> None:
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().tolist()

    assert (frequencies(logits, top_p=0.7) > 0).tolist() == [True, True, False, False]
    assert (frequencies(logits, top_p=0.01) > 0).tolist() == [True, False, False, False]


def test_a_seed_repeats_the_draw() -> None:
    params, logits = SamplingParams(temperature=1.0), torch.randn(8, 20)
    draws = [sample(logits, params, torch.Generator().manual_seed(seed)).tolist() for seed in (3, 3, 4)]

    assert draws[0] == draws[1] != draws[2]


def test_penalties_change_the_tokens_that_were_there() -> None:
    counts = Counts(torch.tensor([[0.0, 2.0, 1.0, 0.0]]), torch.tensor([[False, True, True, True]]))
    logits = torch.tensor([[1.0, 1.0, -1.0, 2.0]])

    def penalised(**params: float) -> list[float]:
        out: list[float] = penalise(logits, SamplingParams(**params), counts)[0].tolist()  # type: ignore[arg-type]
        return out

    assert penalised(frequency_penalty=0.5) == pytest.approx([1.0, 0.0, -1.5, 2.0])
    assert penalised(presence_penalty=0.5) == pytest.approx([1.0, 0.5, -1.5, 2.0])
    assert penalised(repetition_penalty=2.0) == pytest.approx([1.0, 0.5, -2.0, 1.0])


def test_each_row_counts_the_tokens_before_it() -> None:
    counts = count_tokens([4], [1, 1], [2, 1], 3, 5, CPU)

    assert counts.answer.tolist() == [[0, 2, 0, 0, 0], [0, 2, 1, 0, 0], [0, 3, 1, 0, 0]]
    assert counts.seen[0].tolist() == [False, True, False, False, True]


def test_penalties_reach_the_rows_of_their_request_alone() -> None:
    params = SamplingParams(presence_penalty=5.0)
    counts = count_tokens([], [3], [], 1, 4, CPU)

    choice = draw([[0.0, 0.0, 1.0, 2.0]] * 2, Draw(0, 1, params, counts=counts), Draw(1, 2, SamplingParams()))

    assert choice.token.tolist() == [2, 3]


@pytest.mark.parametrize("temperature", [1e-39, 1e-300, 5e-324])
def test_a_temperature_that_nothing_can_be_divided_by_is_that_of_the_best_token(
    model: Transformer, context: tuple[int, ...], temperature: float
) -> None:
    with Engine(BlockCausal(model)) as engine:
        best, cold = (
            engine.submit(Request(context, 8, (8,), sampling=SamplingParams(temperature=each))).result(60)
            for each in (0.0, temperature)
        )
    assert cold.ids == best.ids
    assert cold.log_probs == best.log_probs
