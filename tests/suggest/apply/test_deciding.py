from __future__ import annotations

from typing import Any

import pytest

from calomel.suggest.apply.merge import decide, merge
from calomel.suggest.completer import Candidate, CompleteAnswer, CompleteRequest, ModelInfo

INFO = ModelInfo("scripted", "w", ("fill", "edit"), 8192, 2048, None, "0")
TWICE = "def one():\n    prepare()\n    finish()\n\n\ndef two():\n    prepare()\n    finish()\n"
UPDATE = "# ... existing code ...\n    prepare()\n    check()\n    finish()\n# ... existing code ...\n"


class Judging:
    """Answers with given scores, in the order of the drafts."""

    def __init__(self, *scores: float | None, keep: float = -9.0) -> None:
        self.scores = scores
        self.keep = keep
        self.requests: list[CompleteRequest] = []

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        self.requests.append(request)
        pairs = zip(request.drafts, self.scores, strict=True)
        found = [
            Candidate(draft.text, maker=draft.maker, log_prob=score, keep_log_prob=self.keep) for draft, score in pairs
        ]
        return CompleteAnswer(tuple(reversed(found)), context_tokens=40)


async def decided(model: Judging, info: ModelInfo = INFO, original: str = TWICE, update: str = UPDATE) -> Any:
    mask = lambda text: text.replace("hunter22", "********")  # noqa: E731
    return await decide(model, info, merge(original, update), original, update, mask=mask)


async def test_of_two_places_the_model_chooses_the_likelier_one() -> None:
    first = await decided(Judging(-2.0, -5.0))
    second = await decided(Judging(-5.0, -2.0))
    assert first.text == TWICE.replace("    finish()", "    check()\n    finish()", 1)
    assert second.text == TWICE[:40] + TWICE[40:].replace("    finish()", "    check()\n    finish()")
    assert (first.warning, second.warning) == (None, None)


async def test_it_sees_both_as_versions_of_one_region_and_writes_nothing_itself() -> None:
    model = Judging(-2.0, -5.0)
    await decided(model)
    [request] = model.requests
    parts = request.parts
    assert (request.kind, request.own) == ("edit", False)
    assert parts.region is not None
    assert parts.prefix + parts.region.text + parts.suffix == TWICE
    assert {parts.prefix + draft.text + parts.suffix for draft in request.drafts} == set(merge(TWICE, UPDATE).ambiguous)
    assert [excerpt.text for excerpt in parts.related] == [UPDATE]


@pytest.mark.parametrize("scores", [(-2.0, -2.5), (None, -2.0), (-2.0, None)])
async def test_where_it_is_not_clear_the_file_stays_and_a_warning_says_so(scores: tuple[float | None, ...]) -> None:
    found = await decided(Judging(*scores))
    assert found.text == TWICE
    assert "more than one place" in found.warning


async def test_a_model_without_edits_is_not_asked() -> None:
    model = Judging()
    fills = ModelInfo("scripted", "w", ("fill",), 8192, 2048, None, "0")
    assert (await decided(model, fills)).text == TWICE
    assert model.requests == []


async def test_nothing_is_asked_where_the_snippet_says_enough() -> None:
    model = Judging()
    found = await decided(model, update="def two():\n    return 2\n")
    assert found.text.endswith("def two():\n    return 2\n")
    assert model.requests == []


async def test_places_far_apart_are_not_judged() -> None:
    model = Judging()
    original = TWICE.replace("\n\n\n", "\n\n\n" + "x = 1\n" * 2000)
    assert (await decided(model, original=original)).text == original
    assert model.requests == []


async def test_the_model_sees_no_secret_and_the_answer_has_it() -> None:
    model = Judging(-2.0, -5.0)
    secret = TWICE.replace("    prepare()\n    finish()", '    prepare()\n    finish()\n    key = "hunter22"')
    found = await decided(model, original=secret)
    assert "hunter22" not in repr(model.requests)
    assert found.text.count("hunter22") == 2
    assert "check()" in found.text
