"""From a kept answer to the suggestion that the editor gets, without flicker and without what was rejected."""

from __future__ import annotations

from calomel.suggest.cache import Entry
from calomel.suggest.diff import JUMP_ROWS, near_cursor, row_of, rows_between, rows_of
from calomel.suggest.offer import Offer
from calomel.suggest.outcome_signals import signals_of
from calomel.suggest.planned import Planned, edits_of
from calomel.suggest.replacement import may_replace
from calomel.suggest.session import Session
from calomel.suggest.silence import SilenceReason
from calomel.suggest.suggestion import Suggestion, TextEdit, apply
from calomel.suggest.trigger import Selected, Trigger
from calomel.workspace.documents import Document


def offered(
    session: Session, document: Document, cursor: int, entry: Entry, trigger: Trigger, selected: Selected | None = None
) -> Suggestion | SilenceReason:
    """Offer what fits the cursor of an entry whose edits are edits of the document's text; or say why not."""
    text = document.text
    chosen = entry.edits or ()
    if entry.kind == "edit":
        chosen, _ = near_cursor(text, chosen, cursor)
    if not chosen:
        return SilenceReason.STALE
    if selected is None and entry.kind == "fill" and chosen[0].start != cursor:
        return SilenceReason.STALE
    explicit = trigger is Trigger.EXPLICIT
    if not explicit and session.rejections.has(document.uri, text, chosen):
        return SilenceReason.REJECTED_BEFORE
    visible = session.ledger.visible(document.uri, entry.kind)
    if visible is not None and not explicit and selected is None and not _gives_way(visible, chosen, text, cursor):
        chosen = visible.edits
    delivered = edits_of(chosen)
    if selected is not None:
        around = _around(text, chosen, selected)
        if around is None:
            return SilenceReason.DISAGREES_WITH_SELECTED
        delivered = (around,)
    low, high = delivered[0].start, delivered[-1].end
    answered = apply(text[low:high], [TextEdit(a - low, b - low, new) for a, b, new in delivered])
    if visible is not None and visible.edits == chosen:
        offer = visible
        if offer.answered != answered:
            offer.answered, offer.taken = answered, 0
    else:
        offer = Offer(
            id=f"{session.rng.getrandbits(64):016x}",
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
