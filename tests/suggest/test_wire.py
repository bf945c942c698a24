from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.prompts.parts import EditRegion, Excerpt, Hunk, PromptParts
from calomel.suggest.completer import (
    MAX_DRAFT_CHARACTERS,
    MAX_DRAFTS,
    Candidate,
    CompleteAnswer,
    CompleteRequest,
    Draft,
)
from calomel.suggest.wire import (
    FieldError,
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


@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), min_size=4, max_size=4),
    counts=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    line=st.integers(0, 9),
)
def test_whatever_stands_around_comes_to_the_other_side_as_it_is(
    texts: list[str], counts: tuple[int, int], line: int
) -> None:
    excerpts = [Excerpt(texts[number % 4], line + number, texts[(number + 1) % 4]) for number in range(4)]
    parts = PromptParts(
        related=tuple(excerpts[: counts[0]]),
        far=tuple(excerpts[: counts[1]]),
        edits=(Hunk(texts[0], line, texts[1], texts[2]),),
        path=texts[3],
        prefix=texts[0],
        suffix=texts[1],
    )
    question = CompleteRequest("fill", parts, drafts=(Draft(texts[2], "made"),))

    assert decode_request(encode_request(question)) == question


def test_an_excerpt_that_is_no_valid_unicode_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(FieldError, match="not valid Unicode"):
            encode_request(CompleteRequest("fill", PromptParts(related=(Excerpt("a", 0, "\ud83d"),))))


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
