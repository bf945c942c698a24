"""`calomel.showContext`: what the model would see at a cursor, part by part, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calomel.context.builder import ContextBuilder, part_texts
from calomel.lsp.cursor import Cursors
from calomel.lsp.next_edit import document_of, position_of
from calomel.lsp.protocol import InvalidParamsError
from calomel.suggest.silence import Silence
from calomel.workspace.workspace import Workspace


class ContextView:
    """Builds a context as a question would, and shows it.

    Args:
        budget: tokens that a question would get now.
    """

    def __init__(
        self, workspace: Workspace, cursors: Cursors, builder: ContextBuilder, budget: Callable[[], int]
    ) -> None:
        self._workspace = workspace
        self._cursors = cursors
        self._builder = builder
        self._budget = budget

    async def show(self, argument: object) -> dict[str, Any]:
        """The parts at `{textDocument, position}`, secrets masked as they are for the model."""
        if not isinstance(argument, dict):
            raise InvalidParamsError("calomel.showContext takes an object with textDocument and position.")
        uri, _ = document_of(argument)
        cursor = self._cursors.find(uri, *position_of(argument.get("position")))
        verdict = None if isinstance(cursor, Silence) else self._workspace.verdict(cursor.document)
        if verdict is not None and not verdict.allowed:
            cursor = Silence.kept(verdict.reason)
        if isinstance(cursor, Silence):
            return {"parts": [], "reason": cursor.reason.value, "message": cursor.message}
        situation = self._workspace.situation(uri, cursor.offset)
        if situation is None:
            return {"parts": []}
        built = self._builder.build(situation, self._budget())
        texts = part_texts(built.parts)
        return {
            "parts": [
                {"part": each.part, "tokens": each.tokens, "why": each.why, "text": texts.get(each.part, "")}
                for each in built.accounts
            ],
            "budget": self._budget(),
        }
