"""The life of a suggestion in one editor: from the question to the outcome."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from calomel.context.builder import ContextBuilder
from calomel.context.window import EstimateCounter
from calomel.infer.completer import CompleterError, Kind, ModelInfo
from calomel.infer.models import Models
from calomel.storage.failures import describe
from calomel.suggest.answering import Answering
from calomel.suggest.candidates import CandidateSource
from calomel.suggest.edit import Answer, Suggestion, grouped
from calomel.suggest.judging import SuggestionFilter
from calomel.suggest.ledger import Ledger
from calomel.suggest.offering import Offering
from calomel.suggest.offers import Offer, Outcome, OutcomeSink
from calomel.suggest.pace import LONGEST_GAP, Cooldown, Permission
from calomel.suggest.signals import OutcomeSignals
from calomel.suggest.silence import Silence, SilenceReason, SuggesterStatus
from calomel.suggest.snapshot import Diagnostic, Request, Selected, Trigger
from calomel.workspace.documents import Document, Origin, TextChange
from calomel.workspace.edits import apply, edits_of
from calomel.workspace.history import Listener
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

    Args:
        workspace: of the editor.
        models: that are asked; their clock is the one that counts.
        settings: of the user.
        builder: builds prompts.
        outcomes: takes what became of suggestions.
        rng: names suggestions.

    Attributes:
        filter: decides which proposals are offered.
        reading: prefetches the context of a resting cursor.
        shown: a suggestion, by its id, is displayed now.
        ignored: it disappeared without a decision of the user, for a reason.
    """

    def __init__(
        self,
        workspace: Workspace,
        models: Models,
        settings: SuggestSettings,
        *,
        builder: ContextBuilder | None = None,
        outcomes: OutcomeSink | None = None,
        rng: random.Random | None = None,
    ) -> None:
        clock = models.clock
        self._is_closed = False
        self._workspace = workspace
        self._tally = SuggesterStatus()
        self._cooldown = Cooldown(clock)
        self.filter = SuggestionFilter(settings.aggressiveness, settings.aggressiveness_by_language)
        self._ledger = Ledger(clock, _Learning(self.filter, outcomes))
        self.shown, self.ignored = self._ledger.shown, self._ledger.ignored
        self._permission = Permission(workspace, settings, self._cooldown, clock)
        source = CandidateSource(builder or ContextBuilder(EstimateCounter()), models.complete, self.filter)
        names = rng or random.Random()  # noqa: S311 (names of suggestions, not secrets)
        offering = Offering(self._ledger, self.filter, names)
        self._answering = Answering(workspace, models, source, self._permission, offering, self._cooldown)
        self.reading = ReadAhead(workspace, models, source, self._answering)
        workspace.listeners.append(self)
        workspace.is_acceptance = self._ledger.accepts

    def shows_text(self) -> None:
        """The editor also asks for text at the cursor, so next edits need not cover that."""
        self._answering.shows_text = True

    def extends(self, tell: Callable[[str, str], None]) -> None:
        """The editor asks again when told that the text it shows goes on: it gets the first line of a long text early.

        `tell` is called with the URI of the document and the id of the suggestion.
        """
        self._answering.extended = tell

    def tells_counts(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with a document's URI when more is known of how many edits the last answer about it has."""
        self._answering.counted = tell

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
        details = {"version": version, "diagnostics": diagnostics, "elsewhere": elsewhere}
        return await self._answer("edit", uri, offset, trigger, **details)

    def offers(self, suggestion_id: str, document: Document) -> bool:
        """Whether the user may be looking at a next edit of the document: suggestions are on, and nobody decided."""
        visible = self._ledger.visible(document.uri, "edit")
        return visible is not None and visible.outcome.id == suggestion_id and self._permission.off(document) is None

    # What the user did with a suggestion. Unknown ids are tolerated everywhere.

    def accepted(self, suggestion_id: str) -> None:
        """The user took all of it."""
        offer = self._ledger.accepted(suggestion_id)
        if offer is None:
            return
        uri = offer.outcome.uri
        document = self._workspace.documents.get(uri)
        if document is not None and offer.edits and all(edit.fits(document.text) for edit in offer.edits):
            # The command came before the text change; from most editors it comes after it.
            after = apply(document.text, edits_of(offer.edits))
            self._workspace.expect_prediction(uri, after)
        self._was_accepted(offer)

    def partly_accepted(self, suggestion_id: str, length: int, whole: int | None = None) -> None:
        """The user took the first `length` UTF-16 units of its insert text, always counted from its start.

        `whole`: units of that insert text, if the editor reports them.
        """
        offer = self._ledger.partly_accepted(suggestion_id, length, whole)
        if offer is not None:
            self._was_accepted(offer)

    def rejected(self, suggestion_id: str, reason: str | None = None) -> None:
        """The user dismissed it, and what follows it: neither comes back until the text around it changes."""
        offer = self._ledger.rejected(suggestion_id, reason)
        if offer is None:
            return
        self._cooldown.rejected()
        document = self._workspace.documents.get(offer.outcome.uri)
        if document is not None:
            text, state = document.text, self._answering.state(document.uri)
            left = state.cache.beside(offer.edits)
            for edits in (offer.edits, *grouped(text, left)) if offer.edits else ():
                state.reject(text, edits)
        offer.edits = ()

    # Settings and state.

    @property
    def settings(self) -> SuggestSettings:
        """The current settings."""
        return self._permission.settings

    def apply_settings(self, settings: SuggestSettings) -> None:
        """Apply changed settings."""
        self._permission.settings = settings
        self._answering.debounce.fixed = settings.debounce_seconds
        self.filter.aggressiveness = settings.aggressiveness
        self.filter.by_language = settings.aggressiveness_by_language
        self._answering.clear()

    def toggle(
        self, scope: str = "global", *, uri: str | None = None, language: str | None = None, enabled: bool | None = None
    ) -> bool:
        """Turn suggestions on or off for `global`, `language` or `file`; None toggles. Returns the new state.

        Raises ValueError for an unknown scope, or if the name that the scope needs is missing.
        """
        name = uri if scope == "file" else language
        return self._permission.toggle(scope, name, enabled=enabled)

    def snooze(self, until: float | None) -> None:
        """Be silent until the clock reaches `until`; None ends it."""
        self._permission.snoozed_until = until

    def status(self) -> SuggesterStatus:
        """The current status."""
        self._settle()
        latency = self._answering.latency("fill")
        return replace(
            self._tally,
            asked=self._answering.asked,
            silences=self._tally.silences.copy(),
            outcomes=dict(self._ledger.counts),
            withheld=self._ledger.held_back.report(),
            latency_p50=latency.quantile(0.5),
            latency_p95=latency.quantile(0.95),
            off=self._permission.off(),
        )

    async def aclose(self) -> None:
        """Cancel running work and settle every outcome. The client stays open: it belongs to the caller."""
        self._is_closed = True
        if self in self._workspace.listeners:
            self._workspace.listeners.remove(self)
            self._workspace.is_acceptance = None
        self.reading.stop()
        await self._answering.aclose()
        self._settle()
        self._ledger.close()

    # Notifications of the workspace.

    def opened(self, document: Document) -> None:
        """A document was opened, or replaced as a whole: forget all about its text."""
        self.closed(document)

    def changed(self, document: Document, change: TextChange, origin: Origin) -> None:
        """A document changed."""
        uri = document.uri
        if origin is Origin.TYPED:
            self._answering.debounce.key()
        if origin in {Origin.TYPED, Origin.PREDICTED}:
            self.reading.rests(uri, change.start + len(change.inserted))
        self._answering.flight.look()
        accepted, document.latest.along = self._ledger.changed(uri, change, document.revision)
        for offer in accepted:
            self._was_accepted(offer)

    def closed(self, document: Document) -> None:
        """A document was closed."""
        self._answering.flight.closed(document)
        self._ledger.held_back.follow(document)
        self._ledger.closed(document.uri)
        self._answering.forget(document.uri)

    def forget_answers(self) -> None:
        """Another model answers from now on: drop what the one before said."""
        self._answering.clear()

    def withdrawn(self) -> None:
        """Drop answers, running questions too: of another model, or perhaps from text that may not be seen any more."""
        run = self._answering.flight.running
        if run is not None:
            run.task.cancel()
        self._answering.clear()

    def _settle(self) -> None:
        """Record the outcomes that have become certain."""
        for document in self._workspace.documents.values():
            self._ledger.held_back.follow(document)
        self._ledger.settle()
        self._ledger.held_back.settle()

    def _was_accepted(self, offer: Offer) -> None:
        self._cooldown.accepted()
        self._answering.state(offer.outcome.uri).extended = True

    async def _answer(self, kind: Kind, uri: str, offset: int, trigger: Trigger, **details: Any) -> Answer:
        tally = self._tally
        self.reading.stop()
        tally.requests += 1
        self._settle()
        # Before anything cached is used.
        self._workspace.look_again()
        document = self._workspace.documents.get(uri)
        answer: Answer
        if self._is_closed:
            answer = Silence.of(SilenceReason.CLOSED)
        elif document is None:
            answer = Silence.of(SilenceReason.UNKNOWN_DOCUMENT)
        else:
            request = Request(kind, document, max(0, min(offset, len(document))), trigger, document.revision, **details)
            try:
                answer = await self._answering.flight.answer(request, self._answering.answer(request))
            except Exception as error:  # noqa: BLE001 (a bug of ours must not end the session)
                answer = Silence.of(SilenceReason.FAILED, f"({describe(error, 1)})")
                LOG.error("a question ended with %s", answer.message)  # noqa: TRY400 (an error may quote the user's text)
        tally.cached += isinstance(answer, Suggestion) and answer.cached
        self.reading.rests(uri, offset)
        if isinstance(answer, Suggestion):
            tally.last = {"shown": answer.id}
        else:
            tally.silences[str(answer.reason)] += 1
            if answer.reason is not SilenceReason.SUPERSEDED:
                tally.last = {"reason": str(answer.reason), "message": answer.message}
            LOG.debug("silent: %s, %s", kind, answer.reason)
        return answer


# The cursor rests when nothing happens for this long.
_REST_SECONDS: Final = 0.25


class ReadAhead:
    """Prefetches one place at a time, the newest; every real question comes first.

    The server gives it the lowest priority. What was encoded before a cancellation stays cached for the next question.
    """

    def __init__(
        self,
        workspace: Workspace,
        models: Models,
        source: CandidateSource,
        answering: Answering,
    ) -> None:
        self._workspace = workspace
        self._models = models
        self._source = source
        self._answering = answering
        self._task: asyncio.Task[None] | None = None
        self._place: tuple[str, int] | None = None
        self._last_key: tuple[str, int, int] | None = None

    def rests(self, uri: str, offset: int) -> None:
        """The cursor is at `offset`: prefetch there once it has rested, unless that is done already."""
        self.stop()
        self._place = (uri, offset)
        info, wanted = self._models.text.info, self._answering.permission.settings.read_ahead != "never"
        if wanted and info is not None and info.reads_ahead and self._key(uri, offset) not in {None, self._last_key}:
            # Where one types, a prompt stays until a pause, and another server does not stop in the middle of it.
            stays = info.through and self._goes_on(self._workspace.documents[uri], offset)
            self._task = asyncio.ensure_future(self._read(uri, offset, info, LONGEST_GAP if stays else _REST_SECONDS))

    def again(self) -> None:
        """Prompts will be different from now on: forget what was prefetched. Nothing is prefetched without a model."""
        self._last_key = None
        if self._place is not None:
            self.rests(*self._place)

    def stop(self) -> None:
        """Cancel prefetching: a real question came, or it is of no use any more."""
        if self._task is not None:
            self._task.cancel()

    def _key(self, uri: str, offset: int) -> tuple[str, int, int] | None:
        document = self._workspace.documents.get(uri)
        return None if document is None else (uri, document.revision, offset)

    def _goes_on(self, document: Document, offset: int) -> bool:
        return self._workspace.history.goes_on(document, document.line_of(offset))

    async def _read(self, uri: str, offset: int, info: ModelInfo, rest: float) -> None:
        await self._models.sleep(rest)
        answering = self._answering
        try:
            with suppress(CompleterError):
                if answering.permission.settings.read_ahead == "plugged_in" and _on_battery():
                    return
                document = self._workspace.documents.get(uri)
                if document is None or offset > len(document) or answering.flight.running is not None:
                    return
                place = Request("fill", document, offset, Trigger.CURSOR, document.revision)
                if answering.permission.forbidden(place, answering.state(uri)) is not None:
                    return
                answering.debounce.rest()
                if not self._goes_on(document, offset):
                    self._workspace.history.settle()  # as the next key would: prompts show settled edits
                snapshot = await answering.snapshot(place, info)
                if snapshot is not None:
                    await self._source.read_ahead(snapshot)
                    self._last_key = self._key(uri, offset)
        except Exception as error:  # noqa: BLE001 (nobody waits for it: it must not end the session)
            LOG.error("reading ahead ended with %s", type(error).__name__)  # noqa: TRY400 (an error may quote the text)


def _on_battery() -> bool:
    import psutil  # takes 10 ms, which the start of an editor must not wait for

    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    return battery is not None and battery.power_plugged is False
