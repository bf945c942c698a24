"""The editor that a bench plays edits in: the workspace, context and suggestions of the real one, on a log's clock."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from calomel.bench.suite import SuiteError
from calomel.code.trees import Work
from calomel.infer.client import ModelClient
from calomel.infer.completer import Completer, Kind
from calomel.infer.models import Models
from calomel.prompts.parts import Edit, Hunk, changed_span
from calomel.replay.editor import Editor
from calomel.replay.events import Event
from calomel.replay.log_time import Decisions
from calomel.suggest.edit import Answer
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.snapshot import Trigger
from calomel.suggest.suggester import Suggester
from calomel.workspace.documents import Document
from calomel.workspace.settings import SuggestSettings

# Reasons that mean there was no answer, rather than that the model chose silence. A timeout is not among them: the user
# sees nothing then.
BROKEN: Final = frozenset(
    {SilenceReason.FAILED, SilenceReason.NO_MODEL, SilenceReason.LOADING, SilenceReason.OVERLOADED}
)


class Room:
    """One editor; its clock starts at the log's time and runs on from there.

    Explicit requests have the same threshold: the suite's requests are explicit, and it scores silence all the same.
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
        # Whether a text gets a tree must not depend on how busy the machine is.
        self._editor = Editor(self.clock, parsing=Work())
        self.decisions = Decisions()
        self.suggester = Suggester(
            self._editor.workspace,
            Models.of(ModelClient.of(completer, clock=self.clock)),
            settings,
        )
        self.suggester.filter.watch = self.decisions
        self.suggester.filter.strict, self.suggester.filter.audit = True, audit

    def clock(self) -> float:
        """Seconds."""
        return self._now + time.monotonic() - self._since

    def play(self, events: Sequence[Event]) -> None:
        """Apply a log's events."""
        for event in events:
            self._now, self._since = max(self._now, event.time), time.monotonic()
            self._editor.send(event)

    def settle(self) -> None:
        """Mark the last edit as finished, as a save or the next edit does in an editor."""
        self._editor.workspace.history.settle()

    def document(self, path: str) -> Document:
        """An open document."""
        found = self._editor.document(path)
        if found is None:
            raise ValueError(f"{path} is not open")
        return found

    def hunks(self, path: str) -> tuple[Hunk, ...]:
        """The last edits of one document, oldest first, including the unfinished one."""
        history = self._editor.workspace.history
        return tuple(hunk for hunk in (*history.settled(), *history.open_edit()) if hunk.path == path)

    async def ask(
        self, name: str, path: str, cursor: int, trigger: Trigger = Trigger.EDIT, *, kind: Kind = "edit"
    ) -> tuple[Answer, float]:
        """Ask for the next edit, or text for the cursor; returns the answer and its milliseconds.

        `name` is the question's.

        Raises:
            SuiteError: the model was unavailable, or failed.
        """
        began = time.perf_counter()
        uri = self.document(path).uri
        if kind == "edit":
            found = await self.suggester.next_edit(uri, None, cursor, trigger=trigger)
        else:
            found = await self.suggester.inline(uri, cursor, trigger)
        milliseconds = (time.perf_counter() - began) * 1e3
        if isinstance(found, Silence) and found.reason in BROKEN:
            raise SuiteError(f"{name}: the model did not answer: {found.reason}. {found.message}")
        return found, milliseconds


def silences(reasons: Iterable[str | None]) -> tuple[str, ...]:
    """A note on why nothing was shown; empty where something always was."""
    counts = sorted(Counter(filter(None, reasons)).items())
    return (f"Silences: {', '.join(f'{reason} {count}' for reason, count in counts)}.",) if counts else ()


# Keeps words whole.
_PIECE: Final = re.compile(r"\w+|\W")


def repeat_last(text: str, hunks: Sequence[Hunk], cursor: int) -> Edit | None:
    """The last edit, repeated at the next occurrence of its old text; None where there is none.

    Args:
        text: the document's.
        hunks: its own edits, newest last.
        cursor: offset; occurrences after it come first.
    """
    if not hunks:
        return None
    old, new = substitution(hunks[-1].before, hunks[-1].after)
    if not old.strip():
        return None
    left = r"(?<!\w)" if re.match(r"\w", old) else ""
    right = r"(?!\w)" if re.search(r"\w\Z", old) else ""
    places = [match.start() for match in re.finditer(left + re.escape(old) + right, text)]
    # Where the new text contains the old one, occurrences already edited do not count.
    inside = new.find(old)
    if inside >= 0:
        places = [at for at in places if text[at - inside : at - inside + len(new)] != new or at < inside]
    if not places:
        return None
    at = next((at for at in places if at >= cursor), places[0])
    return Edit(at, at + len(old), new)


def substitution(before: str, after: str) -> tuple[str, str]:
    """The old and the new text without their common prefix and suffix, in whole words."""
    old, new = _PIECE.findall(before), _PIECE.findall(after)
    start, end, new_end = changed_span(old, new)
    return "".join(old[start:end]), "".join(new[start:new_end])
