"""How an answer is found: first the cache, then, after a pause in the typing, the model."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from calomel.code.budget import Budget, SpentError
from calomel.code.names import names_of
from calomel.infer.client import PATIENCE, ended
from calomel.infer.completer import FIRST_LINE, GROWING, CompleteAnswer, CompleterError, Kind, ModelInfo
from calomel.infer.models import RULES, Models
from calomel.prompts.next_edit import region_called
from calomel.prompts.parts import Hunk, RegionBounds, region_around
from calomel.selectivity.filters import FILTERS
from calomel.suggest.cache import Entry
from calomel.suggest.candidates import DEADLINE, CandidateSource, context_tokens
from calomel.suggest.chain import whole_rename
from calomel.suggest.drafts.propose import continuation
from calomel.suggest.drafts.rename import MAKER as RENAME
from calomel.suggest.edit import Answer, Suggestion
from calomel.suggest.elsewhere import drafts_elsewhere, others_of
from calomel.suggest.judging import Answered, Judged
from calomel.suggest.offering import Offering
from calomel.suggest.pace import Cooldown, Debounce, Latency, ModelRun, Permission, SingleFlight
from calomel.suggest.recent import Past, past_of, standing
from calomel.suggest.search import next_edits
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.snapshot import Request, Snapshot, Trigger
from calomel.suggest.state import DocumentState
from calomel.workspace.documents import Document, Origin
from calomel.workspace.history import prompt_path
from calomel.workspace.longest_match import LongestMatch
from calomel.workspace.workspace import Workspace

# Times the usual latency that a question is kept whose client has gone on typing.
_USUAL: Final = 2.0
# Seconds of a turn of the event loop for what another document may need.
_TURN: Final = 0.03
# Seconds that a model usually takes that is asked how many places a rename has.
_QUICK: Final = 0.5
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


class Answering:
    """Answers the requests of one editor; what it finds is offered.

    Attributes:
        permission: whether it may.
        offering: makes suggestions.
        flight: the question that the model is asked now.
        debounce: the rhythm of typing.
        asked: how many questions reached the model.
        counted: called with the document's URI when more is known of how many edits its answer has.
        shows_text: the editor also asks for text at the cursor, so next edits need not cover that.
        extended: called with the URI of a document in which the text that is shown goes on, and with the text's name;
            None for an editor that asks only once.
    """

    def __init__(
        self,
        workspace: Workspace,
        models: Models,
        source: CandidateSource,
        permission: Permission,
        offering: Offering,
        cooldown: Cooldown,
    ) -> None:
        self.permission = permission
        self.offering = offering
        self.flight = SingleFlight(models.clock)
        self.debounce = Debounce(models.clock, permission.settings.debounce_seconds)
        self.asked = 0
        self.shows_text = False
        self.extended: Callable[[str, str], None] | None = None
        self.counted: Callable[[str], None] = lambda _: None
        self._counting: asyncio.Task[None] | None = None
        self._workspace = workspace
        self._models = models
        self._latencies: defaultdict[str, Latency] = defaultdict(Latency)
        self._source = source
        self._cooldown = cooldown
        index = None if workspace.related is None else workspace.related.index
        self._matches = LongestMatch(index=index, permits=workspace.permits, shows=workspace.shows)
        self._states: dict[str, DocumentState] = {}
        workspace.listeners.append(self._matches)
        for document in workspace.documents.values():
            self._matches.opened(document)

    def latency(self, kind: Kind) -> Latency:
        """Of the last answers of the model that these questions go to."""
        info = self._models.asked(kind).info
        return self._latencies["" if info is None else info.weights]

    def state(self, uri: str) -> DocumentState:
        """What is known of a document, carried forward to its text; what is too old for that is forgotten."""
        document, state = self._workspace.documents.get(uri), self._states.get(uri)
        if state is None:
            state = self._states[uri] = DocumentState(self._models.clock)
        if document is not None and not state.follow(document):
            state = self._states[uri] = DocumentState(self._models.clock, document.revision)
        return state

    def forget(self, uri: str) -> None:
        """A document was closed, or replaced as a whole."""
        self._states.pop(uri, None)

    def clear(self) -> None:
        """Drop all cached answers."""
        for state in self._states.values():
            state.cache.clear()

    async def aclose(self) -> None:
        """Cancel running work."""
        if self._counting is not None:
            await ended(self._counting)
        if self._matches in self._workspace.listeners:
            self._workspace.listeners.remove(self._matches)
        await self.flight.aclose()

    async def answer(self, request: Request) -> Answer:
        """Text for the cursor or the next edit, or why there is none."""
        uri, document, selected = request.document.uri, request.document, request.selected
        await self._workspace.settled(document)
        refusal = self.permission.forbidden(request, self.state(uri))
        if refusal is not None:
            return refusal
        if request.version is not None and document.version is not None and request.version != document.version:
            return Silence.of(SilenceReason.STALE)
        if selected is not None and not 0 <= selected.start <= request.offset <= selected.end <= len(document):
            return Silence.of(SilenceReason.DISAGREES_WITH_SELECTED)
        visible = self.offering.ledger.visible(uri, "fill")
        if request.kind == "fill" and visible is not None and visible.edits[0].start != request.offset:
            self.offering.ledger.moved_away(uri, "fill")
        hunks = self._last_edits(document) if request.kind == "edit" else ()
        if hunks and not standing(document.text, hunks, prompt_path(document)):
            self.state(uri).cache.clear("edit")
        answer = self._cached(request) or self.permission.unwelcome(request, self.state(uri))
        waited = 0.0
        if answer is None:
            began = self._models.clock()
            answer = await self._kept(request) or await self._pause(request)
            waited = self._models.clock() - began
        if answer is None:
            answer = await self._from_model(request)
        return replace(await self._completed(request, answer), waited=waited)

    async def _completed(self, request: Request, answer: Answer) -> Answer:
        """Add the alternatives; where nothing is left to do in this document, look in the other open ones."""
        if isinstance(answer, Suggestion):
            alone = request.kind == "edit" or request.selected is not None
            state = self.state(request.document.uri)
            return answer if alone else replace(answer, others=self.offering.others(request, state, answer))
        left = request.elsewhere and answer.reason in _NOTHING_LEFT
        return (await self._elsewhere(request) if left else None) or answer

    async def _elsewhere(self, request: Request) -> Suggestion | None:
        """The next edit in one of the other open documents, the most recently used first."""
        document, workspace, revision = request.document, self._workspace, request.document.revision
        undone = workspace.history.latest(document.uri) is Origin.UNDO
        hunks = () if undone else standing(document.text, self._last_edits(document), prompt_path(document))
        for other in others_of(workspace.documents, document) if hunks else ():
            await asyncio.sleep(0)
            if document.revision != revision:
                return None
            if not workspace.shows(other):
                continue
            try:
                proposed = Budget(_TURN).run(drafts_elsewhere, other, hunks)
            except SpentError:
                continue
            state = self.state(other.uri)
            now = other.revision, proposed
            if not proposed or state.unlikely == now:
                continue
            there = Request("edit", other, proposed[0].start, Trigger.EDIT, other.revision, drafts=proposed)
            if self.permission.forbidden(there, state) is not None:
                continue
            answer = self._cached(there)
            if not isinstance(answer, Suggestion):
                # A silence cached there was decided without these edits.
                state.cache.clear("edit")
                answer = await self._from_model(there)
            if isinstance(answer, Suggestion):
                return answer if (document.revision, other.revision) == (revision, now[0]) else None
            state.unlikely = now
        return None

    def _cached(self, request: Request) -> Answer | None:
        """The cached answer; None without one."""
        entry = self.state(request.document.uri).cache.find(request.kind, request.document.text, request.offset)
        if entry is None:
            return None
        if isinstance(entry.decision, SilenceReason):
            return None if request.explicit or request.selected is not None else Silence.of(entry.decision)
        result = self._offered(request, entry)
        if isinstance(result, Suggestion):
            if request.kind == "fill":
                self.flight.in_vain = 0
            return replace(result, cached=True)
        return None if result in _ASK_AGAIN else Silence.of(result)

    def _offered(self, request: Request, entry: Entry) -> Suggestion | SilenceReason:
        past = self._past(request.document) if request.kind == "edit" else Past()
        return self.offering.offered(request, self.state(request.document.uri), past, entry)

    async def _kept(self, request: Request) -> Answer | None:
        """What the question before finds, as long as that may be what is typed."""
        if request.explicit or request.kind == "edit":
            return None
        while (run := self.flight.kept(request.offset)) is not None:
            await asyncio.wait({run.task})
            if not self._is_current(request):
                return None
            answer = self._cached(request)
            if answer is not None:
                return answer
            self.flight.in_vain += 1
        return None

    async def _pause(self, request: Request) -> Answer | None:
        """Wait while more typing is likely; returns an answer if the question before finds a fitting one meanwhile."""
        latency = self.latency(request.kind).quantile(0.5) or 0.0
        wait = 0.0 if request.explicit else self.debounce.wait(request.before, latency, self._cooldown.patience)
        if wait <= 0.0:
            return None
        timer = asyncio.ensure_future(self._models.sleep(wait))
        try:
            inherited = self.flight.inherited
            if inherited is not None:
                await asyncio.wait({timer, inherited}, return_when=asyncio.FIRST_COMPLETED)
                if not timer.done() and self._is_current(request):
                    answer = self._cached(request)
                    if answer is not None:
                        return answer
            await asyncio.wait({timer})
            return None
        finally:
            await ended(timer)

    async def _from_model(self, request: Request) -> Answer:
        """Ask the model once it is loaded, and offer what it finds; without a model, what the rules find."""
        try:
            info = await self._models.asked(request.kind).ready(PATIENCE)
        except CompleterError as error:
            if request.kind != "edit" or error.code == "loading":
                return _failure(error)
            answer = await self._asked(request, RULES)
            return answer if isinstance(answer, Suggestion) else _failure(error)
        return await self._asked(request, info)

    async def _asked(self, request: Request, info: ModelInfo) -> Answer:
        document = request.document
        self._know(info, request.kind)
        snapshot = await self.snapshot(request, info)
        # The change that came in between is followed by a question of its own.
        if snapshot is None:
            return Silence.of(SilenceReason.STALE)
        # What is asked now comes before how many edits an earlier answer has.
        if self._counting is not None:
            await ended(self._counting)
        work = partial(self._entry, request, snapshot)
        usual = self.latency(request.kind).quantile(0.5)
        patience = DEADLINE if usual is None else min(DEADLINE, _USUAL * usual)
        entry = await self.flight.run(request, work, patience)
        if isinstance(entry, CompleteAnswer):
            line = await self._first_line(request, snapshot, entry)
            if isinstance(line, Suggestion):
                return line
            entry = await self.flight.rest()
        if isinstance(entry, Silence):
            return replace(entry, asked=True)
        result: Suggestion | SilenceReason = SilenceReason.STALE
        if isinstance(entry.decision, SilenceReason):
            result = entry.decision
        elif entry.edits and all(edit.fits(document.text) for edit in entry.edits) and self._is_open(document):
            result = self._offered(request, entry)
        return Silence.of(result, asked=True) if isinstance(result, SilenceReason) else result

    async def _first_line(self, request: Request, snapshot: Snapshot, answer: CompleteAnswer) -> Answer:
        """Offer the first line of a text that the model goes on writing."""
        decision = await self._source.first_line(snapshot, answer)
        if not isinstance(decision, Judged) or decision.reason is not None or not self._is_current(request):
            return Silence.of(SilenceReason.STALE)
        if self.flight.running is None:
            # All of it came meanwhile.
            return Silence.of(SilenceReason.SUPERSEDED)
        window = region_around(snapshot.text, request.offset, RegionBounds())
        entry = Entry(request.kind, request.offset, decision, window, model=snapshot.info.id)
        result = self._offered(request, entry)
        if isinstance(result, SilenceReason):
            return Silence.of(result)
        self.state(request.document.uri).cache.put(snapshot.text, entry, 0)
        return result

    def _know(self, info: ModelInfo, kind: Kind) -> None:
        """Which model decides about which kind: text that finishes an edit is the other one's."""
        knows = self._source.filter.know
        if self._models.edits is None and info is not RULES:
            knows(info)
            return
        knows(info, [kind])
        text = self._models.text.info
        if kind == "edit" and text is not None:
            knows(text, ["fill"])

    async def snapshot(self, request: Request, info: ModelInfo) -> Snapshot | None:
        """All that an answer depends on; None if the document was changed, closed or replaced since the request."""
        document, workspace, settings = request.document, self._workspace, self.permission.settings
        if workspace.syntax is not None:
            await workspace.syntax.parse(document)
        await workspace.look_for_secrets()
        if not self._is_current(request):
            return None
        situation = workspace.situation(document.uri, request.offset)
        if situation is None:
            return None
        state, path, edits = self.state(document.uri), prompt_path(document), request.kind == "edit"
        hunks: tuple[Hunk, ...] = ()
        if edits and request.drafts is None and workspace.history.latest(document.uri) is not Origin.UNDO:
            hunks = self._last_edits(document)
        # What a model made of a region that it was trained to rewrite is whole: rules go on with what the person did.
        trained = self._source.filter.known["edit"].source.kind in {"edits", "hosted"}
        extended = edits and request.drafts is None and "edit" in info.kinds and state.extended
        state.extended = state.extended and not extended
        return Snapshot(
            situation=replace(situation, pauses=self.debounce.pauses),
            trigger=request.trigger,
            info=info,
            path=path,
            recent=state.recent.recent(),
            since_edit=state.recent.age,
            decisions=self._cooldown.counts,
            max_tokens=settings.max_tokens,
            context_tokens=context_tokens(info, settings.context_tokens, settings.max_tokens),
            region=info.region if info.region != RegionBounds() else region_called(info.id),
            past=self._past(document),
            own=tuple(hunk for hunk in hunks if hunk.path == path),
            hunks=tuple(hunk for hunk in hunks if not (trained and hunk.predicted)),
            making=workspace.history.open_edit() if edits else (),
            selected=request.selected,
            diagnostics=request.diagnostics,
            drafts=request.drafts,
            names=names_of(document.language_id, document.path),
            place=self.permission.place(request),
            code=None if workspace.syntax is None else workspace.syntax.snapshot(document),
            lines=settings.lines,
            extended=extended,
            secrets=frozenset(workspace.values()),
            finishing=info is not RULES
            and request.drafts is None
            and (not self.shows_text or request.trigger is not Trigger.EDIT),
        )

    def _last_edits(self, document: Document) -> tuple[Hunk, ...]:
        """The last edits of all documents, newest last, including the one in progress in this document."""
        history, path = self._workspace.history, prompt_path(document)
        return (*history.settled(), *(hunk for hunk in history.open_edit() if hunk.path == path))

    def _past(self, document: Document) -> Past:
        """What the last edits of a document did."""
        return past_of(document.text, self._last_edits(document), prompt_path(document))

    def _is_open(self, document: Document) -> bool:
        return self._workspace.documents.get(document.uri) is document

    def _is_current(self, request: Request) -> bool:
        """Whether the document still has the text that it is asked about."""
        return self._is_open(request.document) and request.document.revision == request.revision

    async def _found(self, request: Request, snapshot: Snapshot, run: ModelRun) -> Answered:
        GROWING.set(run.grows)
        if request.kind == "edit":
            return (await next_edits(self._source, snapshot))[0]
        if request.selected is None:
            seen = continuation(self._matches, request.document, request.offset)
            snapshot = replace(snapshot, continuing=seen)
            if self.extended is not None and not request.explicit:
                FIRST_LINE.set(run.begins)
        return await self._source.fill(snapshot)

    async def _entry(self, request: Request, snapshot: Snapshot, run: ModelRun) -> Entry | Silence:
        """Ask the model and cache its answer; a silence if it could not answer."""
        # It follows the changes from here on; those before, while another question ran, are missing from its snapshot.
        if not self._is_current(request):
            return Silence.of(SilenceReason.STALE)
        began, document = self._models.clock(), request.document
        self.asked += snapshot.info is not RULES
        try:
            answer = await self._found(request, snapshot, run)
        except CompleterError as error:
            return _failure(error)
        if snapshot.info is not RULES:
            self._latencies[snapshot.info.weights].add(self._models.clock() - began)
        model, state = snapshot.info.id, self.state(document.uri)
        if isinstance(answer, Judged) and answer.reason is not None:
            # After a change, another question follows and finds it again in the new text.
            if self._is_open(document) and not run.outdated:
                self.offering.hold_back(request, state, answer, model)
            answer = answer.reason
        # How far the cursor may move before the suggestion goes; the same for models with a small region.
        window = region_around(snapshot.text, request.offset, RegionBounds())
        every = (answer, *(answer.others if isinstance(answer, Judged) else ()))
        entries = [Entry(request.kind, request.offset, each, window, model=model) for each in every]
        for rank, entry in reversed([*enumerate(entries)]):
            if request.selected is None and (request.drafts is None or isinstance(answer, Judged)):
                # With a selected item, the answer is for a text that the document does not have: do not cache it. Nor
                # cache a silence where only drafts were judged: the model may still have something there.
                state.cache.put(snapshot.text, entry, rank)
            state.carried(entry, document, run.revision)
        if run.line.done():
            self._extend(document, entries[0])
        self._count_soon(request, entries[0], snapshot)
        return entries[0]

    def _extend(self, document: Document, entry: Entry) -> None:
        """Tell the editor if an answer is what it shows, and more."""
        shown = self.offering.extends(document, entry)
        if shown is not None and self.extended is not None:
            self.extended(document.uri, shown)

    def _count_soon(self, request: Request, entry: Entry, snapshot: Snapshot) -> None:
        """Find out how many places a rename has, while the user looks at the first one."""
        answer, document = entry.decision, request.document
        if request.kind != "edit" or request.drafts is not None or not isinstance(answer, Judged):
            return
        hosted = self._source.filter.known["edit"].source.kind == "hosted"
        usual = self.latency("edit").quantile(0.5) or 0.0
        if answer.maker == RENAME and "edit" in snapshot.info.kinds and usual <= _QUICK and not hosted:
            self._counting = asyncio.create_task(self._count(entry, answer, snapshot, document, document.revision))

    async def _count(self, entry: Entry, answer: Judged, snapshot: Snapshot, document: Document, revision: int) -> None:
        def still() -> bool:
            return self._is_open(document) and document.revision == revision and entry.edits == answer.edits

        whole = await whole_rename(self._source, snapshot, answer, still) if still() else None
        if whole is not None and still():
            entry.decision, entry.original, entry.edits = whole, whole.edits, whole.edits
            self.state(document.uri).cache.put(snapshot.text, entry)
            self.counted(document.uri)


def _failure(error: CompleterError) -> Silence:
    return Silence.of(_REASONS.get(error.code, SilenceReason.FAILED), str(error))
