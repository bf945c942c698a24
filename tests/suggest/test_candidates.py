from __future__ import annotations

from tests.suggest.asked import asked, flat, source
from tests.suggest.editor import ScriptedModel

from calomel.suggest.candidates import CandidateSource
from calomel.suggest.completer import CANVAS, Candidate, CompleteRequest
from calomel.suggest.drafts.evidence import EditDraft
from calomel.suggest.judging import Answered, Decision, shows
from calomel.suggest.question import Question, Trigger
from calomel.suggest.silence import SilenceReason

TEXT = "first = old\nsecond = old|\nthird = 3\n"
DRAFT = EditDraft(21, 24, "new", "rename", support=2)


def region(request: CompleteRequest) -> str:
    assert request.parts.region is not None
    return request.parts.region.text


def drafting(request: CompleteRequest) -> tuple[Candidate, ...]:
    """A model that likes whatever it is asked about."""
    own = (Candidate(region(request).replace("3", "4"), (-0.1,)),) if request.own else ()
    return (*(Candidate(each.text, (-0.1,), maker=each.maker) for each in request.drafts), *own)


def hopeless(*makers: str) -> tuple[CandidateSource, ScriptedModel]:
    """One whose model is sure of everything, though of these makers nothing was ever accepted."""
    model = ScriptedModel(reply=drafting)
    made = source(model)
    made.filter.calibrator = flat(3.0, frozenset(makers))
    return made, model


async def rewritten(made: CandidateSource, question: Question, *drafts: EditDraft) -> Answered:
    return await made.rewrite(question, question.situation, (0, len(question.text)), drafts)


async def test_a_model_whose_own_edits_are_never_accepted_only_judges_drafts() -> None:
    made, model = hopeless(CANVAS)
    found = await rewritten(made, asked(TEXT), DRAFT)
    assert isinstance(found, Decision)
    assert shows(found)
    assert (found.maker, found.edits[0].text, found.signals.support) == ("rename", "new", 2)
    (request,) = model.requests
    assert not request.own
    assert [draft.maker for draft in request.drafts] == ["rename"]
    assert found.proposed.request == request


async def test_without_drafts_such_a_model_is_not_asked_at_all() -> None:
    made, model = hopeless(CANVAS)
    assert await rewritten(made, asked(TEXT)) is SilenceReason.NO_CHANGE
    assert model.requests == []


async def test_whoever_asks_by_hand_has_it_asked() -> None:
    made, model = hopeless(CANVAS)
    found = await rewritten(made, asked(TEXT, Trigger.EXPLICIT))
    assert isinstance(found, Decision)
    assert shows(found)
    assert found.maker == "canvas"
    assert [request.own for request in model.requests] == [True]


async def test_hopeless_drafts_say_nothing_about_the_model() -> None:
    made, model = hopeless("rename", "substitution")
    assert isinstance(await rewritten(made, asked(TEXT), DRAFT), Decision)
    assert [request.own for request in model.requests] == [True]


async def test_a_fill_is_asked_for_whatever_is_hopeless() -> None:
    made, model = hopeless(CANVAS)
    model.reply = lambda _: " + 1"
    assert isinstance(await made.fill(asked(TEXT)), Decision)
    assert [request.kind for request in model.requests] == ["fill"]


async def test_the_likeliest_candidate_that_passes_is_found_and_knows_how_the_others_agree() -> None:
    model = ScriptedModel()
    made = source(model)
    model.reply = lambda _: (
        Candidate("f(a]", (-0.01,)),
        Candidate(" + 1", (-0.3,)),
        Candidate(" + 1", (-0.2,), maker="seeded"),
        Candidate("", (-0.1,)),
    )
    found = await made.fill(asked(TEXT))
    assert isinstance(found, Decision)
    assert shows(found)
    assert (found.maker, found.edits[0].text) == ("seeded", " + 1")
    assert (found.signals.agreement.agreeing, found.signals.agreement.rivals) == (1, 1)


async def test_what_is_held_back_says_more_than_that_there_is_nothing() -> None:
    model = ScriptedModel()
    made = source(model)
    model.reply = lambda _: (Candidate(""), Candidate(" + 1", (-4.0,)), Candidate(" + 2", (-3.0,)))
    held = await made.fill(asked(TEXT))
    assert isinstance(held, Decision)
    assert (held.reason, held.edits[0].text) == (SilenceReason.LOW_CONFIDENCE, " + 2")
    model.reply = lambda _: (Candidate(""),)
    assert await made.fill(asked(TEXT)) is SilenceReason.EMPTY
