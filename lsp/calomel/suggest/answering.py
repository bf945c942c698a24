"""How an answer is found: first the cache, then, after a pause in the typing, the model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from calomel.infer.client import PATIENCE, ended
from calomel.infer.completer import CompleterError, ModelInfo
from calomel.infer.fitting import splits_word
from calomel.prompts.next_edit import region_called
from calomel.prompts.parts import Hunk, RegionBounds, region_around
from calomel.selectivity.filters import FILTERS
from calomel.suggest.cache import Entry
from calomel.suggest.candidates import context_tokens
from calomel.suggest.drafts.propose import continuation, drafts
from calomel.suggest.edit import Answer, Suggestion
from calomel.suggest.elsewhere import drafts_elsewhere, others_of
from calomel.suggest.judging import Answered, Decision
from calomel.suggest.offering import hold_back, offered, others
from calomel.suggest.pace import Run
from calomel.suggest.question import Question, Trigger
from calomel.suggest.recent import standing
from calomel.suggest.search import agreed, continuations, next_edits
from calomel.suggest.session import Asked, Session
from calomel.suggest.silence import Silence, SilenceReason
from calomel.workspace.documents import Document
from calomel.workspace.history import Origin, prompt_path
from calomel.workspace.names import names_of
from calomel.workspace.workspace import Situation

# A moving cursor asks for a next edit only within this many seconds of an edit (Copilot's rule).
_AFTER_EDIT: Final = 10.0
# Cached answers refused for these reasons are ignored: the model may have another one.
_ASK_AGAIN: Final = frozenset(
    {SilenceReason.DISAGREES_WITH_SELECTED, SilenceReason.REVERTS_EDIT, SilenceReason.RESUMES_UNDONE}
)
# The model answered, and nothing of its answer is offered.
_NOTHING_LEFT: Final = frozenset({
    SilenceReason.NO_CHANGE, SilenceReason.NOT_ASKED, SilenceReason.EMPTY, SilenceReason.LOW_CONFIDENCE,
    SilenceReason.REJECTED_BEFORE,
    SilenceReason.NOT_TRAINED_FOR_EDITS, *map(SilenceReason, FILTERS),
})  # fmt: skip
_REASONS: Final = {
    "unreachable": SilenceReason.NO_MODEL,
    "loading": SilenceReason.LOADING,
    "overloaded": SilenceReason.OVERLOADED,
    "timeout": SilenceReason.TIMEOUT,
}


async def answer(session: Session, asked: Asked) -> Answer:
    """Text for the cursor or the next edit, or why there is none."""
    uri, document, selected = asked.document.uri, asked.document, asked.selected
    refusal = forbidden(session, asked)
    if refusal is not None:
        return refusal
    if asked.version is not None and document.version is not None and asked.version != document.version:
        return Silence.of(SilenceReason.STALE)
    if selected is not None and not 0 <= selected.start <= asked.offset <= selected.end <= len(document):
        return Silence.of(SilenceReason.DISAGREES_WITH_SELECTED)
    visible = session.ledger.visible(uri, "fill")
    if asked.kind == "fill" and visible is not None and visible.edits[0].start != asked.offset:
        session.ledger.moved_away(uri, "fill")
    hunks = session.last_edits(document) if asked.kind == "edit" else ()
    if hunks and not standing(document.text, hunks, prompt_path(document)):
        session.cache.closed(uri, "edit")
    found = _known(session, asked) or _unwelcome(session, asked)
    waited = 0.0
    if found is None:
        began = session.clock()
        found = await _pause(session, asked)
        waited = session.clock() - began
    if found is None:
        found = await _from_model(session, asked)
    return replace(await _completed(session, asked, found), waited=waited)


async def _completed(session: Session, asked: Asked, found: Answer) -> Answer:
    """Add the alternatives; where nothing is left to do in this document, look in the other open ones."""
    if isinstance(found, Suggestion):
        alone = asked.kind == "edit" or asked.selected is not None
        return found if alone else replace(found, others=others(session, asked, found))
    left = asked.elsewhere and found.reason in _NOTHING_LEFT
    return (await _elsewhere(session, asked) if left else None) or found


async def _elsewhere(session: Session, asked: Asked) -> Suggestion | None:
    """The next edit in one of the other open documents, the most recently used first."""
    document, workspace, revision = asked.document, session.workspace, asked.document.revision
    undone = workspace.history.latest(document.uri) is Origin.UNDO
    hunks = () if undone else standing(document.text, session.last_edits(document), prompt_path(document))
    hunks = _masked(session, hunks)
    for other in others_of(workspace.documents, document) if hunks else ():
        await asyncio.sleep(0)
        if document.revision != revision:
            return None
        if not workspace.shows(other):
            continue
        proposed = drafts_elsewhere(workspace.documents, other, hunks, workspace.mask)
        state = other.revision, proposed
        if not proposed or session.unlikely.get(other.uri) == state:
            continue
        there = Asked("edit", other, proposed[0].start, Trigger.EDIT, drafts=proposed)
        if forbidden(session, there) is not None:
            continue
        found = _known(session, there)
        if not isinstance(found, Suggestion):
            # A silence cached there was decided without these edits.
            session.cache.closed(other.uri, "edit")
            found = await _from_model(session, there)
        if isinstance(found, Suggestion):
            return found if (document.revision, other.revision) == (revision, state[0]) else None
        session.unlikely[other.uri] = state
    return None


def forbidden(session: Session, asked: Asked) -> Silence | None:
    """Why nothing may be suggested there; None when something may.

    An explicit question is answered whatever is turned off, but a file that is ignored is never read.
    """
    document, settings, workspace = asked.document, session.settings, session.workspace
    reason = None if asked.explicit else session.switches.off(settings, document)
    if reason is None and not asked.explicit and settings.show == "on_request" and asked.drafts is None:
        reason = SilenceReason.ON_REQUEST
    if reason is None and not asked.explicit and asked.kind == "edit" and not settings.next_edit:
        reason = SilenceReason.OFF_NEXT_EDIT
    if reason is None:
        unfit = workspace.verdict(document).reason or session.state(document.uri).unfit(document)
        if unfit:
            return Silence.kept(unfit)
    if reason is None and session.state(document.uri).cursors.several_at(asked.offset):
        reason = SilenceReason.MULTI_CURSOR
    if reason is None and not asked.explicit and not (settings.in_comments and settings.in_strings):
        place = _place(session, asked)
        if place == "comment" and not settings.in_comments:
            reason = SilenceReason.IN_COMMENT
        elif place == "string" and not settings.in_strings:
            reason = SilenceReason.IN_STRING
    return None if reason is None else Silence.of(reason)


def _place(session: Session, asked: Asked) -> str:
    """Where the cursor is: `code`, `comment` or `string`; empty if unknown."""
    syntax = session.workspace.syntax
    return "" if syntax is None else syntax.in_comment_or_string(asked.document, asked.offset) or "code"


def _unwelcome(session: Session, asked: Asked) -> Silence | None:
    """Why the model is not asked now; None when it may be."""
    if asked.explicit:
        return None
    if (
        asked.kind == "fill"
        and asked.selected is None
        and splits_word(asked.before, asked.document.text[asked.offset :][:1])
    ):
        return Silence.of(SilenceReason.MID_WORD)
    age, moved = session.state(asked.document.uri).recent.age, asked.trigger is Trigger.CURSOR
    if any(each.start <= asked.offset <= each.end for each in asked.diagnostics):
        age = 0.0  # going to a problem says as much as an edit
    if (age is None and (moved or asked.kind == "edit")) or (age is not None and moved and age > _AFTER_EDIT):
        return Silence.of(SilenceReason.NO_RECENT_EDIT)
    return Silence.of(SilenceReason.COOLDOWN) if session.cooldown.left else None


def _known(session: Session, asked: Asked) -> Answer | None:
    """The cached answer; None without one."""
    entry = session.cache.find(asked.document.uri, asked.kind, asked.document.text, asked.offset)
    if entry is None:
        return None
    if isinstance(entry.decision, SilenceReason):
        return None if asked.explicit or asked.selected is not None else Silence.of(entry.decision)
    found = offered(session, asked, entry)
    if isinstance(found, Suggestion):
        return replace(found, cached=True)
    return None if found in _ASK_AGAIN else Silence.of(found)


async def _pause(session: Session, asked: Asked) -> Answer | None:
    """Wait while more typing is likely; returns an answer if the previous question finds a fitting one meanwhile."""
    latency = session.latency.quantile(0.5) or 0.0
    wait = 0.0 if asked.explicit else session.debounce.wait(asked.before, latency, session.cooldown.patience)
    if wait <= 0.0:
        return None
    timer, revision = asyncio.ensure_future(session.sleep(wait)), asked.document.revision
    try:
        inherited = session.flight.inherited
        if inherited is not None:
            await asyncio.wait({timer, inherited}, return_when=asyncio.FIRST_COMPLETED)
            if not timer.done() and asked.document.revision == revision:
                known = _known(session, asked)
                if known is not None:
                    return known
        await asyncio.wait({timer})
        return None
    finally:
        await ended(timer)


async def _from_model(session: Session, asked: Asked) -> Answer:
    """Ask the model once it is loaded, and offer what it finds."""
    document = asked.document
    try:
        info = await session.model.ready(PATIENCE)
    except CompleterError as error:
        return _failure(error)
    session.source.filter.know(info)
    if session.workspace.syntax is not None:
        await session.workspace.syntax.parse(document)
    question = question_at(session, asked, info)
    # The change that came in between is followed by a question of its own.
    if question is None:
        return Silence.of(SilenceReason.STALE)
    work = partial(_entry, session, asked, question, info)
    entry = await session.flight.run(asked.kind, document.uri, work, now=asked.explicit)
    if isinstance(entry, Silence):
        return replace(entry, asked=True)
    found: Suggestion | SilenceReason = SilenceReason.STALE
    if isinstance(entry.decision, SilenceReason):
        found = entry.decision
    elif entry.edits and all(edit.fits(document.text) for edit in entry.edits) and _is_open(session, document):
        found = offered(session, asked, entry)
    return Silence.of(found, asked=True) if isinstance(found, SilenceReason) else found


def _failure(error: CompleterError) -> Silence:
    return Silence.of(_REASONS.get(error.code, SilenceReason.FAILED), str(error))


def _is_open(session: Session, document: Document) -> bool:
    return session.workspace.documents.get(document.uri) is document


def question_at(session: Session, asked: Asked, info: ModelInfo) -> Question | None:
    """What the model is asked; None if the document was closed or replaced meanwhile."""
    document, revision, workspace = asked.document, asked.document.revision, session.workspace
    if not _is_open(session, document) or asked.offset > len(document):
        return None
    situation = workspace.situation(document.uri, asked.offset)
    if situation is None:
        return None

    def errors(start: int, end: int, text: str) -> tuple[int, int] | None:
        if document.revision != revision or workspace.syntax is None:
            return None
        return workspace.syntax.errors_after(document, start, end, text)

    recent, settings = session.state(document.uri).recent, session.settings
    return Question(
        text=document.text,
        situation=situation,
        trigger=asked.trigger,
        recent=recent.recent(),
        since_edit=recent.age,
        decisions=session.cooldown.counts,
        max_tokens=settings.max_tokens,
        lines=settings.lines,
        context_tokens=context_tokens(info, settings.context_tokens, settings.max_tokens),
        mask=workspace.mask,
        region=info.region if info.region != RegionBounds() else region_called(info.id),
        making=_masked(session, workspace.history.open_edit()) if asked.kind == "edit" else (),
        place=_place(session, asked),
        errors=errors,
        scope=partial(_scope, session, document),
        past=session.past(document),
    )


def _scope(session: Session, document: Document, offset: int) -> tuple[int, int] | None:
    """The innermost function or class around an offset."""
    syntax = session.workspace.syntax
    scopes = () if syntax is None else syntax.scopes(document, offset)
    return next(((each.start, each.end) for each in reversed(scopes) if each.kind != "block"), None)


def _masked(session: Session, hunks: Sequence[Hunk]) -> tuple[Hunk, ...]:
    return session.workspace.masked(hunks)


async def _entry(session: Session, asked: Asked, question: Question, info: ModelInfo, run: Run) -> Entry | Silence:
    """Ask the model and cache its answer; a silence if it could not answer."""
    began = session.clock()
    session.tally.asked += 1
    try:
        if asked.kind == "edit":
            found = await _next_edit(session, asked, question, info, run)
        else:
            seen = () if asked.selected else continuation(session.matches, asked.document, asked.offset, question.mask)
            found = await session.source.fill(question, asked.selected, seen)
    except CompleterError as error:
        return _failure(error)
    session.latency.add(session.clock() - began)
    if isinstance(found, Decision) and found.reason is not None:
        # After a change, another question follows and finds it again in the new text.
        if _is_open(session, asked.document) and not run.changes:
            hold_back(session, asked, found, found.reason)
        found = found.reason
    # How far the cursor may move before the suggestion goes; the same for models with a small region.
    window = region_around(question.text, asked.offset, RegionBounds())
    every = (found, *(found.others if isinstance(found, Decision) else ()))
    entries = [Entry(asked.document.uri, asked.kind, asked.offset, each, window) for each in every]
    for rank, entry in reversed([*enumerate(entries)]):
        if asked.selected is None and (asked.drafts is None or isinstance(found, Decision)):
            # With a selected item, the answer is for a text that the document does not have: do not cache it. Nor
            # cache a silence where only drafts were judged: the model may still have something there.
            session.cache.put(question.text, entry, rank)
        for change, continues in run.changes:
            entry.changed(change, continues=continues)
    return entries[0]


async def _next_edit(session: Session, asked: Asked, question: Question, info: ModelInfo, run: Run) -> Answered:
    """At the cursor, then where the last edits probably continue; nothing continues an edit that was just undone."""
    document, situation, workspace = asked.document, question.situation, session.workspace

    def there(place: int) -> Situation | None:
        if place == situation.offset:
            return situation
        return None if run.changes else workspace.situation(document.uri, place)

    if asked.drafts is not None:
        if "edit" not in info.kinds:
            return (await agreed(session.source, question, asked.drafts, there))[0]
        return (await next_edits(session.source, question, asked.drafts, (), there, finishing=False))[0]
    path, state = prompt_path(document), session.state(document.uri)
    undone = workspace.history.latest(document.uri) is Origin.UNDO
    hunks = () if undone else session.last_edits(document)
    own = [hunk for hunk in hunks if hunk.path == path]
    names = names_of(document.language_id, document.path)
    places = continuations(question.text, own, situation.offset, asked.diagnostics, names)
    # What a model made of a region that it was trained to rewrite is whole: rules go on with what the person did.
    trained = session.source.filter.model.kind in {"edits", "hosted"}
    done = tuple(hunk for hunk in hunks if not (trained and hunk.predicted))
    proposed = drafts(situation.text, _masked(session, done), situation.offset, path, names)
    if "edit" not in info.kinds:
        return (await agreed(session.source, question, proposed, there))[0]
    extended, state.extended = state.extended, False
    finishing = not session.shows_text or asked.trigger is not Trigger.EDIT
    return (
        await next_edits(session.source, question, proposed, places, there, extended=extended, finishing=finishing)
    )[0]
