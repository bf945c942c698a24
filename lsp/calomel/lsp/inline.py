"""`textDocument/inlineCompletion`, and `textDocument/completion` for clients that know nothing better."""

from __future__ import annotations

import logging
from typing import Final

from lsprotocol import types

from calomel.lsp.cursor import Cursors
from calomel.lsp.feedback import Feedback
from calomel.lsp.notices import Notices
from calomel.lsp.offers import completion_item, inline_item
from calomel.suggest.edit import Suggestion
from calomel.suggest.question import Selected, Trigger
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
