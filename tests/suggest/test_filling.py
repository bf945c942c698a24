"""A filler on random weights: what it says means nothing, how it says it must be right."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calomel.engine import CheckpointError, Request, SamplingParams
from calomel.engine.errors import RequestCancelledError
from calomel.infer.completer import Candidate, CompleteRequest, Draft, Fill, FillRequest
from calomel.infer.filler import Filler, own_renderer
from calomel.infer.recall import DRAFT, OWN, PRIOR, CopyScorer, recall
from calomel.infer.scoring import DRAFT_TOKENS
from calomel.prompts.parts import EditRegion, Hunk, PromptParts
from calomel.prompts.token_healing import TokenHealing

REQUEST = FillRequest(
    "fill",
    PromptParts(path="a.py", prefix="def add(a, b):\n    return ", suffix="\n\n\nprint(add(1, 2))\n"),
    max_tokens=24,
)


def test_an_answer_ends_before_its_stop_string_and_no_canvas_is_made_behind_it(filler: Filler) -> None:
    asked = replace(REQUEST, max_tokens=120, canvas_length=8)
    whole = filler.fill(asked)
    stop = whole.text[2:4]
    stopped = filler.fill(replace(asked, stop=(stop,)))
    assert stopped.text == whole.text[: whole.text.index(stop)]
    assert stopped.finish_reason == "stop"
    assert stopped.forwards < whole.forwards / 2


async def test_a_draft_has_the_exact_likelihood_of_its_text(filler: Filler) -> None:
    draft = Draft("a + b", "continuation")
    answer = await filler.complete(replace(REQUEST, drafts=(draft,)))
    (own,) = [each for each in answer.candidates if each.maker == "canvas"]
    (judged,) = [each for each in answer.candidates if each.maker == "continuation"]
    assert own.text == filler.fill(REQUEST).text
    # The space before the hole belongs to the draft's first token: it is read from there on.
    before = replace(REQUEST.parts, prefix=REQUEST.parts.prefix.removesuffix(" "))
    context = own_renderer(filler.tokenizer).render(before, REQUEST.max_context).context
    ids, owed = TokenHealing(" ").given("a + b", filler.tokenizer)
    alone = filler.engine.submit(Request(context, given=ids)).result(60)
    assert judged.log_probs == pytest.approx(alone.log_probs[owed : owed + len(judged.log_probs)], abs=1e-4)
    assert draft.text.startswith(judged.text)


async def test_a_draft_ends_before_a_stop_string_and_is_not_read_for_ever(filler: Filler) -> None:
    long = Draft("name = " * 100, "continuation")
    stopped = Draft("\nsecond line", "continuation")
    answer = await filler.complete(replace(REQUEST, stop=("\n",), drafts=(long, stopped)))
    (judged,) = [each for each in answer.candidates if each.maker == "continuation"]
    assert len(judged.log_probs) <= DRAFT_TOKENS


ABOVE = "total = reader.count()\nprint(total)\n"


HOLE = FillRequest(
    "fill", PromptParts(path="one.py", prefix=ABOVE + "total = rea", suffix="\nprint(total)\n"), max_tokens=24
)


RIGHT = "der.count()"


def worth(draft: float, own: float, sure: float = 1.1) -> CopyScorer:
    """One in which nothing counts but the two biases."""
    return CopyScorer(
        {name: draft if name == "bias" else 0.0 for name in PRIOR},
        {name: draft if name == "bias" else 0.0 for name in DRAFT},
        {name: own if name == "bias" else 0.0 for name in OWN},
        sure,
    )


def recalling(filler: Filler, found: CopyScorer) -> Filler:
    return Filler(filler.engine, filler.tokenizer, copies=found)


def test_the_likelier_one_is_the_answer(filler: Filler) -> None:
    own = filler.fill(HOLE)

    recalled = recalling(filler, worth(draft=1.0, own=-1.0)).fill(HOLE)
    kept = recalling(filler, worth(draft=-1.0, own=1.0)).fill(HOLE)

    assert (recalled.text, recalled.finish_reason) == (RIGHT, "stop")
    assert recalled.confidence == pytest.approx(0.731, abs=1e-3)
    assert recalled.steps == own.steps
    assert kept.text == own.text
    assert kept.confidence == pytest.approx(own.confidence)


def test_where_much_agrees_the_model_reads_the_text_and_denoises_nothing(filler: Filler) -> None:
    sure = recalling(filler, worth(draft=1.0, own=5.0, sure=0.7)).fill(HOLE)

    assert (sure.text, sure.steps, sure.forwards) == (RIGHT, 0, 1)
    assert sure.completion_tokens == len(filler.tokenizer.encode(RIGHT)) == len(sure.result.log_probs)


@pytest.mark.parametrize(
    "request_",
    [
        replace(HOLE, recall=False),
        replace(HOLE, policy="left_to_right"),
        replace(HOLE, sampling=SamplingParams(temperature=0.7, seed=1)),
        replace(HOLE, sampling=SamplingParams(presence_penalty=0.5)),
        replace(HOLE, max_tokens=2),
        replace(HOLE, parts=replace(HOLE.parts, prefix="total = rea")),
    ],
    ids=["asked not to", "a policy", "drawn", "penalties", "too long", "nothing to recall"],
)
def test_otherwise_the_answer_is_the_models_own(filler: Filler, request_: FillRequest) -> None:
    assert recalling(filler, worth(draft=9.0, own=-9.0)).fill(request_).text == filler.fill(request_).text


async def test_every_way_to_ask_gives_the_same_answer(filler: Filler) -> None:
    for found in (worth(9.0, -9.0), worth(-9.0, 9.0), worth(9.0, -9.0, sure=0.5)):
        ours = recalling(filler, found)
        wanted = ours.fill(HOLE).text
        *pieces, last = [item async for item in ours.stream(HOLE)]
        canvases = [item async for item in ours.canvases(HOLE)]
        assert (await ours.afill(HOLE)).text == wanted
        assert "".join(map(str, pieces)) == wanted
        assert isinstance(last, Fill)
        assert isinstance(canvases[-1], Fill)
        assert canvases[-1].text == wanted


def test_what_is_written_is_read_and_damage_is_named(tmp_path: Path) -> None:
    assert CopyScorer.read(tmp_path) is None
    wanted = worth(0.5, -0.5, 0.3)

    wanted.write(tmp_path)

    assert CopyScorer.read(tmp_path) == wanted
    place = tmp_path / "recall.json"
    raw = json.loads(place.read_text(encoding="utf-8"))
    for damage, said in (
        (raw | {"format": 7}, "format"),
        (raw | {"own": {"bias": 1.0}}, "own must have exactly"),
        (raw | {"sure": "much"}, "sure: Expected `float`"),
    ):
        place.write_text(json.dumps(damage), encoding="utf-8")
        with pytest.raises(CheckpointError, match=said):
            CopyScorer.read(tmp_path)
    place.write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"recall\.json"):
        CopyScorer.read(tmp_path)


def test_an_endless_repetition_is_bounded() -> None:
    assert recall("ab" * 50_000, "\n") is None
    found = recall("ab" * 50_000 + ";\n" + "ab" * 50, "\n")

    assert found is not None
    assert (found.text, found.before) == (";", 100)


EDIT_REGION = "    total = add(a, b)\n    return total\n"


PARTS = PromptParts(
    path="sums.py",
    prefix="def add(a, b):\n    return a + b\n\n\ndef main(a, b):\n",
    suffix="\n\nprint(main(1, 2))\n",
    region=EditRegion(EDIT_REGION, 4),
    edits=(Hunk("sums.py", 0, "def add(a):\n", "def add(a, b):\n"),),
)


DRAFTS = (
    Draft(EDIT_REGION.replace("add", "plus"), "rename"),
    Draft(EDIT_REGION.replace("total", "result"), "substitution"),
    Draft(EDIT_REGION, "shape"),
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

    keep = teacher_forced(filler, EDIT_REGION)
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
