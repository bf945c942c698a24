"""A suggestion's life for one editor: from the question to the outcome."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from calomel.suggest.completer import Completer
from calomel.suggest.gate import Gate
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.status import Status
from calomel.suggest.suggestion import Answer
from calomel.suggest.trigger import Diagnostic, Selected, Trigger

if TYPE_CHECKING:
    from calomel.workspace.settings import SuggestSettings


class Suggester:
    """One per editor client; asyncio, single-threaded. Registers itself as a listener of the workspace."""

    def __init__(
        self,
        workspace: Any,
        builder: Any,
        completer: Completer,
        settings: SuggestSettings,
        *,
        clock: Callable[[], float],
        gate: Gate | None = None,
        outcomes: Any = None,
        rng: random.Random | None = None,
    ) -> None:
        self.settings = settings

    async def inline(
        self, uri: str, offset: int, trigger: Trigger, *, selected: Selected | None = None
    ) -> Answer:
        """Text for the cursor at `offset`. Never raises but CancelledError; cancelling reaches the model."""
        return Silence.of(SilenceReason.NO_MODEL)

    async def next_edit(
        self,
        uri: str,
        version: int | None,
        offset: int,
        *,
        diagnostics: Sequence[Diagnostic] = (),
        trigger: Trigger = Trigger.EDIT,
    ) -> Answer:
        """The next edit of the document, near the cursor or elsewhere in it. Raises as `inline` does."""
        return Silence.of(SilenceReason.NO_MODEL)

    def shown(self, suggestion_id: str) -> None:
        """The client displays it. Unknown ids are tolerated everywhere here."""

    def accepted(self, suggestion_id: str) -> None:
        """The user took all of it."""

    def partly_accepted(self, suggestion_id: str, length: int) -> None:
        """The user took the first `length` UTF-16 units of its insert text, counted from the start each time."""

    def rejected(self, suggestion_id: str, reason: str | None = None) -> None:
        """The user dismissed it."""

    def ignored(self, suggestion_id: str, reason: str) -> None:
        """It went away without the user deciding."""

    def apply_settings(self, settings: SuggestSettings) -> None:
        """Take over changed settings."""

    def toggle(
        self, scope: str = "global", *, uri: str | None = None, language: str | None = None, enabled: bool | None = None
    ) -> bool:
        """Turn suggestions on or off for `global`, `language` or `file`; None for the opposite. Returns what it is now."""
        return True

    def snooze(self, until: float | None) -> None:
        """Be silent until the clock shows `until`; None ends it."""

    def status(self) -> Status:
        """How it is."""
        return Status("unknown", None, "")

    async def aclose(self) -> None:
        """Cancel what runs, settle every outcome. The completer is not closed: it belongs to who made it."""
