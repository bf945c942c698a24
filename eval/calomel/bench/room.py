"""One editor that a bench plays edits in: the workspace, context and suggestions of the real one, on a log's clock."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from calomel.bench.suite import SuiteError
from calomel.context.budget import EstimateCounter
from calomel.context.builder import ContextBuilder
from calomel.prompts.parts import Hunk
from calomel.replay.editor import Editor
from calomel.replay.events import Event
from calomel.replay.watching import Decisions
from calomel.suggest.completer import Completer
from calomel.suggest.edit import Answer
from calomel.suggest.question import Trigger
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.suggester import Suggester
from calomel.workspace.documents import Document
from calomel.workspace.settings import SuggestSettings

# Reasons that say that there was no answer, which is no silence of a model's own. Whoever waits for an answer that
# does not come in time sees nothing.
BROKEN: Final = frozenset(
    {SilenceReason.FAILED, SilenceReason.NO_MODEL, SilenceReason.LOADING, SilenceReason.OVERLOADED}
)


class Room:
    """One editor; its clock is the log's, and goes on from there as time passes.

    The same threshold holds for those who ask by a key: the suite asks so, and scores who stays silent all the same.
    """

    def __init__(
        self,
        completer: Completer,
        settings: SuggestSettings | None = None,
        *,
        audit: bool = False,
    ) -> None:
        self._now, self._since = 0.0, time.monotonic()
        settings = settings or SuggestSettings(debounce_seconds=0.0)
        self._editor = Editor(self.clock)
        self.decisions = Decisions()
        self.suggester = Suggester(
            self._editor.workspace,
            ContextBuilder(EstimateCounter()),
            completer,
            settings,
            clock=self.clock,
            sleep=asyncio.sleep,
        )
        self.suggester.filter.watch = self.decisions
        self.suggester.filter.strict, self.suggester.filter.audit = True, audit

    def clock(self) -> float:
        """Seconds."""
        return self._now + time.monotonic() - self._since

    def play(self, events: Sequence[Event]) -> None:
        """Do what a log says."""
        for event in events:
            self._now, self._since = max(self._now, event.time), time.monotonic()
            self._editor.send(event)

    def settle(self) -> None:
        """The last edit is finished; an editor would say so by a save or by the next edit."""
        self._editor.workspace.history.settle()

    def document(self, path: str) -> Document:
        """An open document."""
        found = self._editor.document(path)
        if found is None:
            raise ValueError(f"{path} is not open")
        return found

    def hunks(self, path: str) -> tuple[Hunk, ...]:
        """The last edits of one document, oldest first, the one that is being made included."""
        history = self._editor.workspace.history
        return tuple(hunk for hunk in (*history.settled(), *history.open_edit()) if hunk.path == path)

    async def ask(self, name: str, path: str, cursor: int, trigger: Trigger = Trigger.EDIT) -> tuple[Answer, float]:
        """Which edit comes next, and the milliseconds that this took; `name` is of the question.

        Raises:
            SuiteError: the model was not there, or broke.
        """
        began = time.perf_counter()
        found = await self.suggester.next_edit(self.document(path).uri, None, cursor, trigger=trigger)
        milliseconds = (time.perf_counter() - began) * 1e3
        if isinstance(found, Silence) and found.reason in BROKEN:
            raise SuiteError(f"{name}: the model did not answer: {found.reason}. {found.message}")
        return found, milliseconds


def silences(reasons: Iterable[str | None]) -> tuple[str, ...]:
    """A note on why nothing was shown; none where something always was."""
    counts = sorted(Counter(filter(None, reasons)).items())
    return (f"Silences: {', '.join(f'{reason} {count}' for reason, count in counts)}.",) if counts else ()
