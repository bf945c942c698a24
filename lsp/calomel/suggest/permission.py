"""Whether anything may be suggested at a place at all, before any thought is spent on it."""

from __future__ import annotations

from calomel.suggest.completer import Kind
from calomel.suggest.needs import CommentTest, PathRules, PathVerdict
from calomel.suggest.session import Session
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.trigger import Trigger
from calomel.workspace.documents import Document


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
