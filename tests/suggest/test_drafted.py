from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from calomel.engine import Handle, Request
from calomel.prompts.parts import PromptParts
from calomel.prompts.token_healing import TokenHealing
from calomel.prompts.tokenizer import Tokenizer
from calomel.suggest.completer import Candidate, CompleteRequest, Draft, FillRequest, ModelInfo
from calomel.suggest.filler import Filler, own_renderer
from calomel.suggest.in_process import EngineCompleter
from calomel.suggest.scoring import DRAFT_TOKENS, Drafted, Judged, belief, cut_draft, expected_of_draft

PARTS = PromptParts(path="a.py", prefix="def add(a, b):\n    return ", suffix="\n\n\nprint(add(1, 2))\n")
REQUEST = FillRequest("fill", PARTS, max_tokens=24)
WITH_DRAFT = replace(REQUEST, drafts=(Draft("a + b", "continuation"),))
MODEL = ModelInfo("tiny", "0", ("fill",), 4096, 2048, None, "1")


def said(ids: Sequence[int], log_probs: list[float], end: float = -0.1) -> Judged:
    return Judged(tuple(ids), tuple(log_probs), end)


def test_a_draft_is_cut_where_the_model_stops_agreeing(tokenizer: Tokenizer) -> None:
    draft = Draft("a + b + c", "continuation")
    ids = tokenizer.encode(draft.text)
    agreed = len(tokenizer.encode("a + b"))
    cut = cut_draft(draft, said(ids, [-0.05] * agreed + [-20.0] * (len(ids) - agreed)), tokenizer)
    assert (cut.text, cut.maker, cut.end_log_prob) == ("a + b", "continuation", None)
    assert expected_of_draft(cut) == pytest.approx(5 * belief(-0.05 * agreed))
    assert cut.log_prob == pytest.approx(-0.05 * agreed)


def test_a_draft_is_never_cut_inside_a_word(tokenizer: Tokenizer) -> None:
    draft = Draft("a + zyxwvutsrq", "continuation")
    ids = tokenizer.encode(draft.text)
    for agreed in range(1, len(ids)):
        cut = cut_draft(draft, said(ids, [-0.05] * agreed + [-40.0] * (len(ids) - agreed)), tokenizer)
        assert cut.text in {"a", "a +", draft.text}


def test_a_draft_in_a_word_begins_behind_what_is_there(tokenizer: Tokenizer) -> None:
    draft, healing = Draft("urn a", "continuation"), TokenHealing(" ret")
    ids, owed = healing.given("urn a", tokenizer)
    judged = cut_draft(draft, said(ids, [-3.0] * owed + [-0.01] * (len(ids) - owed)), tokenizer, healing, owed)
    assert judged.text == "urn a"
    assert judged.log_probs == (-0.01,) * (len(ids) - owed)
    short = cut_draft(draft, said(ids, [-0.01] * (len(ids) - 1) + [-50.0]), tokenizer, healing, owed)
    assert short.text == "urn"


def test_belief_grows_with_likelihood_and_starts_from_what_mostly_happens() -> None:
    assert belief(-1e6) == pytest.approx(0.0)
    assert belief(-40.0) < belief(-20.0) < belief(-5.0) < belief(0.0)
    assert belief(-40.0) < 0.3
    assert 0.7 < belief(-5.0) < 0.9


def test_a_draft_that_the_model_believes_in_stays_whole_and_ends(tokenizer: Tokenizer) -> None:
    draft = Draft("a + b", "continuation")
    ids = tokenizer.encode(draft.text)
    whole = cut_draft(draft, said(ids, [-0.01] * len(ids), end=-0.5), tokenizer)
    assert (whole.text, whole.end_log_prob) == ("a + b", -0.5)
    assert whole.log_prob == pytest.approx(-0.01 * len(ids) - 0.5)


async def test_a_draft_has_the_exact_likelihood_of_its_text(filler: Filler) -> None:
    draft = Draft("a + b", "continuation")
    answer = await filler.complete(replace(REQUEST, drafts=(draft,)))
    (own,) = [each for each in answer.candidates if each.maker == "canvas"]
    (judged,) = [each for each in answer.candidates if each.maker == "continuation"]
    assert own.text == filler.fill(REQUEST).text
    # The space before the hole belongs to the draft's first token: it is read from there on.
    before = replace(PARTS, prefix=PARTS.prefix.removesuffix(" "))
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


async def test_a_hole_with_drafts_is_answered_with_all_that_is_left_of_them(filler: Filler) -> None:
    completer = EngineCompleter(filler, MODEL)
    plain = await completer.complete(CompleteRequest("fill", PARTS, max_tokens=24))
    answer = await completer.complete(
        CompleteRequest("fill", PARTS, max_tokens=24, drafts=(Draft("a + b", "continuation"),))
    )
    own = [candidate for candidate in answer.candidates if candidate.maker == "canvas"]
    assert [candidate.text for candidate in own] == [plain.candidates[0].text]
    assert {candidate.maker for candidate in answer.candidates} == {"canvas", "continuation"}


async def test_cancelling_a_hole_with_drafts_cancels_its_requests(
    filler: Filler, monkeypatch: pytest.MonkeyPatch
) -> None:
    handles: list[Handle] = []
    asked = threading.Event()
    submit_all = filler.engine.submit_all

    def submit(requests: Sequence[Request]) -> tuple[Handle, ...]:
        sent = submit_all(requests)
        handles.extend(sent)
        asked.set()
        return sent

    monkeypatch.setattr(filler.engine, "submit_all", submit)
    task = asyncio.create_task(filler.complete(replace(WITH_DRAFT, max_tokens=2000)))
    await asyncio.to_thread(asked.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert handles
    assert all(handle.cancelled or handle.done for handle in handles)


@pytest.mark.parametrize(("close", "judged"), [(math.inf, True), (1.0, False)])
async def test_the_models_own_text_is_judged_only_where_it_is_a_close_run(
    close: float, *, judged: bool, filler: Filler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calomel.suggest.scoring.CLOSE", close)
    answer = await filler.complete(WITH_DRAFT)
    (own,) = [each for each in answer.candidates if each.maker == "canvas"]
    assert (own.log_prob is not None) is judged
    assert (own.keep_log_prob is not None) is judged


async def test_drafts_compete_with_the_models_own_text_for_a_hole(
    filler: Filler, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = filler.fill(REQUEST).result
    likely = tuple(
        Candidate(text, log_probs=(-0.25,), end_log_prob=-0.25, maker="continuation", log_prob=-0.5)
        for text in ("return n and a long way on" * 4, "x")
    )

    async def drafted(*_: object) -> Drafted:
        return Drafted(own, likely, -1.5, -6.0)

    monkeypatch.setattr("calomel.suggest.filler.judge_drafts", drafted)
    found = (await filler.complete(WITH_DRAFT)).candidates
    assert [candidate.maker for candidate in found] == ["continuation", "canvas", "continuation"]
    assert [candidate.log_prob for candidate in found] == [-0.5, -1.5, -0.5]
    assert {candidate.keep_log_prob for candidate in found} == {-6.0}
