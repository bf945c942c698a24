from __future__ import annotations

import json
from dataclasses import replace

from calomel.bench.failures.samples_read import judge_samples
from calomel.prompts.parts import Excerpt, PromptParts
from calomel.selectivity.sample import Sample
from calomel.suggest.completer import CompleteRequest
from calomel.suggest.wire import encode_request

PARTS = PromptParts(
    related=(Excerpt("shop/order.py", 0, "total_price = 3\n"),), path="a.py", prefix="x = tot", suffix="\n"
)
SAMPLE = Sample(
    "log:3:fill",
    "fill",
    "rejected",
    language="python",
    text="o",
    wanted="al_price",
    request=json.loads(encode_request(CompleteRequest("fill", PARTS))),
)


def test_a_rejected_text_is_judged_by_what_the_person_wrote() -> None:
    verdicts, left_out = judge_samples([SAMPLE])
    assert left_out == 0
    assert [(each.source, each.row, each.kind, each.saved) for each in verdicts] == [
        ("replay", "fill", "copy_missed", 7)
    ]


def test_a_question_is_right_when_any_candidate_was_taken() -> None:
    verdicts, _ = judge_samples([SAMPLE, replace(SAMPLE, outcome="accepted", text="al_price")])
    assert [each.right for each in verdicts] == [True]


def test_questions_without_texts_are_counted_as_left_out() -> None:
    verdicts, left_out = judge_samples([replace(SAMPLE, wanted=None), replace(SAMPLE, question="q", request=None)])
    assert (verdicts, left_out) == ([], 2)
