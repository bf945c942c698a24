"""Suggestions in the words of the protocol, each with the command that tells us of its acceptance."""

from __future__ import annotations

import re
from typing import Any

from lsprotocol import types

from calomel.lsp.capabilities import CODE_ACTION_KIND
from calomel.suggest.edit import Suggestion, TextEdit
from calomel.workspace.documents import Document, Encoding

TITLE = "Accept the suggestion"
ACTION_TITLE = "Apply predicted edit"
# A label in a completion popup is one short line.
MAX_LABEL = 60

_WORD = re.compile(r"\w")
# Their words hold what are operators elsewhere.
_LISP_WORD = re.compile(r"[\w!$%&*+/:<=>?^~-]")
_LISPS = frozenset({"clojure", "emacs-lisp", "lisp", "racket", "scheme"})


def accept_command(suggestion: Suggestion) -> types.Command:
    """Sent back by the client when the user accepts."""
    return types.Command(title=TITLE, command="calomel.accept", arguments=[suggestion.id])


def inline_item(suggestion: Suggestion, document: Document, encoding: Encoding) -> types.InlineCompletionItem | None:
    """For `textDocument/inlineCompletion`; None when the range would leave its line, which the protocol forbids."""
    edit = suggestion.joined(document.text)
    where = range_of(document, edit, encoding)
    if where.start.line != where.end.line:
        return None
    return types.InlineCompletionItem(insert_text=edit.text, range=where, command=accept_command(suggestion))


def copilot_edit(suggestion: Suggestion, document: Document, encoding: Encoding) -> dict[str, Any]:
    """For `textDocument/copilotInlineEdit`."""
    edit = suggestion.joined(document.text)
    where = range_of(document, edit, encoding)
    return {
        "text": edit.text,
        "textDocument": {"uri": document.uri, "version": document.version},
        "range": {
            "start": {"line": where.start.line, "character": where.start.character},
            "end": {"line": where.end.line, "character": where.end.character},
        },
        "command": {"title": TITLE, "command": "calomel.accept", "arguments": [suggestion.id]},
    }


def completion_item(suggestion: Suggestion, document: Document, encoding: Encoding) -> types.CompletionItem | None:
    """For `textDocument/completion`."""
    edit = suggestion.joined(document.text)
    if not edit.text.strip():
        return None
    edit = _with_word(edit, document)
    where = range_of(document, edit, encoding)
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
    """The edit from the beginning of the word that it goes on with: clients drop what does not begin as that word."""
    start, text = edit.start, document.text
    inside = _LISP_WORD if document.language_id in _LISPS else _WORD
    while start and inside.match(text[start - 1]):
        start -= 1
    return TextEdit(start, edit.end, text[start : edit.start] + edit.text)


def code_action(suggestion: Suggestion, document: Document, encoding: Encoding, *, versioned: bool) -> types.CodeAction:
    """For `textDocument/codeAction`."""
    edits = [types.TextEdit(range=range_of(document, edit, encoding), new_text=edit.text) for edit in suggestion.edits]
    if versioned:
        identifier = types.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version)
        change = types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(text_document=identifier, edits=edits)])
    else:
        change = types.WorkspaceEdit(changes={document.uri: edits})
    return types.CodeAction(
        title=ACTION_TITLE, kind=CODE_ACTION_KIND, edit=change, command=accept_command(suggestion), is_preferred=False
    )


def range_of(document: Document, edit: TextEdit, encoding: Encoding) -> types.Range:
    """The range of an edit in the document."""
    start, end = document.position_at(edit.start, encoding), document.position_at(edit.end, encoding)
    return types.Range(
        start=types.Position(line=start.line, character=start.character),
        end=types.Position(line=end.line, character=end.character),
    )
