"""`textDocument/copilotInlineEdit`, and the code action "Apply predicted edit" for clients that do not speak it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from lsprotocol import types

from calomel.lsp.client import CODE_ACTION_KIND, Client
from calomel.lsp.notices import Notices
from calomel.lsp.offers import Feedback, code_action, completion_item, copilot_edit, inline_item
from calomel.lsp.protocol import InvalidParamsError
from calomel.lsp.text_sync import Cursor, Cursors
from calomel.suggest.edit import Suggestion
from calomel.suggest.question import Diagnostic, Selected, Trigger
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.suggester import Suggester
from calomel.workspace.documents import Document, Position

LOG: Final = logging.getLogger(__name__)


class InlineCompletions:
    """Answers with one item or with null, never with an error: clients log errors, or pop them up, at each key."""

    def __init__(self, cursors: Cursors, suggester: Suggester, feedback: Feedback, notices: Notices) -> None:
        self._cursors = cursors
        self._suggester = suggester
        self._feedback = feedback
        self._notices = notices

    async def inline(self, params: types.InlineCompletionParams) -> types.InlineCompletionList | None:
        """Handle `textDocument/inlineCompletion`."""
        invoked = params.context.trigger_kind == types.InlineCompletionTriggerKind.Invoked
        found = await self._ask(params.text_document.uri, params.position, params.context, invoked=invoked)
        if found is None:
            return None
        suggestion, document = found
        item = inline_item(suggestion, document, self._cursors.encoding)
        if item is None:
            # Rare: a fill that replaces a line end. Only the next-edit method can carry it.
            self._silent(document.uri, Silence.of(SilenceReason.STALE))
            return None
        self._feedback.sent(suggestion)
        return types.InlineCompletionList(items=[item])

    async def popup(self, params: types.CompletionParams) -> types.CompletionList:
        """Handle `textDocument/completion`; incomplete always, since the next key makes another suggestion."""
        nothing = types.CompletionList(is_incomplete=True, items=[])
        # Editors say "invoked" for typing, too.
        found = await self._ask(params.text_document.uri, params.position, None, invoked=False)
        if found is None:
            return nothing
        suggestion, document = found
        item = completion_item(suggestion, document, self._cursors.encoding)
        if item is None:
            return nothing
        self._feedback.sent(suggestion)
        return types.CompletionList(is_incomplete=True, items=[item])

    async def _ask(
        self,
        uri: str,
        position: types.Position,
        context: types.InlineCompletionContext | None,
        *,
        invoked: bool,
    ) -> tuple[Suggestion, Document] | None:
        cursor = self._cursors.find(uri, position.line, position.character)
        if isinstance(cursor, Silence):
            self._silent(uri, cursor)
            return None
        trigger: Trigger = self._cursors.trigger(cursor.document, invoked=invoked)
        selected = self._selected(cursor.document, context)
        try:
            answer = await self._suggester.inline(uri, cursor.offset, trigger, selected=selected)
        except Exception:  # a fault of ours is a silence for the user, and a line in the log
            LOG.exception("a question failed")
            answer = Silence.of(SilenceReason.FAILED)
        if isinstance(answer, Silence):
            self._silent(uri, answer)
            return None
        if not self._cursors.fits(answer, cursor.document):
            self._silent(uri, Silence.of(SilenceReason.STALE))
            return None
        return answer, cursor.document

    def _silent(self, uri: str, silence: Silence) -> None:
        self._notices.silence(uri, "fill", silence)

    def _selected(self, document: Document, context: types.InlineCompletionContext | None) -> Selected | None:
        chosen = context.selected_completion_info if context is not None else None
        if chosen is None:
            return None
        start, end = chosen.range.start, chosen.range.end
        encoding = self._cursors.encoding
        return Selected(
            document.offset_at(Position(start.line, start.character), encoding),
            document.offset_at(Position(end.line, end.character), encoding),
            chosen.text,
        )


# A menu of code actions opens when every server has answered.
MENU_SECONDS: Final = 1.5
MAX_DIAGNOSTICS: Final = 32

_SEVERITIES: Final = {1: "error", 2: "warning", 3: "information", 4: "hint"}


class NextEdits:
    """Answers with no edit or one: some clients apply every edit of an answer, others look at the first alone."""

    def __init__(
        self, client: Client, cursors: Cursors, suggester: Suggester, feedback: Feedback, notices: Notices
    ) -> None:
        self._client = client
        self._cursors = cursors
        self._suggester = suggester
        self._feedback = feedback
        self._notices = notices
        self._last: Suggestion | None = None
        # The client has a better way to ask, and to show what comes.
        self._spoken = client.extensions and client.inline_completion

    async def copilot(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Handle `textDocument/copilotInlineEdit`. Never null, never an error about the state of things."""
        self._spoken = True
        uri, version = document_of(params)
        line, character = position_of(params.get("position"))
        cursor = self._cursors.find(uri, line, character)
        if isinstance(cursor, Silence):
            return self._silent(uri, cursor)
        if version is not None and cursor.document.version is not None and version != cursor.document.version:
            return self._silent(uri, Silence.of(SilenceReason.STALE))
        context = params.get("context")
        invoked = isinstance(context, dict) and context.get("triggerKind") == 1
        diagnostics = self._diagnostics(cursor.document, params.get("diagnostics"))
        suggestion = await self._ask(cursor, version, diagnostics, Trigger.EXPLICIT if invoked else Trigger.EDIT)
        if suggestion is None:
            return {"edits": []}
        self._feedback.sent(suggestion)
        return {"edits": [copilot_edit(suggestion, cursor.document, self._cursors.encoding)]}

    async def actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """Handle `textDocument/codeAction`.

        The model is asked only when the user opened the menu and the client has no better way to ask; a client that
        asks at each move of its cursor is offered what is known. lsp-mode does not say which of the two it is, and
        shows what comes in its mode line: to it, suggestions come as if by themselves.
        """
        uri, start = params.text_document.uri, params.range.start
        cursor = self._cursors.find(uri, start.line, start.character)
        if isinstance(cursor, Silence) or not self._client.code_action_literals or not _wanted(params.context.only):
            return []
        known = self._last
        if known is None or known.uri != uri or not self._cursors.fits(known, cursor.document):
            kind = params.context.trigger_kind
            if kind == types.CodeActionTriggerKind.Automatic or self._spoken:
                return []
            trigger = Trigger.EDIT if kind is None and self._client.inline_completion else Trigger.EXPLICIT
            diagnostics = [
                Diagnostic(
                    *self._span(cursor.document, one.range), one.message, _SEVERITIES.get(one.severity or 1, "error")
                )
                for one in params.context.diagnostics[:MAX_DIAGNOSTICS]
            ]
            try:
                async with asyncio.timeout(MENU_SECONDS):
                    known = await self._ask(cursor, None, diagnostics, trigger)
            except TimeoutError:
                self._silent(uri, Silence.of(SilenceReason.TIMEOUT))
                return []
            if known is None:
                return []
        self._feedback.sent(known)
        versioned = self._client.document_changes
        return [code_action(known, cursor.document, self._cursors.encoding, versioned=versioned)]

    async def _ask(
        self, cursor: Cursor, version: int | None, diagnostics: list[Diagnostic], trigger: Trigger
    ) -> Suggestion | None:
        uri = cursor.document.uri
        try:
            answer = await self._suggester.next_edit(
                uri, version, cursor.offset, diagnostics=diagnostics, trigger=trigger
            )
        except Exception:  # a fault of ours is a silence for the user, and a line in the log
            LOG.exception("a question failed")
            answer = Silence.of(SilenceReason.FAILED)
        if not isinstance(answer, Silence) and not self._cursors.fits(answer, cursor.document):
            answer = Silence.of(SilenceReason.STALE)
        if isinstance(answer, Silence):
            self._silent(uri, answer)
            return None
        self._last = answer
        return answer

    def _silent(self, uri: str, silence: Silence) -> dict[str, Any]:
        self._notices.silence(uri, "edit", silence)
        return {"edits": []}

    def _span(self, document: Document, where: types.Range) -> tuple[int, int]:
        start, end = where.start, where.end
        encoding = self._cursors.encoding
        return (
            document.offset_at(Position(start.line, start.character), encoding),
            document.offset_at(Position(end.line, end.character), encoding),
        )

    def _diagnostics(self, document: Document, raw: object) -> list[Diagnostic]:
        """Those of the request that can be read; they are hints, so that a wrong one is left out."""
        found = []
        for one in raw[:MAX_DIAGNOSTICS] if isinstance(raw, list) else []:
            try:
                where = one["range"]
                first, last = position_of(where["start"]), position_of(where["end"])
                message, severity = one["message"], one.get("severity", "error")
            except (KeyError, TypeError, AttributeError, InvalidParamsError):
                continue
            encoding = self._cursors.encoding
            start, end = (document.offset_at(Position(*place), encoding) for place in (first, last))
            name = _SEVERITIES.get(severity, "error") if isinstance(severity, int) else str(severity)
            if isinstance(message, str):
                found.append(Diagnostic(start, end, message, name))
        return found


def _wanted(only: Sequence[str] | None) -> bool:
    """Whether our kind, or a kind above it, is among those that the client wants."""
    return not only or any(f"{CODE_ACTION_KIND}.".startswith(f"{kind}.") or not kind for kind in map(_name, only))


def _name(kind: str) -> str:
    return str(kind.value) if isinstance(kind, types.CodeActionKind) else kind


def document_of(params: Mapping[str, Any]) -> tuple[str, int | None]:
    """URI and version of `textDocument`. Raises InvalidParamsError."""
    document = params.get("textDocument")
    uri = document.get("uri") if isinstance(document, dict) else None
    if not isinstance(uri, str):
        raise InvalidParamsError("textDocument.uri is a string.")
    version = document.get("version") if isinstance(document, dict) else None
    # A client that does not know the version asks about the text as it is.
    return uri, version if isinstance(version, int) and not isinstance(version, bool) else None


def position_of(value: object) -> tuple[int, int]:
    """Line and character of a position. Raises InvalidParamsError."""
    place = value if isinstance(value, dict) else {}
    line, character = place.get("line"), place.get("character")
    for number in (line, character):
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise InvalidParamsError("A position has a line and a character, both whole numbers from 0 on.")
    return int(line or 0), int(character or 0)
