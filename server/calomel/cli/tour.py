"""What `calomel try` plays: a recording of typing, and what an editor would have shown along."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Final

from calomel.cli.output import visible
from calomel.prompts.parts import Edit
from calomel.replay.events import Event, ReplayLog
from calomel.replay.logs import read_logs
from calomel.replay.opportunity import Opportunity, ReplayOptions
from calomel.replay.player import Player
from calomel.suggest.silence import SilenceReason

if TYPE_CHECKING:
    from calomel.infer.completer import Completer, ModelInfo

_OUTCOMES: Final = {
    "accepted": "right: the author wrote this next",
    "partly": "partly right: the author wrote the beginning of it",
    "rejected": "wrong: the author wrote something else",
    "too_short": "too short to count",
    "superseded": "too late: the author had typed on",
}
# On the log's clock, so that slow and fast machines show the same: an answer, and a pause in the typing.
_LATENCY: Final = 0.1
_DEBOUNCE: Final = 0.15


@dataclass(frozen=True, slots=True)
class Scene:
    """An answer: the file as it was, and the suggestion in it, shown or withheld.

    Attributes:
        path: of the file.
        text: of the file, before the suggestion.
        edits: suggested, sorted.
        outcome: what the person did with it.
        withheld: why an editor does not show it; None if it does.
    """

    path: str
    text: str
    edits: tuple[Edit, ...]
    outcome: str
    withheld: SilenceReason | None = None

    def lines(self) -> Iterator[str]:
        """The suggestion for a terminal: suggested text in ⟦⟧, replaced text in ⟨⟩."""
        row = self.text.count("\n", 0, self.edits[0].start) + 1
        yield f"{visible(self.path)}:{row}"
        yield from (f"    {line}" for line in _touched(self.text, self.edits))
        if self.withheld is None:
            yield f"    {_OUTCOMES[self.outcome]}"
        else:
            yield f"    hidden: {self.withheld.message} {_OUTCOMES[self.outcome].capitalize()}."


class Tour(Player):
    """A replay that tells of each answer. Runs in a `CountingLoop`, like any replay.

    Args:
        log: what is played.
        completer: the model.
        info: describes it.
        show: called with each suggestion, shown or withheld.
        seconds: of this machine's time; what is left of the log then is not played.

    Attributes:
        outcomes: what was shown, by outcome.
        silent: how often nothing was shown.
    """

    def __init__(
        self,
        log: ReplayLog,
        completer: Completer,
        info: ModelInfo,
        show: Callable[[Scene], None],
        *,
        seconds: float,
    ) -> None:
        super().__init__(log, completer, info, ReplayOptions(latency=_LATENCY, debounce_seconds=_DEBOUNCE))
        self.outcomes: Counter[str] = Counter()
        self.silent = 0
        self._show = show
        self._until = time.monotonic() + seconds
        self._seen = 0

    async def watch(self) -> None:
        """Play the log to its end, or until the time is over."""
        try:
            await self.play()
        except TimeoutError:
            await self.suggester.aclose()

    async def step(self, position: int, event: Event) -> None:
        """Tell of the answers to earlier questions, then let the event happen."""
        await self.time.run_to(event.time)
        new = self.result.opportunities[self._seen :]
        self._seen += len(new)
        for each in new:
            self._tell(each)
        if time.monotonic() > self._until:
            raise TimeoutError
        await super().step(position, event)

    def _tell(self, opportunity: Opportunity) -> None:
        text, candidate = self.editor.texts.get(opportunity.path), opportunity.candidate
        if text is None or opportunity.silence == SilenceReason.SUPERSEDED:
            return
        withheld = None if opportunity.silence is None else SilenceReason(opportunity.silence)
        if withheld is not None:
            self.silent += 1
        elif candidate is not None:
            self.outcomes[candidate.outcome] += 1
        if candidate is not None and candidate.edits:
            self._show(Scene(opportunity.path, text, candidate.edits, candidate.outcome, withheld))


def bundled_log() -> ReplayLog:
    """The recording that comes with Calomel."""
    with as_file(files("calomel.cli").joinpath("recordings", "inventory.recording.json")) as path:
        return read_logs(path)[0]


def _touched(text: str, edits: Sequence[Edit]) -> list[str]:
    """The lines that edits touch, with marks."""
    parts: list[str] = []
    at = 0
    for edit in edits:
        old = f"⟨{text[edit.start : edit.end]}⟩" if edit.end > edit.start else ""
        new = f"⟦{edit.text}⟧" if edit.text else ""
        parts += [text[at : edit.start], old, new]
        at = edit.end
    lines = "".join([*parts, text[at:]]).split("\n")
    first = text.count("\n", 0, edits[0].start)
    last = max((row for row, line in enumerate(lines) if any(mark in line for mark in "⟦⟧⟨⟩")), default=first)
    return [visible(line).rstrip() for line in lines[first : last + 1]]
