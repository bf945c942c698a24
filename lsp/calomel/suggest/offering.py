"""From a decision to the suggestion that the editor gets, without flicker and without what was rejected."""

from __future__ import annotations

from dataclasses import replace

from calomel.selectivity.filters import OF_PAST, fired
from calomel.selectivity.proposal import Proposal
from calomel.suggest.cache import Entry
from calomel.suggest.edit import (
    Planned,
    Suggestion,
    TextEdit,
    at_cursor,
    edits_of,
    grouped,
    joined,
    row_of,
    utf16_length,
)
from calomel.suggest.judging import MOST_OTHERS, Decision, words_of
from calomel.suggest.offers import Offer, Outcome
from calomel.suggest.question import Selected
from calomel.suggest.session import Asked, Session
from calomel.suggest.silence import SilenceReason
from calomel.workspace.languages import builtin_names


def offered(session: Session, asked: Asked, entry: Entry) -> Suggestion | SilenceReason:
    """Offer what comes first of an answer whose edits fit the document's text; or say why not.

    An edit's answer is offered in groups of what belongs together. The rest follows, from the same answer.
    """
    decision, edits = entry.decision, entry.edits or ()
    if isinstance(decision, SilenceReason):
        return decision
    document, text, ledger = asked.document, asked.document.text, session.ledger
    chosen, *rest = _groups(asked, edits) or ((),)
    if not chosen:
        return SilenceReason.STALE
    if not asked.explicit and session.rejections.has(document.uri, text, chosen):
        return SilenceReason.REJECTED_BEFORE
    visible = ledger.visible(document.uri, asked.kind)
    stays = not asked.explicit and asked.selected is None and visible is not None
    if stays and visible is not None and not _gives_way(asked, visible, chosen):
        chosen = chosen if _against_past(session, asked, visible.edits) else visible.edits
    against = _against_past(session, asked, chosen)
    if against is not None:
        return against
    delivered = edits_of(chosen)
    if asked.selected is not None:
        around = _around(text, chosen, asked.selected)
        if around is None:
            return SilenceReason.DISAGREES_WITH_SELECTED
        delivered = (around,)
    entry.total = max(entry.total, 1 + len(rest))
    found = _given(session, asked, decision, chosen, delivered)
    ledger.follows(document.uri, tuple(edit for group in rest for edit in group))
    return replace(found, total=entry.total, rest=tuple(map(edits_of, rest)))


def others(session: Session, asked: Asked, first: Suggestion) -> tuple[Suggestion, ...]:
    """What may be inserted at the cursor instead of `first`, likeliest first."""
    document, text = asked.document, asked.document.text
    kept = [*session.cache.every(document.uri, asked.kind, text, asked.offset)]
    distinct: dict[object, tuple[Decision, tuple[Planned, ...]]] = {}
    for entry in kept if len(kept) > 1 else ():
        decision, chosen = entry.decision, entry.edits or ()
        if isinstance(decision, Decision) and not session.rejections.has(document.uri, text, chosen):
            distinct.setdefault(words_of(chosen), (decision, chosen))
    if not distinct:
        return ()
    distinct.pop(words_of(first.edits), None)
    likeliest = sorted(distinct.values(), key=lambda each: -each[0].probability)[:MOST_OTHERS]
    return tuple(
        _given(session, asked, decision, chosen, edits_of(chosen), beside=True) for decision, chosen in likeliest
    )


def _given(
    session: Session,
    asked: Asked,
    decision: Decision,
    chosen: tuple[Planned, ...],
    delivered: tuple[TextEdit, ...],
    *,
    beside: bool = False,
) -> Suggestion:
    """The suggestion for the editor; it keeps its id if the editor has it already."""
    document, text, ledger = asked.document, asked.document.text, session.ledger
    given = joined(text, delivered).text
    offer = ledger.same(document.uri, asked.kind, chosen)
    if offer is None:
        known = ledger.held_back.taken_over(document.uri, asked.kind, chosen, text)
        offer = Offer(_outcome(session, asked, decision, chosen, given, known), chosen, beside=beside)
        ledger.give(offer)
    elif offer.beside and not beside:
        offer.beside = False
        ledger.give(offer)
    offer.outdated = False
    if offer.outcome.text != given:
        offer.outcome, offer.taken = replace(offer.outcome, text=given, length=utf16_length(given)), 0
    return Suggestion(
        id=offer.outcome.id,
        uri=document.uri,
        version=document.version,
        revision=document.revision,
        kind=asked.kind,
        edits=delivered,
        probability=offer.outcome.probability,
        cursor_after=_cursor_after(delivered),
        candidate=decision.proposed.candidate,
    )


def hold_back(session: Session, asked: Asked, decision: Decision, reason: SilenceReason) -> None:
    """Follow what is not offered, to learn its outcome; its edits are edits of the document's text."""
    document, text = asked.document, asked.document.text
    chosen = next(iter(_groups(asked, decision.edits)), ())
    # What was rejected would not be shown at any threshold, and what is visible is shown already.
    if not chosen or session.rejections.has(document.uri, text, chosen):
        return
    visible = session.ledger.visible(document.uri, asked.kind)
    if visible is None or visible.edits != chosen:
        outcome = _outcome(session, asked, decision, chosen, joined(text, edits_of(chosen)).text)
        outcome = replace(outcome, outcome="withheld", reason=str(reason))
        threshold = session.source.filter.threshold(asked.kind, document.language_id)
        session.ledger.held_back.hold(outcome, chosen, text, threshold)


def _outcome(
    session: Session,
    asked: Asked,
    decision: Decision,
    chosen: tuple[Planned, ...],
    given: str,
    known: str | None = None,
) -> Outcome:
    """The outcome template of a suggestion with the edits `chosen` and the insert text `given`."""
    return Outcome(
        id=known or f"{session.rng.getrandbits(64):016x}",
        outcome="shown",
        reason="",
        kind=asked.kind,
        uri=asked.document.uri,
        language_id=asked.document.language_id,
        trigger=str(asked.trigger),
        model=session.source.model_id,
        probability=decision.probability,
        visible_seconds=0.0,
        length=utf16_length(given),
        accepted_length=0,
        text=given,
        signals=decision.signals.about(chosen),
        maker=decision.maker,
    )


def _against_past(session: Session, asked: Asked, edits: tuple[Planned, ...]) -> SilenceReason | None:
    """Why the last edits made an answer invalid: it undoes one of them, or continues an undone one."""
    if asked.kind != "edit":
        return None
    past = session.past(asked.document)
    if not (past.edited or past.withdrawn):
        return None
    proposal = Proposal(
        asked.kind, asked.document.text, edits_of(edits), asked.offset, edited=past.edited, withdrawn=past.withdrawn
    )
    refused = next(fired(proposal, OF_PAST), None)
    return None if refused is None else SilenceReason(refused)


def _groups(asked: Asked, edits: tuple[Planned, ...]) -> tuple[tuple[Planned, ...], ...]:
    """Which of `edits` to offer at the cursor, and which after that; none if they belong elsewhere now.

    What is on the cursor's line comes first, then all others in the order of the text.
    """
    document, cursor = asked.document, asked.offset
    if asked.kind == "fill":
        fits = edits and (asked.selected is not None or edits[0].start == cursor)
        return (edits,) if fits else ()
    text = document.text
    row, usual = row_of(text, cursor), builtin_names(document.language_id, document.path) or ()
    groups = grouped(text, edits, usual)
    here = [each for each in groups if row_of(text, each[0].start) <= row <= row_of(text, each[-1].end)][:1]
    first, *rest = (*here, *(each for each in groups if each not in here))
    return at_cursor(text, first, cursor), *rest


def _gives_way(asked: Asked, visible: Offer, chosen: tuple[Planned, ...]) -> bool:
    """Whether the visible suggestion may be replaced.

    One that still agrees with the text stays, unless the new one only extends it: one edit at the same place whose text
    starts with the shown one. The rule is Zed's.
    """
    fits = all(edit.fits(asked.document.text) for edit in visible.edits)
    elsewhere = asked.kind == "fill" and visible.edits[0].start != asked.offset
    if visible.outdated or visible.edits == chosen or not fits or elsewhere:
        return True
    if len(visible.edits) != 1 or len(chosen) != 1:
        return False
    old, new = visible.edits[0], chosen[0]
    return (old.start, old.end) == (new.start, new.end) and new.text.startswith(old.text)


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


def _cursor_after(edits: tuple[TextEdit, ...]) -> int:
    """The end of the last edit, in the text after all of them."""
    return edits[-1].start + sum(len(edit.text) - (edit.end - edit.start) for edit in edits[:-1]) + len(edits[-1].text)
