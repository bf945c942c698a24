"""Requests for suggestions, responses in the protocol's form, and the client's reports of what became of them.

There are two kinds. Text at the cursor is requested by `textDocument/inlineCompletion` and, if the user wants it,
`textDocument/completion`; a next edit by `textDocument/copilotInlineEdit` and, by clients that do not support that, as
the code action "Apply next edit". Each suggestion carries the command that reports its acceptance.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from weakref import WeakKeyDictionary

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from calomel.code.names import names_of
from calomel.infer.completer import Kind
from calomel.lsp.client import CODE_ACTION_KIND
from calomel.lsp.protocol import Editor, read
from calomel.lsp.text_sync import Cursor, TextSync
from calomel.suggest.edit import Suggestion, to_its_end
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.snapshot import Diagnostic, Selected, Trigger
from calomel.suggest.suggester import Suggester
from calomel.workspace.documents import Document, utf16_length
from calomel.workspace.edits import TextEdit, joined

TITLE: Final = "Accept the suggestion"
ACTION_TITLE: Final = "Apply next edit"
# A label in a completion popup is one short line.
MAX_LABEL: Final = 60
# A menu of code actions opens only when every server has answered.
MENU_SECONDS: Final = 1.5
MAX_DIAGNOSTICS: Final = 32


class Suggestions:
    """The handlers of requests and reports.

    What cannot be answered gets an empty response, never an error: clients would log errors, or show them, at each
    key. Some clients report what they show, others never do. From a client that knows our extensions, or has reported
    once, a report is awaited; for any other, what is sent counts as shown.
    """

    def __init__(self, editor: Editor, sync: TextSync, suggester: Suggester) -> None:
        self._editor = editor
        self._client = editor.client
        self._sync = sync
        self._suggester = suggester
        if editor.client.extensions:
            suggester.tells_counts(editor.tell_count)
        self._reports: dict[Kind, bool] = {"fill": editor.client.extensions, "edit": editor.client.extensions}
        self._revisions: WeakKeyDictionary[Document, int] = WeakKeyDictionary()  # the revision of the last request
        self._last: tuple[Suggestion, Document | None] | None = None  # of the next edits
        if editor.client.extends:
            suggester.extends(editor.tell_extended)
        # Whether the client has a better way to ask for edits, and to show them.
        self._spoken = editor.client.extensions and editor.client.inline_completion

    async def inline(self, params: types.InlineCompletionParams) -> dict[str, Any] | None:
        """Handle `textDocument/inlineCompletion`."""
        invoked = params.context.trigger_kind == types.InlineCompletionTriggerKind.Invoked
        result = await self._fill(params, params.context.selected_completion_info, invoked=invoked)
        if result is None:
            return None
        hint = self._hint(invoked=invoked)
        items = [inline_item(each, result[1]) for each in (result[0], *result[0].others)]
        if items[0] is None:
            # Rare: a fill that replaces a line end. Only the next-edit method can carry it.
            self._editor.tell_silence(params.text_document.uri, "fill", Silence.of(SilenceReason.STALE))
            return None
        self._sent(result[0])
        return {"items": [item | hint for item in items if item is not None]}

    async def popup(self, params: types.CompletionParams) -> types.CompletionList:
        """Handle `textDocument/completion`; always incomplete, since the next key makes another suggestion."""
        # Editors send "invoked" for typing, too.
        result = await self._fill(params, None, invoked=False)
        item = None if result is None else completion_item(*result)
        if result is not None and item is not None:
            self._sent(result[0])
        return types.CompletionList(is_incomplete=True, items=[] if item is None else [item])

    async def copilot(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Handle `textDocument/copilotInlineEdit`; one edit at most, since some clients apply all of a response."""
        self._spoken = True
        uri, position = place_of(params)
        version = params["textDocument"].get("version")
        if not isinstance(version, int) or isinstance(version, bool):
            version = None  # a client that does not know it asks about the current text
        cursor = self._sync.find(uri, position)
        if isinstance(cursor, Cursor) and version is not None and cursor.document.version not in {None, version}:
            cursor = Silence.of(SilenceReason.STALE)
        context = params.get("context")
        invoked = isinstance(context, dict) and context.get("triggerKind") == 1
        raw = params.get("diagnostics")
        diagnostics = []
        for one in raw[:MAX_DIAGNOSTICS] if isinstance(raw, list) else []:
            # They are hints, so a malformed one is skipped.
            with suppress(JsonRpcInvalidParams, TypeError, KeyError):
                diagnostics.append(read(one["range"], types.Range, "A range"))
        trigger = Trigger.EXPLICIT if invoked else Trigger.EDIT
        suggestion = await self._edit(uri, cursor, version, diagnostics, trigger, elsewhere=self._client.other_files)
        document = None if suggestion is None else self._sync.document(suggestion)
        if suggestion is None or document is None:
            return {"edits": []}
        self._sent(suggestion)
        item = copilot_edit(suggestion, document, chain=self._client.extensions)
        return {"edits": [item | self._hint(invoked=invoked)]}

    async def actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """Handle `textDocument/codeAction`.

        The model is asked only when the user opened the menu and the client has no better way to ask; a client that
        asks at each move of its cursor gets what is known. lsp-mode does not say which of the two it is, and shows
        what it gets in its mode line: for it, requests count as automatic.
        """
        uri = params.text_document.uri
        cursor = self._sync.find(uri, params.range.start)
        if isinstance(cursor, Silence) or not self._client.code_action_literals or not _wanted(params.context.only):
            return []
        suggestion = self._visible(cursor.document)
        if suggestion is None:
            kind = params.context.trigger_kind
            if kind == types.CodeActionTriggerKind.Automatic or self._spoken:
                return []
            trigger = Trigger.EDIT if kind is None and self._client.inline_completion else Trigger.EXPLICIT
            try:
                async with asyncio.timeout(MENU_SECONDS):
                    suggestion = await self._edit(
                        uri, cursor, None, [each.range for each in params.context.diagnostics], trigger
                    )
            except TimeoutError:
                self._editor.tell_silence(uri, "edit", Silence.of(SilenceReason.TIMEOUT))
                return []
            if suggestion is None:
                return []
        self._sent(suggestion)
        return [code_action(suggestion, cursor.document, versioned=self._client.document_changes)]

    def shown(self, kind: Kind, params: Mapping[str, Any]) -> None:
        """`textDocument/didShowCompletion`, `textDocument/didShowInlineEdit`."""
        suggestion_id = _id_of(params)
        if suggestion_id is not None:
            self._reports[kind] = True
            self._suggester.shown(suggestion_id)

    def partly_accepted(self, params: Mapping[str, Any]) -> None:
        """`textDocument/didPartiallyAcceptCompletion`: `acceptedLength` in utf-16 units from the item's start."""
        suggestion_id, length = _id_of(params), params.get("acceptedLength")
        if suggestion_id is not None and isinstance(length, int) and length > 0:
            text = params["item"].get("insertText")
            self._suggester.partly_accepted(
                suggestion_id, length, utf16_length(text) if isinstance(text, str) else None
            )

    async def _fill(
        self,
        params: types.InlineCompletionParams | types.CompletionParams,
        chosen: types.SelectedCompletionInfo | None,
        *,
        invoked: bool,
    ) -> tuple[Suggestion, Document] | None:
        uri = params.text_document.uri
        cursor = self._sync.find(uri, params.position)
        if isinstance(cursor, Silence):
            self._editor.tell_silence(uri, "fill", cursor)
            return None
        document = cursor.document
        # The protocol marks explicit invocations; the revision tells an edit from a mere cursor move.
        moved = self._revisions.get(document) == document.revision
        self._revisions[document] = document.revision
        trigger = Trigger.EXPLICIT if invoked else Trigger.CURSOR if moved else Trigger.EDIT
        selected = None if chosen is None else Selected(*_span(document, chosen.range), chosen.text)
        asking = self._suggester.inline(uri, cursor.offset, trigger, selected=selected)
        suggestion = await self._answer("fill", document, asking)
        return None if suggestion is None else (suggestion, document)

    async def _edit(
        self,
        uri: str,
        cursor: Cursor | Silence,
        version: int | None,
        diagnostics: Sequence[types.Range],
        trigger: Trigger,
        *,
        elsewhere: bool = False,
    ) -> Suggestion | None:
        if isinstance(cursor, Silence):
            self._editor.tell_silence(uri, "edit", cursor)
            return None
        document = cursor.document
        problems = [Diagnostic(*_span(document, each)) for each in diagnostics[:MAX_DIAGNOSTICS]]
        asking = self._suggester.next_edit(
            uri, version, cursor.offset, diagnostics=problems, trigger=trigger, elsewhere=elsewhere
        )
        suggestion = await self._answer("edit", document, asking)
        if suggestion is not None:
            self._last = suggestion, self._sync.document(suggestion)
        return suggestion

    def _visible(self, document: Document) -> Suggestion | None:
        """The last next edit, if it is one of the document as it is now and the user may still be looking at it."""
        suggestion, of = self._last or (None, None)
        # The revisions of a document that was opened again begin anew.
        if suggestion is None or of is not document or self._sync.document(suggestion) is not document:
            return None
        return suggestion if self._suggester.offers(suggestion.id, document) else None

    async def _answer(
        self, kind: Kind, document: Document, asking: Awaitable[Suggestion | Silence]
    ) -> Suggestion | None:
        answer = await asking
        if not isinstance(answer, Silence):
            current = self._sync.document(answer)
            if current is None or (current is not document and answer.uri == document.uri):
                answer = Silence.of(SilenceReason.STALE)
        if isinstance(answer, Silence):
            self._editor.tell_silence(document.uri, kind, answer)
            return None
        return answer

    def _hint(self, *, invoked: bool) -> dict[str, bool]:
        """What says that the client shows no more than a mark until its user asks."""
        return {"hint": True} if self._suggester.settings.show == "hint" and not invoked else {}

    def _sent(self, suggestion: Suggestion) -> None:
        if not self._reports[suggestion.kind]:
            self._suggester.shown(suggestion.id)


def place_of(params: object) -> tuple[str, types.Position]:
    """URI and position of an object with `textDocument` and `position`. Raises JsonRpcInvalidParams."""
    place = read(params, types.TextDocumentPositionParams, "textDocument and position")
    return place.text_document.uri, place.position


def _span(document: Document, where: types.Range) -> tuple[int, int]:
    start, end = where.start, where.end
    return document.offset_at(start.line, start.character), document.offset_at(end.line, end.character)


def _wanted(only: Sequence[str] | None) -> bool:
    """Whether our kind, or a parent kind of it, is among those that the client wants."""
    kinds = [kind.value if isinstance(kind, types.CodeActionKind) else kind for kind in only or [""]]
    return any(not kind or f"{CODE_ACTION_KIND}.".startswith(f"{kind}.") for kind in kinds)


def _id_of(params: Mapping[str, Any]) -> str | None:
    """The first argument of the item's command; None if the item is not ours."""
    try:
        suggestion_id = params["item"]["command"]["arguments"][0]
    except (KeyError, IndexError, TypeError):
        return None
    return suggestion_id if isinstance(suggestion_id, str) else None


def accept_command(suggestion: Suggestion) -> types.Command:
    """The command that the client sends back when the user accepts."""
    return types.Command(title=TITLE, command="calomel.accept", arguments=[suggestion.id])


def inline_item(suggestion: Suggestion, document: Document) -> dict[str, Any] | None:
    """For `textDocument/inlineCompletion`; None when the range would leave its line, which the protocol forbids."""
    edit = joined(document.text, suggestion.edits)
    where = range_of(document, edit)
    if where.start.line != where.end.line:
        return None
    return {"insertText": edit.text, "range": where, "command": accept_command(suggestion)}


def copilot_edit(suggestion: Suggestion, document: Document, *, chain: bool = False) -> dict[str, Any]:
    """For `textDocument/copilotInlineEdit`; `chain` says where it is among those of one answer, and which follow.

    It ends where the cursor belongs afterwards.
    """
    names = names_of(document.language_id, document.path)
    edit = to_its_end(document.text, joined(document.text, suggestion.edits), names)
    item: dict[str, Any] = {}
    if chain and suggestion.total > 1:
        following = (joined(document.text, edits) for edits in suggestion.rest)
        rest = [{"range": range_of(document, each), "text": each.text} for each in following]
        item["chain"] = {"index": suggestion.index, "total": suggestion.total, "rest": rest}
    return item | {
        "text": edit.text,
        "textDocument": {"uri": document.uri, "version": document.version},
        "range": range_of(document, edit),
        "command": accept_command(suggestion),
    }


def completion_item(suggestion: Suggestion, document: Document) -> types.CompletionItem | None:
    """For `textDocument/completion`."""
    edit = joined(document.text, suggestion.edits)
    if not edit.text.strip():
        return None
    edit = _with_word(edit, document)
    where = range_of(document, edit)
    if where.start.line != where.end.line:
        return None
    first = edit.text.strip().splitlines()[0]
    return types.CompletionItem(
        label=first if len(first) <= MAX_LABEL else first[: MAX_LABEL - 1] + "…",
        kind=types.CompletionItemKind.Text,
        detail="Calomel",
        filter_text=edit.text,
        sort_text="\u007f",
        insert_text_format=types.InsertTextFormat.PlainText,
        insert_text_mode=types.InsertTextMode.AsIs,
        text_edit=types.TextEdit(range=where, new_text=edit.text),
        command=accept_command(suggestion),
    )


def _with_word(edit: TextEdit, document: Document) -> TextEdit:
    """The edit extended to the start of the word it continues: clients drop items that do not begin with that word."""
    word = names_of(document.language_id, document.path).ending(document.text, edit.start)
    return TextEdit(edit.start - len(word), edit.end, word + edit.text)


def code_action(suggestion: Suggestion, document: Document, *, versioned: bool) -> types.CodeAction:
    """For `textDocument/codeAction`."""
    edits = [types.TextEdit(range=range_of(document, edit), new_text=edit.text) for edit in suggestion.edits]
    if versioned:
        identifier = types.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version)
        change = types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(text_document=identifier, edits=edits)])
    else:
        change = types.WorkspaceEdit(changes={document.uri: edits})
    return types.CodeAction(
        title=ACTION_TITLE, kind=CODE_ACTION_KIND, edit=change, command=accept_command(suggestion), is_preferred=False
    )


def range_of(document: Document, edit: TextEdit) -> types.Range:
    """The range of an edit in the document."""
    start, end = document.position_at(edit.start), document.position_at(edit.end)
    return types.Range(types.Position(*start), types.Position(*end))
