"""The life of a suggestion in one editor: from the question to the outcome."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from calomel.context.builder import ContextBuilder
from calomel.infer.client import ModelClient
from calomel.infer.completer import Kind
from calomel.storage.failures import describe
from calomel.suggest.answering import answer
from calomel.suggest.candidates import CandidateSource
from calomel.suggest.edit import Answer, Suggestion, apply, edits_of, grouped
from calomel.suggest.judging import SuggestionFilter
from calomel.suggest.ledger import Ledger
from calomel.suggest.offers import Offer, Outcome, OutcomeSink
from calomel.suggest.pace import Cooldown, Debounce
from calomel.suggest.question import Diagnostic, Selected, Trigger
from calomel.suggest.reading import ReadAhead
from calomel.suggest.session import Asked, Session, Switches
from calomel.suggest.signals import OutcomeSignals
from calomel.suggest.silence import Silence, SilenceReason, Status
from calomel.workspace.documents import Document, TextChange
from calomel.workspace.history import Listener, Origin
from calomel.workspace.settings import SuggestSettings
from calomel.workspace.workspace import Workspace

LOG: Final = logging.getLogger(__name__)


class _Learning:
    """Lets the filter learn from outcomes, and records them."""

    def __init__(self, filter: SuggestionFilter, sink: OutcomeSink | None) -> None:  # noqa: A002 (what it is)
        self._filter = filter
        self._sink = sink
        # By id, the signals of suggestions that were held back: a later outcome does not repeat them.
        self._held: OrderedDict[str, OutcomeSignals] = OrderedDict()

    def record(self, outcome: Outcome) -> None:
        """Record one."""
        if outcome.outcome == "withheld" and outcome.signals is not None:
            self._held[outcome.id] = outcome.signals
            if len(self._held) > _HELD:
                self._held.popitem(last=False)
        signals = outcome.signals or self._held.get(outcome.id)
        accepted = _ACCEPTED.get(outcome.outcome)
        if accepted is not None and signals is not None:
            self._filter.learn(outcome.kind, outcome.maker, signals, accepted=accepted)
        if self._sink is not None:
            self._sink.record(outcome)


# What outcomes teach; those that are not here teach nothing: nobody decided.
_ACCEPTED: Final = {"accepted": True, "partly_accepted": True, "typed": True, "rejected": False, "ignored": False}
_HELD: Final = 64


class Suggester(Listener):
    """One per editor client; asyncio, single-threaded. Registers itself as a listener of the workspace.

    Attributes:
        filter: decides which proposals are offered.
        reading: prefetches the context of a resting cursor.
    """

    def __init__(
        self,
        workspace: Workspace,
        builder: ContextBuilder,
        model: ModelClient,
        settings: SuggestSettings,
        *,
        clock: Callable[[], float],
        outcomes: OutcomeSink | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._is_closed = False
        self.filter = SuggestionFilter(settings.aggressiveness, settings.aggressiveness_by_language)
        self._session = Session(
            workspace=workspace,
            settings=settings,
            clock=clock,
            sleep=sleep,
            rng=rng or random.Random(),  # noqa: S311 (names of suggestions, not secrets)
            model=model,
            source=CandidateSource(builder, model.complete, self.filter),
            ledger=Ledger(clock, _Learning(self.filter, outcomes)),
            cooldown=Cooldown(clock),
            debounce=Debounce(clock, settings.debounce_seconds),
            switches=Switches(clock),
        )
        self.reading = ReadAhead(self._session)
        workspace.listeners += [self._session.matches, self]
        for document in workspace.documents.values():
            self._session.matches.opened(document)
        workspace.is_acceptance = self._session.ledger.accepts

    def shows_text(self) -> None:
        """The editor also asks for text at the cursor, so next edits need not cover that."""
        self._session.shows_text = True

    # Requests.

    async def inline(self, uri: str, offset: int, trigger: Trigger, *, selected: Selected | None = None) -> Answer:
        """Text for the cursor at `offset`. Raises CancelledError only; cancelling reaches the model."""
        return await self._answer("fill", uri, offset, trigger, selected=selected)

    async def next_edit(
        self,
        uri: str,
        version: int | None,
        offset: int,
        *,
        diagnostics: Sequence[Diagnostic] = (),
        trigger: Trigger = Trigger.EDIT,
        elsewhere: bool = False,
    ) -> Answer:
        """The next edit of the document, near the cursor or elsewhere in it. Raises as `inline` does.

        Args:
            uri: of the document.
            version: that the client asks about; `stale` is the answer if ours differs. None for the newest.
            offset: of the cursor.
            diagnostics: problems that the editor shows, as hints.
            trigger: what made the editor ask.
            elsewhere: if nothing is left to do in it, an edit of another open document is welcome.
        """
        known = {"version": version, "diagnostics": diagnostics, "elsewhere": elsewhere}
        return await self._answer("edit", uri, offset, trigger, **known)

    # What the user did with a suggestion. Unknown ids are tolerated everywhere.

    def shown(self, suggestion_id: str) -> None:
        """The client displays the suggestion."""
        self._session.ledger.shown(suggestion_id)

    def accepted(self, suggestion_id: str) -> None:
        """The user took all of it."""
        offer = self._session.ledger.accepted(suggestion_id)
        if offer is None:
            return
        uri = offer.outcome.uri
        document = self._session.workspace.documents.get(uri)
        if document is not None and offer.edits and all(edit.fits(document.text) for edit in offer.edits):
            # The command came before the text change; from most editors it comes after it.
            after = apply(document.text, edits_of(offer.edits))
            self._session.workspace.expect_prediction(uri, after)
        self._was_accepted(offer)

    def partly_accepted(self, suggestion_id: str, length: int, whole: int | None = None) -> None:
        """The user took the first `length` UTF-16 units of its insert text, always counted from its start.

        `whole`: units of that insert text, if the editor reports them.
        """
        offer = self._session.ledger.partly_accepted(suggestion_id, length, whole)
        if offer is not None:
            self._was_accepted(offer)

    def rejected(self, suggestion_id: str, reason: str | None = None) -> None:
        """The user dismissed it, and what follows it: neither comes back until the text around it changes."""
        offer = self._session.ledger.rejected(suggestion_id, reason)
        if offer is None:
            return
        self._session.cooldown.rejected()
        document = self._session.workspace.documents.get(offer.outcome.uri)
        if document is not None:
            text, left = document.text, self._session.cache.beside(document.uri, offer.edits)
            for edits in (offer.edits, *grouped(text, left)) if offer.edits else ():
                self._session.rejections.add(document.uri, text, edits)
        offer.edits = ()

    def ignored(self, suggestion_id: str, reason: str) -> None:
        """It disappeared without a decision of the user."""
        self._session.ledger.ignored(suggestion_id, reason)

    # Settings and state.

    @property
    def settings(self) -> SuggestSettings:
        """The current settings."""
        return self._session.settings

    def apply_settings(self, settings: SuggestSettings) -> None:
        """Apply changed settings."""
        session = self._session
        session.settings = settings
        session.debounce.fixed = settings.debounce_seconds
        self.filter.aggressiveness = settings.aggressiveness
        self.filter.by_language = settings.aggressiveness_by_language
        session.cache.clear()

    def toggle(
        self, scope: str = "global", *, uri: str | None = None, language: str | None = None, enabled: bool | None = None
    ) -> bool:
        """Turn suggestions on or off for `global`, `language` or `file`; None toggles. Returns the new state.

        Raises ValueError for an unknown scope, or if the name that the scope needs is missing.
        """
        name = uri if scope == "file" else language
        return self._session.switches.toggle(scope, name, self.settings, enabled=enabled)

    def snooze(self, until: float | None) -> None:
        """Be silent until the clock reaches `until`; None ends it."""
        self._session.switches.snoozed_until = until

    def status(self) -> Status:
        """The current status."""
        session = self._session
        session.ledger.settle()
        return replace(
            session.tally,
            silences=session.tally.silences.copy(),
            outcomes=dict(session.ledger.counts),
            withheld=session.ledger.held_back.report(),
            latency_p50=session.latency.quantile(0.5),
            latency_p95=session.latency.quantile(0.95),
            off=session.switches.off(self.settings),
        )

    async def aclose(self) -> None:
        """Cancel running work and settle every outcome. The client stays open: it belongs to the caller."""
        self._is_closed = True
        if self in self._session.workspace.listeners:
            self._session.workspace.listeners.remove(self)
            self._session.workspace.listeners.remove(self._session.matches)
            self._session.workspace.is_acceptance = None
        self.reading.stop()
        await self._session.flight.aclose()
        self._session.ledger.close()

    # Notifications of the workspace.

    def opened(self, document: Document) -> None:
        """A document was opened, or replaced as a whole: forget all about its text."""
        self.closed(document)

    def changed(self, document: Document, change: TextChange, origin: Origin) -> None:
        """A document changed."""
        session, uri = self._session, document.uri
        if origin is Origin.TYPED:
            session.debounce.key()
        if origin in {Origin.TYPED, Origin.PREDICTED}:
            self.reading.rests(uri, change.start + len(change.inserted))
        state = session.state(uri)
        continues = state.recent.changed(change)
        run = session.flight.running
        if run is not None and run.uri == uri:
            run.changes.append((change, continues))
        accepted, wanted = session.ledger.changed(uri, change, origin, continues=continues)
        state.cursors.changed(document.version, change, by_keys=origin is Origin.TYPED and not wanted)
        session.cache.changed(uri, change, continues=continues)
        if origin in {Origin.UNDO, Origin.EXTERNAL}:
            session.cache.closed(uri, "edit")  # it followed from an edit that is gone
        session.rejections.changed(uri, change)
        for offer in accepted:
            self._was_accepted(offer)

    def closed(self, document: Document) -> None:
        """A document was closed."""
        session = self._session
        session.ledger.closed(document.uri)
        session.cache.closed(document.uri)
        session.rejections.closed(document.uri)
        session.states.pop(document.uri, None)
        session.unlikely.pop(document.uri, None)

    def withdrawn(self) -> None:
        """Drop all cached answers: of another model, or perhaps from text that no model may see any more."""
        self._session.cache.clear()

    def _was_accepted(self, offer: Offer) -> None:
        self._session.cooldown.accepted()
        self._session.state(offer.outcome.uri).extended = True

    async def _answer(self, kind: Kind, uri: str, offset: int, trigger: Trigger, **known: Any) -> Answer:
        session = self._session
        self.reading.stop()
        session.tally.requests += 1
        session.ledger.settle()
        session.ledger.held_back.settle()
        # Before anything cached is used.
        session.workspace.look_again()
        document = session.workspace.documents.get(uri)
        found: Answer
        if self._is_closed:
            found = Silence.of(SilenceReason.CLOSED)
        elif document is None:
            found = Silence.of(SilenceReason.UNKNOWN_DOCUMENT)
        else:
            asked = Asked(kind, document, max(0, min(offset, len(document))), trigger, **known)
            try:
                found = await session.flight.answer(kind, uri, answer(session, asked))
            except Exception as error:  # noqa: BLE001 (a bug of ours must not end the session)
                found = Silence.of(SilenceReason.FAILED, f"({describe(error, 1)})")
                LOG.error("a question ended with %s", found.message)  # noqa: TRY400 (an error may quote the user's text)
        session.tally.cached += isinstance(found, Suggestion) and found.cached
        self.reading.rests(uri, offset)
        if isinstance(found, Suggestion):
            session.tally.last = {"shown": found.id}
        else:
            session.tally.silences[str(found.reason)] += 1
            if found.reason is not SilenceReason.SUPERSEDED:
                session.tally.last = {"reason": str(found.reason), "message": found.message}
            LOG.debug("silent: %s, %s", kind, found.reason)
        return found
