"""How an answer comes about: what is known already, then a pause in the typing, then the model."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from calomel.prompts.parts import RegionBounds, region_around
from calomel.suggest.asker import context_tokens
from calomel.suggest.cache import Entry
from calomel.suggest.completer import CompleterError, Kind, ModelInfo
from calomel.suggest.drafts.propose import continuation
from calomel.suggest.edit import Answer, Suggestion
from calomel.suggest.fitting import splits_word
from calomel.suggest.judging import Answered, Found, Held
from calomel.suggest.offering import hold_back, offered
from calomel.suggest.pace import Run, Ticket
from calomel.suggest.question import (
    CommentTest,
    Diagnostic,
    ErrorTest,
    PathRules,
    PathVerdict,
    Question,
    Selected,
    Trigger,
)
from calomel.suggest.recent import past_of, standing
from calomel.suggest.search import last_edits, look_around
from calomel.suggest.session import Session
from calomel.suggest.silence import Silence, SilenceReason
from calomel.workspace.documents import Document
from calomel.workspace.history import prompt_path


def forbidden(session: Session, document: Document, offset: int, trigger: Trigger, kind: Kind) -> Silence | None:
    """Why nothing may be suggested there; None when something may.

    An explicit question is answered within comments and strings too, but nothing that is off or ignored is ever read.
    """
    settings = session.settings
    off = session.switches.off(
        document.uri,
        document.language_id,
        enabled=settings.enabled,
        language_enabled=settings.language_enabled(document.language_id),
    )
    if off is not None:
        return Silence.of(off)
    if kind == "edit" and not settings.next_edit:
        return Silence.of(SilenceReason.OFF_NEXT_EDIT)
    ignored = _ignored(session, document)
    if ignored is not None:
        return ignored
    if session.state(document.uri).cursors.several_at(offset):
        return Silence.of(SilenceReason.MULTI_CURSOR)
    return None if trigger is Trigger.EXPLICIT else _in_text(session, document, offset)


def _ignored(session: Session, document: Document) -> Silence | None:
    """Whether a rule keeps the file, or what is in it, from every model."""
    rules: object = session.workspace.privacy
    if not isinstance(rules, PathRules):
        return None
    verdict: PathVerdict = rules.allowed(session.workspace.file_of(document.uri), document.language_id)
    if verdict.allowed:
        verdict = session.state(document.uri).content_verdict(rules, document)
    return None if verdict.allowed else Silence.kept(verdict.reason)


def _in_text(session: Session, document: Document, offset: int) -> Silence | None:
    """Whether the place is in a comment or a string, where the user wants nothing."""
    settings = session.settings
    syntax: object = session.workspace.syntax
    if settings.in_comments and settings.in_strings:
        return None
    place = syntax.in_comment_or_string(document, offset) if isinstance(syntax, CommentTest) else None
    if place == "comment" and not settings.in_comments:
        return Silence.of(SilenceReason.IN_COMMENT)
    if place == "string" and not settings.in_strings:
        return Silence.of(SilenceReason.IN_STRING)
    return None


# A question waits so long for a model that is still loading.
_LOADING_PATIENCE: Final = 10.0
# A cursor that moves tells of a next edit only for so long after an edit (Copilot's rule).
_AFTER_EDIT: Final = 10.0

# Why a kept answer is none: the model may have another one.
_ASK_AGAIN: Final = frozenset(
    {SilenceReason.DISAGREES_WITH_SELECTED, SilenceReason.REVERTS_EDIT, SilenceReason.RESUMES_UNDONE}
)

Search = Callable[[Run, Question, ModelInfo], Coroutine[Any, Any, Answered]]


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of the editor."""

    ticket: Ticket
    document: Document
    offset: int
    trigger: Trigger
    selected: Selected | None = None

    @property
    def kind(self) -> Kind:
        """`fill` or `edit`."""
        return self.ticket.kind

    @property
    def before(self) -> str:
        """The character before the cursor, or nothing."""
        return self.document.text[max(0, self.offset - 1) : self.offset]


async def inline(session: Session, ticket: Ticket, offset: int, trigger: Trigger, selected: Selected | None) -> Answer:
    """Text for the cursor."""
    asked = _checked(session, ticket, offset, trigger, selected)
    if isinstance(asked, Silence):
        return asked
    document, offset = asked.document, asked.offset
    if selected is not None and not 0 <= selected.start <= offset <= selected.end <= len(document):
        return Silence.of(SilenceReason.DISAGREES_WITH_SELECTED)
    visible = session.ledger.visible(ticket.uri, "fill")
    if visible is not None and visible.edits[0].start != offset:
        session.ledger.moved_away(ticket.uri, "fill")
    known = _known(session, asked)
    if known is not None:
        return known
    following = document.text[offset : offset + 1]
    if trigger is not Trigger.EXPLICIT:
        if selected is None and splits_word(asked.before, following):
            return Silence.of(SilenceReason.MID_WORD)
        age = session.state(ticket.uri).recent.age
        if trigger is Trigger.CURSOR and (age is None or age > _AFTER_EDIT):
            return Silence.of(SilenceReason.NO_RECENT_EDIT)

    async def search(_: Run, question: Question, __: ModelInfo) -> Answered:
        drafts = () if selected is not None else continuation(session.matches, document, offset, question.mask)
        return await session.asker.fill(question, selected, drafts)

    return await _found(session, asked, search)


async def next_edit(
    session: Session,
    ticket: Ticket,
    version: int | None,
    offset: int,
    diagnostics: Sequence[Diagnostic],
    trigger: Trigger,
) -> Answer:
    """The next edit of the document, near the cursor or elsewhere in it."""
    asked = _checked(session, ticket, offset, trigger, None)
    if isinstance(asked, Silence):
        return asked
    document = asked.document
    if version is not None and document.version is not None and version != document.version:
        return Silence.of(SilenceReason.STALE)
    hunks = last_edits(session, ticket.uri)
    if hunks and not standing(document.text, hunks, prompt_path(document)):
        session.cache.closed(ticket.uri, "edit")
    known = _known(session, asked)
    if known is not None:
        return known
    age = session.state(ticket.uri).recent.age
    if trigger is not Trigger.EXPLICIT and (age is None or (trigger is Trigger.CURSOR and age > _AFTER_EDIT)):
        return Silence.of(SilenceReason.NO_RECENT_EDIT)

    async def search(run: Run, question: Question, info: ModelInfo) -> Answered:
        return await look_around(session, run, question, info, diagnostics)

    return await _found(session, asked, search)


def _checked(
    session: Session, ticket: Ticket, offset: int, trigger: Trigger, selected: Selected | None
) -> Asked | Silence:
    document = session.workspace.documents.get(ticket.uri)
    if document is None:
        return Silence.of(SilenceReason.UNKNOWN_DOCUMENT)
    offset = max(0, min(offset, len(document)))
    return forbidden(session, document, offset, trigger, ticket.kind) or Asked(
        ticket, document, offset, trigger, selected
    )


def _known(session: Session, asked: Asked, waited: float = 0.0) -> Answer | None:
    """The answer that needs no model; None when there is none."""
    entry = session.cache.find(asked.ticket.uri, asked.kind, asked.document.text, asked.offset)
    if entry is None:
        return None
    if entry.reason is not None:
        silent = asked.trigger is not Trigger.EXPLICIT and asked.selected is None
        return Silence.of(entry.reason, waited=waited) if silent else None
    answer = offered(session, asked.document, asked.offset, entry, asked.trigger, asked.selected)
    if isinstance(answer, SilenceReason):
        return None if answer in _ASK_AGAIN else Silence.of(answer, waited=waited)
    return replace(answer, cached=True, waited=waited)


@dataclass(slots=True)
class _Attempt:
    """What came of asking: something to keep, or a detail for people of why not."""

    entry: Entry | None = None
    detail: str = ""


async def _found(session: Session, asked: Asked, search: Search) -> Answer:
    """Wait for a pause in the typing, ask, and offer what is found."""
    explicit = asked.trigger is Trigger.EXPLICIT
    if not explicit and session.cooldown.left:
        return Silence.of(SilenceReason.COOLDOWN)
    began = session.clock()
    early = await _pause(session, asked)
    waited = session.clock() - began
    if early is not None:
        return replace(early, waited=waited)
    answer = await _tried(session, asked, search, waited)
    if isinstance(answer, Silence) and answer.asked and answer.reason is SilenceReason.LOADING:
        # The server ended under the question, which waits for the next one as it would have for the first.
        answer = await _tried(session, asked, search, waited)
    return answer


async def _tried(session: Session, asked: Asked, search: Search, waited: float) -> Answer:
    """Ask once the model is there, and offer what is found."""
    info = await session.model.info(_LOADING_PATIENCE)
    if not isinstance(info, ModelInfo):
        return Silence.of(*info, waited=waited)
    session.asker.judging.know(info)
    syntax: object = session.workspace.syntax
    if isinstance(syntax, ErrorTest):
        await syntax.parse(asked.document)
    question = _question(session, asked, info)
    # Whatever changed the document meanwhile will be followed by a question of its own.
    if question is None:
        return Silence.of(SilenceReason.STALE, waited=waited)
    attempt = _Attempt()

    async def work(run: Run) -> SilenceReason | None:
        return await _asked(session, asked, question, attempt, run, search(run, question, info))

    reason = await session.flight.run(
        asked.ticket, asked.document.revision, work, now=asked.trigger is Trigger.EXPLICIT
    )
    answer = _fresh(session, asked, attempt.entry) if reason is None else reason
    if isinstance(answer, SilenceReason):
        return Silence.of(answer, attempt.detail, waited=waited, asked=True)
    return replace(answer, waited=waited)


async def _asked(
    session: Session,
    asked: Asked,
    question: Question,
    attempt: _Attempt,
    run: Run,
    searching: Coroutine[Any, Any, Answered],
) -> SilenceReason | None:
    """Ask the model and keep what it says; the reason when that is nothing to offer."""
    began = session.clock()
    session.tally.asked += 1
    try:
        found = await searching
    except CompleterError as error:
        attempt.detail = str(error)
        return session.model.failed(error)
    session.latency.add(session.clock() - began)
    if isinstance(found, Held):
        current = session.workspace.documents.get(asked.ticket.uri) is asked.document
        # With a change since, another question follows, which will have it in the text as it is then.
        if current and not run.changes:
            hold_back(session, asked.document, asked.offset, found, asked.trigger, asked.selected)
        found = found.reason
    attempt.entry = entry = _entry(session, asked, question, run, found)
    if asked.selected is None:
        # With a selected item the text is one that the document does not have: nothing to keep.
        session.cache.put(question.text, entry)
    for change in run.changes:
        entry.changed(change)
    return entry.reason


async def _pause(session: Session, asked: Asked) -> Answer | None:
    """Wait as long as more typing is likely; an answer when the question before still found a fitting one."""
    if asked.trigger is Trigger.EXPLICIT:
        return None
    wait = session.debounce.wait(asked.before, session.latency.quantile(0.5) or 0.0, session.cooldown.patience)
    if wait <= 0.0:
        return None
    revision = asked.document.revision

    def known() -> Answer | None:
        return _known(session, asked) if asked.document.revision == revision else None

    return await session.flight.pause(asked.ticket, session.sleep(wait), known)


def _question(session: Session, asked: Asked, info: ModelInfo) -> Question | None:
    """What the model is asked; None when the document is not the one any more."""
    uri = asked.ticket.uri
    if session.workspace.documents.get(uri) is not asked.document or asked.offset > len(asked.document):
        return None
    situation = session.workspace.situation(uri, asked.offset)
    if situation is None:
        return None
    state = session.state(uri)
    syntax: object = session.workspace.syntax
    document, revision = asked.document, asked.document.revision
    place = (syntax.in_comment_or_string(document, asked.offset) or "code") if isinstance(syntax, CommentTest) else ""

    def errors(start: int, end: int, text: str) -> tuple[int, int] | None:
        if document.revision != revision or not isinstance(syntax, ErrorTest):
            return None
        return syntax.errors_after(document, start, end, text)

    return Question(
        text=asked.document.text,
        situation=situation,
        trigger=asked.trigger,
        recent=state.recent.recent(),
        since_edit=state.recent.age,
        decisions=session.cooldown.counts,
        max_tokens=session.settings.max_tokens,
        context_tokens=context_tokens(info, session.settings.context_tokens, session.settings.max_tokens),
        mask=session.workspace.mask,
        region=info.region,
        place=place,
        errors=errors,
        past=past_of(document.text, last_edits(session, uri), prompt_path(document)),
    )


def _entry(session: Session, asked: Asked, question: Question, run: Run, found: Found | SilenceReason) -> Entry:
    """What is kept of an answer."""
    length = len(question.text)
    if isinstance(found, SilenceReason):
        return Entry(run.owner.uri, asked.kind, asked.offset, length, (), reason=found)
    extended = session.state(run.owner.uri).extended
    # As far as the cursor may go while the suggestion stays, which a model with a small region does not change.
    window = RegionBounds()
    return Entry(
        uri=run.owner.uri,
        kind=asked.kind,
        offset=asked.offset,
        length=length,
        original=found.edits,
        candidate=found.candidate,
        probability=found.probability,
        signals=found.signals,
        truncated=found.truncated,
        request=found.request,
        window=region_around(question.text, asked.offset, window.extended() if extended else window),
    )


def _fresh(session: Session, asked: Asked, entry: Entry | None) -> Suggestion | SilenceReason:
    """The suggestion that a new answer makes in the text as it is now."""
    document = asked.document
    if entry is None or not entry.edits or not all(edit.fits(document.text) for edit in entry.edits):
        return SilenceReason.STALE
    if session.workspace.documents.get(asked.ticket.uri) is not document:
        return SilenceReason.STALE
    return offered(session, document, asked.offset, entry, asked.trigger, asked.selected)
