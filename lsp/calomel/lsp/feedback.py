"""What the client reports of the user: shown, taken, taken in part, and where the user looks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calomel.lsp.client import Client
from calomel.suggest.completer import Kind
from calomel.suggest.edit import Suggestion, utf16_length
from calomel.suggest.suggester import Suggester
from calomel.workspace.workspace import Workspace


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
