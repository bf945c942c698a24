"""Plays a log to the real suggester, as a replay does, and shows each moment of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from calomel.cli.stage.scene import Scene, Tally
from calomel.replay.editor import cursor_after
from calomel.replay.events import Changed, Event, Focused, Opened, Selected
from calomel.replay.player import Player
from calomel.suggest.completer import CANVAS
from calomel.suggest.silence import SilenceReason

if TYPE_CHECKING:
    from calomel.cli.stage.watched_filler import WatchedFiller
    from calomel.replay.events import ReplayLog
    from calomel.replay.opportunity import Opportunity, ReplayOptions
    from calomel.suggest.canvas_text import CanvasText
    from calomel.suggest.completer import Completer, ModelInfo

# Seconds at speed 1. Nobody looks at somebody who thinks for longer, or sees what is there for less.
_LONGEST_PAUSE: Final = 0.8
_CANVAS: Final = 0.25
_SUGGESTION: Final = 1.6
_OUTCOME: Final = 1.2
_SILENCE: Final = 0.1

_OUTCOMES: Final = {
    "accepted": "accepted: this is what the person wrote next",
    "partly": "taken in part: the person wrote the beginning of it",
    "rejected": "rejected: the person wrote something else",
    "too_short": "too short to count: of a few letters some are right by chance",
    "superseded": "too late: the person had typed on",
}


class OverError(Exception):
    """The time for the demonstration is over."""


class View(Protocol):
    """Who shows scenes."""

    def show(self, scene: Scene, tally: Tally) -> None:
        """Show a moment in the place of the one before."""

    def tell(self, scene: Scene) -> None:
        """Something was suggested, and what the person did is known: for those who only write down what happened."""


class Pace(Protocol):
    """How time passes for those who look."""

    def rest(self, seconds: float) -> None:
        """Let them look for so long, at speed 1. Raises OverError when the time is over."""


class Tour(Player):
    """A replay that is looked at. Runs in a `CountingLoop`, as any replay.

    Args:
        log: to be played.
        completer: the model.
        info: of it.
        options: with a fixed latency: the log's clock is not the spectators'.
        watched: the filler behind `completer`; None where there is nothing to see of it.
        view: shows scenes.
        pace: says how long.
    """

    def __init__(
        self,
        log: ReplayLog,
        completer: Completer,
        info: ModelInfo,
        options: ReplayOptions,
        *,
        watched: WatchedFiller | None,
        view: View,
        pace: Pace,
    ) -> None:
        super().__init__(log, completer, info, options)
        self.tally = Tally()
        self._all = log.events
        self._watched = watched
        self._view = view
        self._pace = pace
        self._caret = 0
        self._told = 0
        self._last = 0.0
        self._scene: Scene | None = None
        # Up to this second of the log the person writes what was accepted: it is there at once.
        self._written_until: float | None = None

    async def step(self, position: int, event: Event) -> None:
        """Let what was asked be answered and shown, then let the event happen and show that."""
        await self.time.run_to(event.time)
        self._show_answers()
        await super().step(position, event)
        if self._written_until is not None and event.time >= self._written_until:
            self._written_until = None
        self._follow(position, event)
        skipped = self._written_until is not None or isinstance(event, Opened | Focused)
        if self._scene is not None:
            self._view.show(self._scene, self.tally)
        self._pace.rest(0.0 if skipped else min(_LONGEST_PAUSE, event.time - self._last))
        self._last = event.time

    def _follow(self, position: int, event: Event) -> None:
        """Where the caret is now, and what is on the screen."""
        name = self.editor.focused or event.document
        if isinstance(event, Selected) and event.document == name:
            self._caret = event.offset
        elif isinstance(event, Changed) and event.document == name:
            self._caret = cursor_after(event, self._all, position + 1)
        elif isinstance(event, Focused):
            self._caret = 0
        text = self.editor.texts.get(name)
        if text is not None:
            self._scene = Scene(name, text, min(self._caret, len(text)))

    def _show_answers(self) -> None:
        found = self.result.opportunities[self._told :]
        self._told = len(self.result.opportunities)
        for each in found:
            self._show(each)
        if self._watched is not None:
            self._watched.seconds.clear()

    def _show(self, opportunity: Opportunity) -> None:
        """One answer: its canvases, then the suggestion, then what became of it; or why there is none."""
        text = self.editor.texts.get(opportunity.path)
        if text is None or opportunity.silence == SilenceReason.SUPERSEDED:
            return
        canvases = self._canvases(opportunity)
        scene = Scene(
            opportunity.path,
            text,
            min(self._caret, len(text)),
            steps=len(canvases),
            milliseconds=0.0 if self._watched is None else self._watched.seconds[opportunity.kind] * 1e3,
        )
        if opportunity.silence is not None:
            self._be_silent(opportunity, replace(scene, canvas=canvases[-1] if canvases else None))
            return
        for canvas in canvases:
            self._present(
                replace(scene, canvas=canvas, said="denoising: a step fixes what the model is sure of"), _CANVAS
            )
        self._suggest(opportunity, replace(scene, canvas=canvases[-1] if canvases else None))

    def _canvases(self, opportunity: Opportunity) -> tuple[CanvasText, ...]:
        """Those that led to what was suggested; none where a draft was likelier than the model's own words."""
        candidate = opportunity.candidate
        if self._watched is None or opportunity.kind != "fill" or (candidate is not None and candidate.maker != CANVAS):
            return ()
        return self._watched.canvases

    def _be_silent(self, opportunity: Opportunity, scene: Scene) -> None:
        reason = str(opportunity.silence)
        self.tally.silent[reason] = self.tally.silent.get(reason, 0) + 1
        said = f"silent: {SilenceReason(reason).message}"
        self._present(replace(scene, likely=_likely(opportunity), said=said), _SILENCE)

    def _suggest(self, opportunity: Opportunity, scene: Scene) -> None:
        candidate = opportunity.candidate
        if candidate is None:
            return
        scene = replace(scene, edits=candidate.edits, likely=_likely(opportunity), maker=candidate.maker)
        self._present(replace(scene, said="suggested; what would the person do?"), _SUGGESTION)
        self.tally.shown += 1
        if candidate.outcome in {"accepted", "partly", "rejected"}:
            setattr(self.tally, candidate.outcome, getattr(self.tally, candidate.outcome) + 1)
        final = replace(scene, outcome=candidate.outcome, said=_OUTCOMES[candidate.outcome])
        self._present(final, _OUTCOME)
        self._view.tell(final)
        if candidate.outcome == "accepted":
            self._written_until = candidate.given

    def _present(self, scene: Scene, seconds: float) -> None:
        self._scene = scene
        self._view.show(scene, self.tally)
        self._pace.rest(seconds)


def _likely(opportunity: Opportunity) -> float | None:
    return None if opportunity.candidate is None else opportunity.candidate.signals.get("likely")
