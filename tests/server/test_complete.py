from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
import uvicorn
from starlette.testclient import TestClient

from calomel.infer.completer import Candidate, CompleteAnswer, CompleteRequest, Draft, Kind
from calomel.infer.wire import COMPLETE_PATH, INFO_PATH, decode, decode_info, encode
from calomel.prompts.parts import EditRegion, PromptParts
from calomel.server.lifetime import DrainingServer

JSON = {"content-type": "application/json"}


QUESTION = CompleteRequest("fill", PromptParts(path="a.py", prefix="def f(n):\n    "), max_tokens=32)


REWRITE = CompleteRequest(
    "edit", PromptParts(prefix="a", region=EditRegion("b", 0)), drafts=(Draft("c", "rename"), Draft("d", "shape"))
)


SECRET = "s3cret-text"


def learned(client: TestClient, *kinds: Kind) -> None:
    """The model of the door says that it was trained for `kinds`."""
    loader = client.app.state.door.loader  # type: ignore[attr-defined]
    info = replace(loader.info(), kinds=kinds)
    loader._describe = lambda: info


def ask(client: TestClient, request: CompleteRequest = QUESTION) -> Any:
    return client.post(COMPLETE_PATH, content=encode(request), headers=JSON)


def test_the_parts_reach_the_model_and_its_answer_carries_the_engines_signals(client: TestClient, filler: Any) -> None:
    found = decode(ask(client).content, CompleteAnswer)
    (candidate,) = found.candidates
    assert candidate.text == "return n"
    assert (candidate.log_probs, candidate.entropies) == ((-0.25, -0.5), (0.5, 0.75))
    assert (candidate.end_log_prob, candidate.steps, candidate.length_scores) == (-0.125, 3, ((16, -0.5),))
    assert (found.context_tokens, found.cached_tokens, found.model) == (24, 16, "calomel-nano")
    assert found.timings.total == pytest.approx(0.02)
    assert found.timings.queued == pytest.approx(0.005)
    (request,) = filler.requests
    assert (request.parts, request.max_tokens) == (QUESTION.parts, 32)


def test_a_rewrite_is_left_to_models_that_learned_it(client: TestClient, filler: Any) -> None:
    learned(client, "fill")
    found = decode(ask(client, REWRITE).content, CompleteAnswer)
    assert (found.candidates, found.reason) == ((), "not_trained_for_edits")
    assert filler.requests == []


def test_a_rewrite_carries_every_makers_text_and_how_it_was_judged(client: TestClient, filler: Any) -> None:
    learned(client, "fill", "edit")
    said = (
        Candidate("c", log_probs=(-0.5,), end_log_prob=-0.5, maker="rename", log_prob=-1.0, keep_log_prob=-3.0),
        Candidate("d", maker="canvas", log_prob=-4.0, keep_log_prob=-3.0),
    )

    async def complete(request: CompleteRequest) -> CompleteAnswer:
        filler.requests.append(request)
        return CompleteAnswer(said, context_tokens=9, cached_tokens=8)

    filler.complete = complete
    found = decode(ask(client, REWRITE).content, CompleteAnswer)
    assert found.candidates == said
    assert [candidate.log_ratio for candidate in found.candidates] == [2.0, -1.0]
    assert (found.context_tokens, found.cached_tokens, found.model) == (9, 8, "calomel-nano")
    assert filler.requests == [REWRITE]


def test_info_says_what_the_model_can_do(client: TestClient) -> None:
    info = decode_info(client.get(INFO_PATH).content)
    assert (info.id, info.kinds, info.max_context) == ("calomel-nano", ("fill", "edit"), 32_768)
    assert (info.region.above, info.region.below, info.region.context) == (1, 2, 512)
    assert info.tokenizer is not None
    assert info.tokenizer.endswith("tokenizer.json")


def test_the_log_has_counts_and_no_text(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="calomel")
    ask(client, CompleteRequest("fill", PromptParts(path=f"{SECRET}.py", prefix=SECRET)))
    assert "24 prompt tokens (16 cached)" in caplog.text
    assert SECRET not in caplog.text


async def test_a_server_ends_only_when_no_request_has_run_for_some_time() -> None:
    now, lasting = 0.0, asyncio.create_task(asyncio.sleep(60))
    server = DrainingServer(uvicorn.Config("none"), Mock(), Mock(failure=None), 60, lambda: now)

    async def over(then: float) -> bool:
        nonlocal now
        now = then
        return await server.on_tick(0)

    assert not await over(59)
    server.server_state.tasks.add(lasting)
    assert not await over(500)
    server.server_state.tasks.clear()
    server.server_state.total_requests += 1
    assert not await over(510)
    assert not await over(569)
    assert await over(570)
    lasting.cancel()
