from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from calomel.engine import Request
from calomel.engine.errors import RequestCancelledError
from calomel.infer.completer import Candidate, CompleteRequest, Draft
from calomel.infer.filler import Filler, own_renderer
from calomel.prompts.parts import EditRegion, Hunk, PromptParts

REGION = "    total = add(a, b)\n    return total\n"


PARTS = PromptParts(
    path="sums.py",
    prefix="def add(a, b):\n    return a + b\n\n\ndef main(a, b):\n",
    suffix="\n\nprint(main(1, 2))\n",
    region=EditRegion(REGION, 4),
    edits=(Hunk("sums.py", 0, "def add(a):\n", "def add(a, b):\n"),),
)


DRAFTS = (
    Draft(REGION.replace("add", "plus"), "rename"),
    Draft(REGION.replace("total", "result"), "substitution"),
    Draft(REGION, "shape"),
)


QUESTION = CompleteRequest("edit", PARTS, max_tokens=60, drafts=DRAFTS)


def teacher_forced(filler: Filler, text: str) -> float:
    """The log-probability of a text and its end, asked for alone, with a context that is cached nowhere."""
    prompt = own_renderer(filler.tokenizer).render(PARTS, 2048)
    given = tuple(filler.tokenizer.encode(text))
    result = filler.engine.submit(Request(prompt.context, given=given, reuse=0)).result(60)
    assert result.end_log_prob is not None
    return sum(result.log_probs) + result.end_log_prob


def ratio(candidate: Candidate) -> float:
    assert candidate.log_ratio is not None
    return candidate.log_ratio


async def test_every_text_has_its_exact_likelihood_beside_that_of_the_current_one(filler: Filler) -> None:
    answer = await filler.complete(QUESTION)

    keep = teacher_forced(filler, REGION)
    for candidate in answer.candidates:
        assert candidate.log_prob == pytest.approx(teacher_forced(filler, candidate.text), abs=1e-3)
        assert candidate.keep_log_prob == pytest.approx(keep, abs=1e-3)
        assert ratio(candidate) == pytest.approx((candidate.log_prob or 0.0) - keep, abs=1e-3)


async def test_cancelling_the_question_cancels_everything_it_asked_the_engine(
    filler: Filler, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    submit_all = filler.engine.submit_all

    def submit(requests: Any) -> Any:
        handles = submit_all(requests)
        sent.extend(handles)
        if len(handles) > 1:  # at once: the engine would be done soon
            task.cancel()
        return handles

    monkeypatch.setattr(filler.engine, "submit_all", submit)
    task = asyncio.create_task(filler.complete(QUESTION))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(sent) > len(DRAFTS)
    outcomes = await asyncio.gather(*(handle.wait() for handle in sent), return_exceptions=True)
    assert any(isinstance(outcome, RequestCancelledError) for outcome in outcomes)
    assert all(handle.done for handle in sent)


async def test_what_the_deadline_leaves_unjudged_comes_last(filler: Filler, monkeypatch: pytest.MonkeyPatch) -> None:
    submit_all = filler.engine.submit_all

    def late(requests: list[Request]) -> object:
        return submit_all([request if request.given else replace(request, deadline=0.0) for request in requests])

    monkeypatch.setattr(filler.engine, "submit_all", late)
    answer = await filler.complete(replace(QUESTION, drafts=DRAFTS[:2]))
    assert {candidate.maker for candidate in answer.candidates} == {"rename", "substitution"}
