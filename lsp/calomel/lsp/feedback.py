"""What the client reports of the user: shown, taken, taken in part, and where the user looks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calomel.suggest.suggester import Suggester
from calomel.workspace.workspace import Workspace


class Feedback:
    """Handlers of the reports. Reports of a wrong form, or about things that are not ours, change nothing."""

    def __init__(self, workspace: Workspace, suggester: Suggester) -> None:
        self._workspace = workspace
        self._suggester = suggester

    def did_show(self, params: Mapping[str, Any]) -> None:
        """`textDocument/didShowCompletion` and `textDocument/didShowInlineEdit`."""
        suggestion_id = _id_of(params)
        if suggestion_id is not None:
            self._suggester.shown(suggestion_id)

    def did_partially_accept(self, params: Mapping[str, Any]) -> None:
        """`textDocument/didPartiallyAcceptCompletion`: `acceptedLength` in utf-16 units from the item's start."""
        suggestion_id = _id_of(params)
        length = params.get("acceptedLength")
        if suggestion_id is not None and isinstance(length, int) and length > 0:
            self._suggester.partly_accepted(suggestion_id, length)

    def did_focus(self, params: Mapping[str, Any]) -> None:
        """`textDocument/didFocus`; without a document the user looks at none."""
        document = params.get("textDocument")
        uri = document.get("uri") if isinstance(document, dict) else None
        self._workspace.focus(uri if isinstance(uri, str) else None)


def _id_of(params: Mapping[str, Any]) -> str | None:
    """The first argument of the item's command. Whatever has another form is no report of ours."""
    value: Any = params
    for key in ("item", "command", "arguments"):
        value = value.get(key) if isinstance(value, Mapping) else None
    first = value[0] if isinstance(value, list) and value else None
    return first if isinstance(first, str) else None
