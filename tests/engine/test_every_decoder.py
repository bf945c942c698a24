"""What a request may rely on whatever its model and its way to denoise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from tests.engine.bidirectional.conftest import network
from tests.engine.conftest import CONFIG, END, MASK, PAIRS, Rule, Start, Ticking, Way, in_turn, random
from tests.engine.test_blocks import BLOCKS

from calomel.engine import (
    Bidirectional,
    BidirectionalOptions,
    BlockCausal,
    DeadlineExceededError,
    Engine,
    ModelConfig,
    Request,
    SamplingParams,
    Transformer,
)
from calomel.engine.decoder import Decoder
from calomel.engine.errors import ConstraintFailedError, RequestCancelledError, RequestFailedError

CONTEXT = tuple(torch.randint(0, 40, (25,), generator=torch.Generator().manual_seed(1)).tolist())


def causal(config: ModelConfig) -> Callable[..., Decoder[Any, Any, Any]]:
    model = random(Transformer(config))
    return lambda **common: BlockCausal(model, cache_tokens=2048, **common)


def window(options: BidirectionalOptions, *, shift: bool) -> Callable[..., Decoder[Any, Any, Any]]:
    model = network(shift=shift)
    return lambda **common: Bidirectional(model, options, **common)


SHIFTED = replace(CONFIG, diffusion=replace(CONFIG.diffusion, logit_shift=True))
DECODERS: dict[str, tuple[Callable[..., Decoder[Any, Any, Any]], str]] = {
    "a canvas": (causal(CONFIG), "threshold:0.5"),
    "a shifted canvas": (causal(SHIFTED), "prefix:0.3"),
    "left to right": (causal(CONFIG), "left_to_right"),
    "blocks": (causal(BLOCKS), "threshold:0.2"),
    "a window": (window(BidirectionalOptions(), shift=True), "entropy"),
    "a window in cached blocks": (window(BidirectionalOptions(block=4, dual_cache=True), shift=False), "threshold:0.3"),
}


@dataclass
class Service:
    """Engines of one decoder, and requests as it takes them."""

    make: Callable[..., Decoder[Any, Any, Any]]
    policy: str
    run: Start

    def start(self, **options: Any) -> Engine:
        return self.run(self.make(**options))

    def request(self, **fields: Any) -> Request:
        how = {"max_new_tokens": 20, "canvas_length": 8, "policy": self.policy, "max_steps": 8}
        return Request(**{"context": CONTEXT, **how, **fields})


@pytest.fixture(params=DECODERS.values(), ids=list(DECODERS))
def service(request: pytest.FixtureRequest, run: Start) -> Service:
    make, policy = request.param
    return Service(make, policy, run)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_neither_company_nor_chunks_change_an_answer(service: Service, temperature: float) -> None:
    rules = (PAIRS, None, None, PAIRS)
    requests = [
        service.request(
            context=CONTEXT[: 14 + 3 * at],
            max_new_tokens=8 + at,
            sampling=SamplingParams(temperature, seed=at),
            constraint=rule,
        )
        for at, rule in enumerate(rules)
    ]
    alone = [service.start().submit(request).result(60).ids for request in requests]

    together = service.start(prefill_chunk=8).submit_all(requests)

    assert [handle.result(60).ids for handle in together] == alone


def test_an_answer_keeps_to_its_constraint_and_what_is_shown_of_it_is_never_taken_back(service: Service) -> None:
    handle = service.start().submit(service.request(constraint=PAIRS, record_canvases=True))
    result = handle.result(60)

    assert PAIRS.accepts(result.ids, whole=result.finish_reason == "stop")
    for state in handle.states():
        for token, revealed, final in zip(state.ids, state.revealed, result.ids, strict=False):
            assert not revealed or token == final


class Broken(Rule):
    def begin(self) -> Way:
        return BrokenWay(self)


class BrokenWay(Way):
    def advance(self, tokens: Sequence[int]) -> int:
        raise ArithmeticError


@pytest.mark.parametrize(
    ("rule", "error", "cause"),
    [
        (in_turn([5], least=9), ConstraintFailedError, None),
        (Broken(PAIRS.follows, PAIRS.ends), RequestFailedError, ArithmeticError),
    ],
    ids=["no way on", "an error of its own"],
)
def test_a_constraint_that_fails_ends_its_request_and_no_other(
    service: Service, rule: Rule, error: type[Exception], cause: type[Exception] | None
) -> None:
    other = service.request()
    alone = service.start().submit(other).result(60)

    bad, good = service.start().submit_all((replace(other, constraint=rule), other))

    with pytest.raises(error) as caught:
        bad.result(60)
    assert cause is None or isinstance(caught.value.__cause__, cause)
    assert good.result(60).ids == alone.ids


def test_until_is_asked_whenever_more_of_the_answer_is_settled(service: Service) -> None:
    seen: list[int] = []

    def enough(ids: Sequence[int]) -> bool:
        seen.append(len(ids))
        return len(ids) > 8

    request = service.request(max_new_tokens=40, min_new_tokens=40, until=enough)
    result = service.start().submit(request).result(60)

    assert seen == sorted(set(seen))
    assert (len(result.ids), result.finish_reason) == (seen[-1], "stop")


def test_what_is_known_without_a_gap_is_the_answer_at_the_deadline(service: Service) -> None:
    clock, request = Ticking(), service.request(max_new_tokens=60, min_new_tokens=60)
    whole = service.start().submit(request).result(60)
    engine = service.start(clock=clock, observe=clock.tick)

    result = engine.submit(replace(request, deadline=9.0)).result(60)

    assert result.finish_reason == "deadline"
    assert 0 < len(result.ids) < 60
    assert result.ids == whole.ids[: len(result.ids)]
    with pytest.raises(DeadlineExceededError, match="before the first step"):
        service.start(clock=lambda: 9.0).submit(replace(request, deadline=9.0)).result(60)


def test_a_cancelled_request_leaves_and_the_others_go_on(service: Service) -> None:
    first, second = service.start().submit_all((service.request(max_new_tokens=200), service.request()))

    first.cancel()

    with pytest.raises(RequestCancelledError):
        first.result(60)
    assert second.result(60).ids


def test_a_seeded_sample_is_repeated_and_another_seed_gives_another(service: Service) -> None:
    engine = service.start()
    ways = []
    for seed in (0, 0, 1, 2, 3):
        sampling = SamplingParams(1.0, 0.95, seed=seed)
        ways.append(tuple(engine.submit(service.request(sampling=sampling, record_canvases=True)).states()))

    assert ways[0] == ways[1]
    assert len(set(ways)) > 1


@pytest.mark.parametrize("steps", [2, 3])
def test_a_canvas_has_no_more_steps_than_asked_for(service: Service, steps: int) -> None:
    result = service.start().submit(service.request(max_new_tokens=6, max_steps=steps)).result(60)

    assert result.steps <= steps
    assert MASK not in result.ids


def test_recorded_states_end_with_the_answer(service: Service) -> None:
    engine = service.start()
    handle = engine.submit(service.request(max_new_tokens=12, record_canvases=True))
    states = list(handle.states())

    ids = states[-1].ids
    assert ids[: ids.index(END) if END in ids else None][:12] == handle.result(60).ids
    assert MASK not in states[-1].ids
    for state in states:
        assert MASK not in [token for token, revealed in zip(state.ids, state.revealed, strict=True) if revealed]
    assert list(engine.submit(service.request()).states()) == []
