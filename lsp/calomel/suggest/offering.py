"""From a decision to the suggestion that the editor gets, without flicker and without what was rejected."""

from __future__ import annotations

import random
from dataclasses import replace

from calomel.code.languages import builtin_names
from calomel.code.names import names_of
from calomel.prompts.parts import row_of
from calomel.selectivity.filters import OF_PAST, fired
from calomel.selectivity.proposal import Proposal
from calomel.suggest.cache import Entry
from calomel.suggest.edit import Suggestion, at_cursor, grouped, rows_between, to_its_end
from calomel.suggest.judging import MOST_OTHERS, Judged, SuggestionFilter, words_of
from calomel.suggest.ledger import Ledger
from calomel.suggest.offers import Offer, Outcome
from calomel.suggest.recent import Past
from calomel.suggest.silence import SilenceReason
from calomel.suggest.snapshot import Request, Selected
from calomel.suggest.state import DocumentState
from calomel.workspace.documents import Document, utf16_length
from calomel.workspace.edits import Planned, TextEdit, edits_of, joined, slid


class Offering:
    """Makes the suggestions of one editor.

    Args:
        ledger: of what the editor has.
        filter: knows the thresholds.
        rng: names suggestions.
    """

    def __init__(self, ledger: Ledger, filter: SuggestionFilter, rng: random.Random) -> None:  # noqa: A002 (what it is)
        self.ledger = ledger
        self._filter = filter
        self._rng = rng

    def offered(self, request: Request, state: DocumentState, past: Past, entry: Entry) -> Suggestion | SilenceReason:
        """Offer what comes first of an answer whose edits fit the document's text; or say why not.

        An edit's answer is offered in groups of what belongs together. The rest follows, from the same answer.
        """
        decision, edits = entry.decision, entry.edits or ()
        if isinstance(decision, SilenceReason):
            return decision
        document, text, ledger = request.document, request.document.text, self.ledger
        groups = _groups(request, edits)
        chosen = next(iter(groups), ())
        if not chosen:
            return SilenceReason.STALE
        if not request.explicit and state.rejected(text, chosen):
            return SilenceReason.REJECTED_BEFORE
        visible = ledger.visible(document.uri, request.kind)
        stays = not request.explicit and request.selected is None and visible is not None
        outdated = visible is not None and state.continued(visible.strayed)
        if stays and visible is not None and not outdated and not _gives_way(request, visible, chosen):
            chosen = chosen if _against_past(request, past, visible.edits) else visible.edits
        against = _against_past(request, past, chosen)
        if against is None and visible is None and _saves_nothing(request, chosen):
            against = SilenceReason.SAVES_NOTHING
        if against is not None:
            return against
        delivered = edits_of(chosen)
        if request.selected is not None:
            around = _around(text, chosen, request.selected)
            if around is None:
                return SilenceReason.DISAGREES_WITH_SELECTED
            delivered = (around,)
        # What stays visible need not be what comes first of this answer.
        left = tuple(edit for edit in edits if not _meets(text, (edit,), chosen))
        rest = _groups(request, left) if left else ()
        entry.total = max(entry.total, 1 + len(rest))
        suggestion = self._given(request, decision, entry.model, chosen, delivered)
        ledger.follows(document.uri, tuple(edit for group in rest for edit in group))
        return replace(suggestion, total=entry.total, rest=tuple(map(edits_of, rest)))

    def extends(self, document: Document, entry: Entry) -> str | None:
        """The name of the text that is shown in a document, if an answer is the same text with more behind it."""
        visible, edits = self.ledger.visible(document.uri, "fill"), entry.edits or ()
        goes_on = visible is not None and _goes_on(visible.edits, edits) and visible.edits != edits
        judged = isinstance(entry.decision, Judged) and entry.decision.reason is None
        return visible.outcome.id if visible is not None and goes_on and judged else None

    def others(self, request: Request, state: DocumentState, first: Suggestion) -> tuple[Suggestion, ...]:
        """What may be inserted at the cursor instead of `first`, likeliest first."""
        text = request.document.text
        kept = [*state.cache.every(request.kind, text, request.offset)]
        distinct: dict[object, tuple[Judged, str, tuple[Planned, ...]]] = {}
        for entry in kept if len(kept) > 1 else ():
            decision, chosen = entry.decision, entry.edits or ()
            if isinstance(decision, Judged) and not state.rejected(text, chosen):
                distinct.setdefault(words_of(chosen), (decision, entry.model, chosen))
        if not distinct:
            return ()
        distinct.pop(words_of(first.edits), None)
        likeliest = sorted(distinct.values(), key=lambda each: -each[0].probability)[:MOST_OTHERS]
        return tuple(
            self._given(request, decision, model, chosen, edits_of(chosen), beside=True)
            for decision, model, chosen in likeliest
        )

    def hold_back(self, request: Request, state: DocumentState, decision: Judged, model: str) -> None:
        """Follow what is not offered, to learn its outcome; its edits are edits of the document's text."""
        document, text = request.document, request.document.text
        chosen = next(iter(_groups(request, decision.edits)), ())
        # What was rejected would not be shown at any threshold, and what is visible is shown already.
        if not chosen or state.rejected(text, chosen):
            return
        visible = self.ledger.visible(document.uri, request.kind)
        if visible is None or visible.edits != chosen:
            outcome = self._outcome(request, decision, model, chosen, joined(text, edits_of(chosen)).text)
            outcome = replace(outcome, outcome="withheld", reason=str(decision.reason))
            threshold = self._filter.threshold(request.kind, document.language_id)
            self.ledger.held_back.hold(outcome, chosen, document, threshold)

    def _given(
        self,
        request: Request,
        decision: Judged,
        model: str,
        chosen: tuple[Planned, ...],
        delivered: tuple[TextEdit, ...],
        *,
        beside: bool = False,
    ) -> Suggestion:
        """The suggestion for the editor; it keeps its id if the editor has it already."""
        document, text, ledger = request.document, request.document.text, self.ledger
        given = joined(text, delivered).text
        offer = ledger.same(document.uri, request.kind, chosen)
        visible = ledger.visible(document.uri, request.kind)
        if offer is None and request.kind == "fill" and visible is not None and _goes_on(visible.edits, chosen):
            offer, visible.edits = visible, chosen
        if offer is None:
            suggestion_id = ledger.held_back.taken_over(document, request.kind, chosen)
            outcome = self._outcome(request, decision, model, chosen, given, suggestion_id)
            offer = Offer(outcome, chosen, beside=beside)
            ledger.give(offer)
        elif offer.beside and not beside:
            offer.beside = False
            ledger.give(offer)
        offer.strayed.clear()
        if offer.outcome.text != given:
            offer.outcome, offer.taken = replace(offer.outcome, text=given, length=utf16_length(given)), 0
        whole = to_its_end(text, joined(text, delivered), names_of(document.language_id, document.path))
        return Suggestion(
            id=offer.outcome.id,
            uri=document.uri,
            revision=document.revision,
            kind=request.kind,
            edits=delivered,
            probability=offer.outcome.probability,
            cursor_after=whole.start + len(whole.text),
            candidate=decision.candidate,
        )

    def _outcome(
        self,
        request: Request,
        decision: Judged,
        model: str,
        chosen: tuple[Planned, ...],
        given: str,
        suggestion_id: str | None = None,
    ) -> Outcome:
        """The outcome template of a suggestion with the edits `chosen` and the insert text `given`."""
        return Outcome(
            id=suggestion_id or f"{self._rng.getrandbits(64):016x}",
            outcome="shown",
            reason="",
            kind=request.kind,
            uri=request.document.uri,
            language_id=request.document.language_id,
            trigger=str(request.trigger),
            model=model,
            probability=decision.probability,
            visible_seconds=0.0,
            length=utf16_length(given),
            accepted_length=0,
            text=given,
            signals=decision.signals.about(chosen),
            maker=decision.maker,
        )


def _against_past(request: Request, past: Past, edits: tuple[Planned, ...]) -> SilenceReason | None:
    """Why the last edits made an answer invalid: it undoes one of them, or continues an undone one."""
    if request.kind != "edit" or not (past.edited or past.withdrawn):
        return None
    proposal = Proposal(
        request.kind,
        request.document.text,
        edits_of(edits),
        request.offset,
        edited=past.edited,
        withdrawn=past.withdrawn,
    )
    refused = next(fired(proposal, OF_PAST), None)
    return None if refused is None else SilenceReason(refused)


def _groups(request: Request, edits: tuple[Planned, ...]) -> tuple[tuple[Planned, ...], ...]:
    """Which of `edits` to offer at the cursor, and which after that; none if they belong elsewhere now.

    What is on the cursor's line comes first, then what is nearest to it, below before above.
    """
    document, cursor = request.document, request.offset
    if request.kind == "fill":
        fits = edits and (request.selected is not None or edits[0].start == cursor)
        return (edits,) if fits else ()
    text = document.text
    row, usual = row_of(text, cursor), builtin_names(document.language_id, document.path) or ()
    groups = grouped(text, edits, usual)

    def away(group: tuple[Planned, ...]) -> tuple[int, bool]:
        rows = row_of(text, group[0].start), row_of(text, group[-1].end)
        return rows_between(rows, row), rows[0] < row

    first, *rest = sorted(groups, key=away)
    return at_cursor(text, first, cursor), *rest


def _meets(text: str, edits: tuple[Planned, ...], others: tuple[Planned, ...]) -> bool:
    """Whether some of `edits` are at places of `others`, or would be if they were written there."""
    return any(
        edit.start <= other.end and other.start <= edit.end
        for other in others
        for edit in (slid(each, text, other.start) for each in edits)
    )


def _gives_way(request: Request, visible: Offer, chosen: tuple[Planned, ...]) -> bool:
    """Whether the visible suggestion may be replaced.

    One that still agrees with the text stays, unless the new one only extends it: one edit at the same place whose text
    starts with the shown one. The rule is Zed's.
    """
    fits = all(edit.fits(request.document.text) for edit in visible.edits)
    elsewhere = request.kind == "fill" and visible.edits[0].start != request.offset
    if visible.edits == chosen or not fits or elsewhere:
        return True
    return _goes_on(visible.edits, chosen)


def _goes_on(shown: tuple[Planned, ...], new: tuple[Planned, ...]) -> bool:
    """Whether edits are the one that is shown, with the same text or more behind it."""
    if len(shown) != 1 or len(new) != 1:
        return False
    one, other = shown[0], new[0]
    return (one.start, one.end) == (other.start, other.end) and other.text.startswith(one.text)


def _around(text: str, chosen: tuple[Planned, ...], selected: Selected) -> TextEdit | None:
    """The suggestion as a replacement of what the selected completion item replaces; None if they disagree.

    Editors show only such suggestions while their completion popup is open.
    """
    edit = chosen[0]
    if len(chosen) != 1 or edit.start < selected.start or edit.start > selected.end:
        return None
    end = max(edit.end, selected.end)
    whole = text[selected.start : edit.start] + edit.text + text[edit.end : end]
    return TextEdit(selected.start, end, whole) if whole.startswith(selected.text) else None


def _saves_nothing(request: Request, edits: tuple[Planned, ...]) -> bool:
    """Whether typing what appears unasked takes no more keys than accepting it does."""
    unasked = request.kind == "fill" and not request.explicit and request.selected is None
    return unasked and len(edits) == 1 and not edits[0].removed and len(edits[0].text) == 1
