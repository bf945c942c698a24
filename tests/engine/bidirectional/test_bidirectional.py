"""What a request may ask of an engine whose model reads in both directions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.engine.bidirectional.conftest import EXPAND, PREFIX, SUFFIX, ask, asked, network
from tests.engine.conftest import ANYTHING, END, MASK, Start
from tests.families.reference.window import Full

from calomel.engine import BidirectionalOptions, SamplingParams, Transformer
from calomel.engine.decoder import StepReport
from calomel.engine.errors import ContextTooLongError, InvalidRequestError

OPTIONS = [BidirectionalOptions(), BidirectionalOptions(block=4), BidirectionalOptions(block=4, dual_cache=True)]


def exactly(size: int, **fields: Any) -> dict[str, Any]:
    """Fields of a request for an answer of `size` tokens on one canvas."""
    return {"canvas_length": size, "min_new_tokens": size, **fields}


def rows_of(model: Transformer, length: int) -> torch.Tensor:
    """Logits [length, V] of a canvas of masks, whose end token is banned, between PREFIX and SUFFIX."""
    full = Full(model, MASK, never=frozenset({END}))
    rows = full.shifted if model.config.diffusion.logit_shift else full
    return rows([*PREFIX, *[MASK] * length, *SUFFIX])[len(PREFIX) : len(PREFIX) + length]


def test_canvases_follow_each_other_where_nothing_stands_behind(model: Transformer, start: Start) -> None:
    engine, six = start(model), {**exactly(6), "max_new_tokens": 6, "suffix": ()}
    whole, _ = ask(engine, **{**exactly(6), "max_new_tokens": 15, "min_new_tokens": 15, "suffix": ()})
    first, _ = ask(engine, **six)
    second, _ = ask(engine, context=(*PREFIX, *first.ids), **six)

    assert whole.ids[:12] == (*first.ids, *second.ids)
    assert (len(whole.ids), whole.finish_reason) == (15, "length")


def test_a_canvas_before_a_suffix_is_the_whole_answer_and_told_with_its_probabilities(
    model: Transformer, start: Start
) -> None:
    result, states = ask(start(model), **exactly(1, policy="fixed:1"))

    (logits,) = rows_of(model, 1)
    best = int(logits.argmax())
    assert (result.ids, states[-1], result.finish_reason) == ((best,), (best,), "stop")
    assert result.log_probs == pytest.approx([float(logits.log_softmax(-1)[best])], abs=1e-5)
    assert result.entropies == pytest.approx([float(torch.special.entr(logits.softmax(-1)).sum())], abs=1e-4)


def test_any_of_its_ends_ends_an_answer_and_none_before_its_least_length(start: Start) -> None:
    model = network(shift=False)
    also = ask(start(model), **exactly(8))[0].ids[3]
    engine = start(model, BidirectionalOptions(end_token_ids=(also,)))

    ended, _ = ask(engine, canvas_length=8, policy="fixed:1")
    longer, _ = ask(engine, **exactly(8, policy="fixed:1"))

    assert ended.end_log_prob is not None
    assert also not in ended.ids
    assert (len(longer.ids), also in longer.ids) == (8, False)


def test_penalties_keep_an_answer_from_repeating_itself(model: Transformer, start: Start) -> None:
    penalised = SamplingParams(presence_penalty=1000.0)

    assert len(set(ask(start(model), sampling=penalised, **exactly(16, policy="fixed:1"))[0].ids)) == 16


def test_a_dual_cache_forwards_the_block_alone_and_where_logits_are_shifted_the_token_before_it(
    model: Transformer, start: Start
) -> None:
    reports: list[StepReport] = []

    ask(start(model, OPTIONS[2], observe=reports.append), **exactly(8, policy="fixed:1"))

    window = len(PREFIX) + len(SUFFIX) + 8
    behind = 4 + int(model.config.diffusion.logit_shift)
    assert [report.rows for report in reports] == [window, behind, behind, behind] * 2


def test_a_dual_cache_is_as_old_as_the_last_tokens_at_most(start: Start) -> None:
    reports: list[StepReport] = []
    engine = start(network(shift=False), BidirectionalOptions(dual_cache=True), observe=reports.append)

    ask(engine, **exactly(40, policy="fixed:1"))

    window = len(PREFIX) + len(SUFFIX) + 40
    assert [step for step, report in enumerate(reports) if report.rows == window] == [0, 32]
    assert {report.rows for report in reports} == {window, 40}


@pytest.mark.parametrize(
    ("fields", "options", "error", "told"),
    [
        ({"policy": "left_to_right"}, {}, InvalidRequestError, "trained causally"),
        ({"given": (1, 2)}, {}, InvalidRequestError, "probability of given tokens"),
        ({"policy": "nonsense"}, {}, InvalidRequestError, "nonsense"),
        ({"policy": "p2:1"}, {}, InvalidRequestError, "p2 has no parameter"),
        ({"policy": "entropy:x"}, {}, InvalidRequestError, "not a number"),
        ({"policy": "p2", "constraint": ANYTHING}, {}, InvalidRequestError, "can undo"),
        ({"constraint": ANYTHING}, {"expand_token_id": EXPAND}, InvalidRequestError, "can undo"),
        ({"policy": "p2"}, {"expand_token_id": EXPAND}, InvalidRequestError, "grow and shrink"),
        ({"context": PREFIX * 30}, {}, ContextTooLongError, "256 positions"),
    ],
)
def test_what_window_mode_does_not_do_is_refused_at_once(
    start: Start, fields: dict[str, Any], options: dict[str, Any], error: type[Exception], told: str
) -> None:
    engine = start(network(shift=True), BidirectionalOptions(**options))

    with pytest.raises(error, match=told):
        engine.submit(asked(**{"policy": "entropy", **fields}))


@pytest.mark.parametrize("seed", range(4))
def test_an_elastic_canvas_keeps_to_the_least_and_the_most_tokens(start: Start, seed: int) -> None:
    engine = start(network(shift=True), BidirectionalOptions(expand_token_id=EXPAND, delete_token_id=END))
    bounds = {"canvas_length": 8, "min_new_tokens": 7, "max_new_tokens": 9, "max_steps": 200}

    result, states = ask(engine, policy="entropy", sampling=SamplingParams(60.0, seed=seed), **bounds)

    assert {len(ids) for ids in (*states, result.ids)} <= {7, 8, 9}
    assert not {EXPAND, END, MASK} & set(result.ids)
