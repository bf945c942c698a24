from __future__ import annotations

import json
from dataclasses import replace

import pytest

from calomel.prompts.parts import EditRegion, PromptParts
from calomel.suggest.completer import Candidate, CompleteAnswer, CompleteRequest, Draft
from calomel.suggest.fields import FieldError
from calomel.suggest.wire import (
    MAX_DRAFT_CHARACTERS,
    MAX_DRAFTS,
    decode_answer,
    decode_request,
    encode_answer,
    encode_request,
)

EDIT = CompleteRequest(
    "edit",
    PromptParts(prefix="a\n", suffix="c\n", region=EditRegion("b\n", None)),
    drafts=(Draft("b2\n", "rename"), Draft("", "substitution")),
)


def test_drafts_reach_the_other_side() -> None:
    assert decode_request(encode_request(EDIT)) == EDIT
    fill = CompleteRequest("fill", PromptParts(prefix="a"), drafts=(Draft("b", "continuation"),))
    assert decode_request(encode_request(fill)) == fill


def test_a_question_of_an_older_editors_side_has_no_drafts() -> None:
    older = json.loads(encode_request(EDIT))
    del older["drafts"]
    assert decode_request(json.dumps(older)) == replace(EDIT, drafts=())


def test_how_a_text_was_judged_comes_back() -> None:
    judged = Candidate("x", maker="seeded", log_prob=-2.5, keep_log_prob=-20000.0)
    unjudged = Candidate("y")
    assert decode_answer(encode_answer(CompleteAnswer((judged, unjudged)))).candidates == (judged, unjudged)


def test_an_answer_of_an_older_server_has_a_canvas_that_nobody_judged() -> None:
    older = json.loads(encode_answer(CompleteAnswer((Candidate("x"),))))
    for name in ("maker", "log_prob", "keep_log_prob"):
        del older["candidates"][0][name]
    assert decode_answer(json.dumps(older)).candidates == (Candidate("x"),)


@pytest.mark.parametrize(
    ("drafts", "field"),
    [
        ([{"text": "x" * (MAX_DRAFT_CHARACTERS + 1), "maker": "rename"}], "drafts.0.text"),
        ([{"text": "x", "maker": ""}], "drafts.0.maker"),
        ([{"text": "x", "maker": "m" * 300}], "drafts.0.maker"),
        ([{"text": "x"}], "drafts.0.maker"),
        (["x"], "drafts.0"),
        ([{"text": "x", "maker": "rename"}] * (MAX_DRAFTS + 1), "drafts"),
        ("x", "drafts"),
    ],
)
def test_drafts_out_of_bounds_are_refused_by_name(drafts: object, field: str) -> None:
    body = json.loads(encode_request(EDIT)) | {"drafts": drafts}
    with pytest.raises(FieldError) as refused:
        decode_request(json.dumps(body))
    assert refused.value.field == field
