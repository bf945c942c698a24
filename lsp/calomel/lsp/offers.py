"""Suggestions in the words of the protocol, each with the command that tells us of its acceptance."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from lsprotocol import types

from calomel.lsp.client import CODE_ACTION_KIND, Client
from calomel.suggest.completer import Kind
from calomel.suggest.edit import Suggestion, TextEdit, joined, utf16_length
from calomel.suggest.launch import version
from calomel.suggest.offers import Outcome
from calomel.suggest.outcome_log import OutcomeLog, outcome_log_path
from calomel.suggest.prompt_log import PromptLog, prompt_log_path
from calomel.suggest.suggester import Suggester
from calomel.workspace.documents import Document, Encoding
from calomel.workspace.settings import LogSettings
from calomel.workspace.workspace import Workspace

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
    edit = joined(document.text, suggestion.edits)
    where = range_of(document, edit, encoding)
    if where.start.line != where.end.line:
        return None
    return types.InlineCompletionItem(insert_text=edit.text, range=where, command=accept_command(suggestion))


def copilot_edit(suggestion: Suggestion, document: Document, encoding: Encoding) -> dict[str, Any]:
    """For `textDocument/copilotInlineEdit`."""
    edit = joined(document.text, suggestion.edits)
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
    edit = joined(document.text, suggestion.edits)
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


class Feedback:
    """Handlers of the reports. Reports of a wrong form, or about things that are not ours, change nothing.

    Some clients report what they show, others never do. A client that knows our extensions, or has reported once, is
    waited for; for any other, what is sent counts as shown.
    """

    def __init__(self, client: Client, workspace: Workspace, suggester: Suggester) -> None:
        self._workspace = workspace
        self._suggester = suggester
        self._reports: dict[Kind, bool] = {"fill": client.extensions, "edit": client.extensions}

    def sent(self, suggestion: Suggestion) -> None:
        """A suggestion goes to the client."""
        if not self._reports[suggestion.kind]:
            self._suggester.shown(suggestion.id)

    def did_show_completion(self, params: Mapping[str, Any]) -> None:
        """`textDocument/didShowCompletion`."""
        self._shown("fill", params)

    def did_show_inline_edit(self, params: Mapping[str, Any]) -> None:
        """`textDocument/didShowInlineEdit`."""
        self._shown("edit", params)

    def did_partially_accept(self, params: Mapping[str, Any]) -> None:
        """`textDocument/didPartiallyAcceptCompletion`: `acceptedLength` in utf-16 units from the item's start."""
        suggestion_id = _id_of(params)
        length = params.get("acceptedLength")
        if suggestion_id is not None and isinstance(length, int) and length > 0:
            item = params["item"]
            text = item.get("insertText") if isinstance(item, Mapping) else None
            whole = utf16_length(text) if isinstance(text, str) else None
            self._suggester.partly_accepted(suggestion_id, length, whole)

    def did_focus(self, params: Mapping[str, Any]) -> None:
        """`textDocument/didFocus`; without a document the user looks at none."""
        document = params.get("textDocument")
        uri = document.get("uri") if isinstance(document, dict) else None
        self._workspace.focus(uri if isinstance(uri, str) else None)

    def _shown(self, kind: Kind, params: Mapping[str, Any]) -> None:
        suggestion_id = _id_of(params)
        if suggestion_id is not None:
            self._reports[kind] = True
            self._suggester.shown(suggestion_id)


def _id_of(params: Mapping[str, Any]) -> str | None:
    """The first argument of the item's command. Whatever has another form is no report of ours."""
    value: Any = params
    for key in ("item", "command", "arguments"):
        value = value.get(key) if isinstance(value, Mapping) else None
    first = value[0] if isinstance(value, list) and value else None
    return first if isinstance(first, str) else None


class Outcomes:
    """An `OutcomeSink` that follows the settings.

    Args:
        mask: hides secrets in texts, should the user want to keep them.
        warn: shows a sentence to the user, from any thread.
    """

    def __init__(self, settings: LogSettings, mask: Callable[[str], str], warn: Callable[[str], None]) -> None:
        self._mask = mask
        path, session = outcome_log_path(), secrets.token_hex(4)
        self._log = OutcomeLog(path, version=version(), session=session, warn=warn)
        self._prompts = PromptLog(prompt_log_path(path), session=session, mask=mask, warn=warn)
        self.apply(settings)

    def apply(self, settings: LogSettings) -> None:
        """Take over changed settings."""
        self._wanted = settings.outcomes
        self._text_wanted = settings.outcomes and settings.outcome_text
        self._log.mask = self._mask if settings.outcome_text else None

    def record(self, outcome: Outcome) -> None:
        """Keep one, if outcomes are kept."""
        if self._wanted:
            self._log.record(outcome)
        if self._text_wanted:
            self._prompts.record(outcome)

    def close(self) -> None:
        """Let go of the files."""
        self._log.close()
        self._prompts.close()
