"""From a kept answer to the suggestion that the editor gets, without flicker and without what was rejected."""

from __future__ import annotations

from collections.abc import Sequence

from calomel.selectivity.filters import OF_PAST, fired
from calomel.selectivity.proposal import Proposal
from calomel.suggest.cache import Entry
from calomel.suggest.completer import Kind
from calomel.suggest.edit import (
    JUMP_ROWS,
    Planned,
    Suggestion,
    TextEdit,
    apply,
    edits_of,
    near_cursor,
    row_of,
    rows_between,
    rows_of,
    utf16_length,
)
from calomel.suggest.judging import Held
from calomel.suggest.offers import Offer, Outcome
from calomel.suggest.question import Selected, Trigger
from calomel.suggest.recent import past_of
from calomel.suggest.search import last_edits
from calomel.suggest.session import Session
from calomel.suggest.signals import ThresholdGate, signals_of
from calomel.suggest.silence import SilenceReason
from calomel.workspace.documents import Document
from calomel.workspace.history import prompt_path


def may_replace(shown: Sequence[Planned] | None, new: Sequence[Planned]) -> bool:
    """Whether `new` may take the place of `shown`, both being edits of the same text.

    A visible suggestion that still agrees with the text stays, unless the new one only goes on where it ends: one edit
    at the same place whose text begins with the shown one. The rule is Zed's.

    Args:
        shown: None when nothing is visible, or when what was visible no longer agrees.
        new: what the model says now.
    """
    if not shown:
        return True
    if len(shown) != 1 or len(new) != 1:
        return False
    old, other = shown[0], new[0]
    return (old.start, old.end) == (other.start, other.end) and other.text.startswith(old.text)


def offered(
    session: Session, document: Document, cursor: int, entry: Entry, trigger: Trigger, selected: Selected | None = None
) -> Suggestion | SilenceReason:
    """Offer what fits the cursor of an entry whose edits are edits of the document's text; or say why not."""
    text = document.text
    explicit = trigger is Trigger.EXPLICIT
    chosen = _fitting(text, cursor, entry.kind, entry.edits or (), selected)
    if not chosen:
        return SilenceReason.STALE
    if not explicit and session.rejections.has(document.uri, text, chosen):
        return SilenceReason.REJECTED_BEFORE
    visible = session.ledger.visible(document.uri, entry.kind)
    if (
        visible is not None
        and not explicit
        and selected is None
        and not _gives_way(visible, chosen, text, cursor)
        and _against_past(session, document, cursor, entry.kind, visible.edits) is None
    ):
        chosen = visible.edits
    against = _against_past(session, document, cursor, entry.kind, chosen)
    if against is not None:
        return against
    delivered = edits_of(chosen)
    if selected is not None:
        around = _around(text, chosen, selected)
        if around is None:
            return SilenceReason.DISAGREES_WITH_SELECTED
        delivered = (around,)
    answered = _joined(text, delivered)
    if visible is not None and visible.edits == chosen:
        offer = visible
        if offer.answered != answered:
            offer.answered, offer.taken = answered, 0
    else:
        offer = Offer(
            id=session.ledger.held_back.taken_over(document.uri, entry.kind, chosen, text) or _new_id(session),
            uri=document.uri,
            kind=entry.kind,
            language_id=document.language_id,
            trigger=trigger,
            probability=entry.probability,
            model=session.asker.model_id,
            edits=chosen,
            answered=answered,
            signals=signals_of(entry.candidate, chosen, entry.signals),
            maker=entry.candidate.maker,
            request=entry.request,
            proposed=entry.candidate.text,
        )
        session.ledger.give(offer)
    row = row_of(text, cursor)
    distance = min(rows_between(rows_of(text, edit), row) for edit in chosen)
    return Suggestion(
        id=offer.id,
        uri=document.uri,
        version=document.version,
        revision=document.revision,
        kind=entry.kind,
        edits=delivered,
        probability=offer.probability,
        cursor_after=_cursor_after(delivered),
        jump=distance > JUMP_ROWS,
        candidate=entry.candidate,
        truncated=entry.truncated,
    )


def _against_past(
    session: Session, document: Document, cursor: int, kind: Kind, edits: tuple[Planned, ...]
) -> SilenceReason | None:
    """Why an answer from before the last edits is none any more: it undoes one, or goes on with an undone one."""
    if kind != "edit":
        return None
    past = past_of(document.text, last_edits(session, document.uri), prompt_path(document))
    if not (past.edited or past.withdrawn):
        return None
    proposal = Proposal(kind, document.text, edits_of(edits), cursor, edited=past.edited, withdrawn=past.withdrawn)
    refused = next(fired(proposal, OF_PAST), None)
    return None if refused is None else SilenceReason(refused)


def hold_back(
    session: Session, document: Document, cursor: int, held: Held, trigger: Trigger, selected: Selected | None = None
) -> None:
    """Follow what is not offered, so that it is known what became of it; its edits are edits of the document's text."""
    found, text, language = held.found, document.text, document.language_id
    kind = found.signals.kind
    chosen = _fitting(text, cursor, kind, found.edits, selected)
    # What was rejected before would not be shown whatever the threshold, and what is visible is shown.
    if not chosen or session.rejections.has(document.uri, text, chosen):
        return
    visible = session.ledger.visible(document.uri, kind)
    if visible is not None and visible.edits == chosen:
        return
    answered = _joined(text, edits_of(chosen))
    gate = session.asker.judging.gate
    outcome = Outcome(
        id=_new_id(session),
        outcome="withheld",
        reason=str(held.reason),
        kind=kind,
        uri=document.uri,
        language_id=language,
        trigger=str(trigger),
        model=session.asker.model_id,
        probability=found.probability,
        visible_seconds=0.0,
        length=utf16_length(answered),
        accepted_length=0,
        text=answered,
        signals=signals_of(found.candidate, chosen, found.signals),
        maker=found.maker,
        request=found.request,
        proposed=found.candidate.text,
    )
    named = found.signals.thresholds
    threshold = gate.threshold(language, named) if isinstance(gate, ThresholdGate) else None
    session.ledger.held_back.hold(outcome, chosen, text, threshold)


def _fitting(
    text: str, cursor: int, kind: Kind, edits: tuple[Planned, ...], selected: Selected | None
) -> tuple[Planned, ...]:
    """Which of `edits` to offer at the cursor; none when they belong elsewhere by now."""
    if kind == "edit":
        return near_cursor(text, edits, cursor)[0]
    return edits if edits and (selected is not None or edits[0].start == cursor) else ()


def _new_id(session: Session) -> str:
    return f"{session.rng.getrandbits(64):016x}"


def _joined(text: str, edits: Sequence[TextEdit]) -> str:
    """What `edits` of `text` put between the first one's start and the last one's end."""
    low, high = edits[0].start, edits[-1].end
    return apply(text[low:high], [TextEdit(a - low, b - low, new) for a, b, new in edits])


def _gives_way(visible: Offer, chosen: tuple[Planned, ...], text: str, cursor: int) -> bool:
    """Whether the visible suggestion may be replaced."""
    fits = all(edit.fits(text) for edit in visible.edits)
    if visible.kind == "fill":
        fits = fits and visible.edits[0].start == cursor
    return visible.edits == chosen or may_replace(visible.edits if fits else None, chosen)


def _around(text: str, chosen: tuple[Planned, ...], selected: Selected) -> TextEdit | None:
    """The suggestion as a replacement of what the selected completion item replaces; None when it disagrees with it.

    Editors show only such suggestions while their completion popup is open.
    """
    edit = chosen[0]
    if len(chosen) != 1 or edit.start < selected.start or edit.start > selected.end:
        return None
    end = max(edit.end, selected.end)
    whole = text[selected.start : edit.start] + edit.text + text[edit.end : end]
    return TextEdit(selected.start, end, whole) if whole.startswith(selected.text) else None


def _cursor_after(edits: tuple[TextEdit, ...]) -> int:
    """The end of the last edit, in the text that all of them make."""
    return edits[-1].start + sum(len(edit.text) - (edit.end - edit.start) for edit in edits[:-1]) + len(edits[-1].text)
