"""What `calomel demo` shows: a log is played to the real suggester, as a replay does, moment by moment."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from calomel.replay.editor import cursor_after
from calomel.replay.events import Changed, Edit, Event, Focused, Opened, ReplayLog, Selected
from calomel.replay.opportunity import Opportunity, ReplayOptions
from calomel.replay.player import Player
from calomel.suggest.completer import CANVAS, CanvasText, CompleteAnswer, CompleteRequest, FillRequest, Kind
from calomel.suggest.filler import Filler
from calomel.suggest.silence import SilenceReason

if TYPE_CHECKING:
    from calomel.suggest.completer import Completer, ModelInfo


Mark: TypeAlias = Literal["", "new", "old", "caret"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Text that looks alike: as it is, suggested (`new`), to be removed (`old`), or under the caret."""

    text: str
    mark: Mark = ""


@dataclass(slots=True)
class Tally:
    """What came of the moments so far: suggestions by outcome, silences by reason."""

    outcomes: Counter[str] = field(default_factory=Counter)
    silent: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        told = ", ".join(f"{name} {self.outcomes[name]}" for name in ("accepted", "partly", "rejected"))
        return f"shown {self.outcomes.total()}: {told}"


@dataclass(frozen=True, slots=True)
class Scene:
    """One moment.

    Attributes:
        path: of the file.
        text: of it.
        caret: offset in it.
        edits: suggested, sorted.
        canvases: the answer behind each denoising step so far; none when there is nothing to see of it.
        steps: of that answer in all.
        likely: that the suggestion gets accepted, by the calibrator; None where nobody knows.
        maker: who proposed it.
        milliseconds: that the model took.
        said: one sentence about what happens.
        outcome: what the person did, in one word; empty while nobody knows.
    """

    path: str
    text: str
    caret: int
    edits: tuple[Edit, ...] = ()
    canvases: tuple[CanvasText, ...] = ()
    steps: int = 0
    likely: float | None = None
    maker: str = ""
    milliseconds: float = 0.0
    said: str = ""
    outcome: str = ""

    def pieces(self) -> Sequence[Piece]:
        """The text with its suggestion and its caret, in the order of reading."""
        text, caret = self.text, self.caret
        # A line end cannot be seen: the caret stands in front of it, and of what is suggested at its place.
        under = text[caret : caret + 1].rstrip("\n")
        for edit in self.edits:
            if edit.start <= caret < max(edit.end, edit.start + 1):
                caret, under = edit.start, ""
        found: list[Piece] = []
        at, seen = 0, False
        for each in (*self.edits, None):
            end = len(text) if each is None else each.start
            if not seen and caret <= end:
                found += [Piece(text[at:caret]), Piece(under, "caret"), Piece(text[caret + len(under) : end])]
                seen = True
            else:
                found.append(Piece(text[at:end]))
            if each is not None:
                found += [Piece(text[each.start : each.end], "old"), Piece(each.text, "new")]
                at = each.end
        return [piece for piece in found if piece.text or piece.mark == "caret"]

    def focus(self) -> tuple[int, int]:
        """First and last line, from 0, of what has to be seen: the caret, and the suggestion."""
        offsets = [self.caret, *(each for edit in self.edits for each in (edit.start, edit.end))]
        return self._line(min(offsets)), self._line(max(offsets))

    def place(self) -> str:
        """Where the suggestion is, as `path:line`."""
        start = self.edits[0].start if self.edits else self.caret
        return f"{self.path}:{self._line(start) + 1}"

    def _line(self, offset: int) -> int:
        return self.text.count("\n", 0, offset)


# With a threshold that takes more steps there is more to see; `calomel bench infill` fills as many holes with two.
_POLICY = "threshold:0.9"


class WatchedFiller:
    """Fills as another filler does.

    Args:
        filler: closed with this object.
        steps: denoising steps a canvas may take.

    Attributes:
        canvases: of the last fill, one behind each step.
        seconds: that answers took, by kind, since somebody emptied it; what was only looked at does not count.
    """

    def __init__(self, filler: Filler, steps: int) -> None:
        self.canvases: tuple[CanvasText, ...] = ()
        self.seconds: defaultdict[Kind, float] = defaultdict(float)
        self._filler = filler
        self._steps = steps

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Fill the hole, or rewrite the region, of which nothing is kept; cancelling the task cancels the work.

        The canvases take a fill of their own: answering keeps none.
        """
        self.canvases = ()
        asked = self._slow(request) if request.kind == "fill" else request
        with self._timed(request.kind):
            answer = await self._filler.complete(asked)
        if isinstance(asked, FillRequest):
            async with aclosing(self._filler.canvases(asked)) as items:
                self.canvases = tuple([item async for item in items if isinstance(item, CanvasText)])
        return answer

    def close(self) -> None:
        """Stop the engine."""
        self._filler.close()

    @contextmanager
    def _timed(self, kind: Kind) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds[kind] += time.monotonic() - began

    def _slow(self, request: CompleteRequest) -> FillRequest:
        shared = {each.name: getattr(request, each.name) for each in fields(CompleteRequest)}
        return FillRequest(**shared, recall=False, policy=_POLICY, max_steps=self._steps)


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


class Tour(Player):
    """A replay that is looked at. Runs in a `CountingLoop`, as any replay.

    Args:
        log: to be played.
        completer: the model.
        info: of it.
        options: with a fixed latency: the log's clock is not the spectators'.
        tally: counts what comes of it.
        watched: the filler behind `completer`; None where there is nothing to see of it.
        show: shows a moment in the place of the one before.
        rest: lets the spectators look for so many seconds, at speed 1; raises OverError when their time is over.
    """

    def __init__(
        self,
        log: ReplayLog,
        completer: Completer,
        info: ModelInfo,
        options: ReplayOptions,
        tally: Tally,
        *,
        watched: WatchedFiller | None,
        show: Callable[[Scene, Tally], None],
        rest: Callable[[float], None],
    ) -> None:
        super().__init__(log, completer, info, options)
        self.tally = tally
        self._all = log.events
        self._watched = watched
        self._show = show
        self._rest = rest
        self._caret = 0
        self._told = 0
        self._last = 0.0
        # Up to this second of the log the person writes what was accepted: it is there at once.
        self._written_until: float | None = None

    async def watch(self) -> None:
        """Play the log to its end, or to the spectators'."""
        try:
            await self.play()
        except OverError:
            await self.suggester.aclose()

    async def step(self, position: int, event: Event) -> None:
        """Let what was asked be answered and shown, then let the event happen and show that."""
        await self.time.run_to(event.time)
        self._show_answers()
        await super().step(position, event)
        if self._written_until is not None and event.time >= self._written_until:
            self._written_until = None
        self._follow(position, event)
        skipped = self._written_until is not None or isinstance(event, Opened | Focused)
        self._rest(0.0 if skipped else min(_LONGEST_PAUSE, event.time - self._last))
        self._last = event.time

    def _follow(self, position: int, event: Event) -> None:
        """Show where the caret is now."""
        name = self.editor.focused or event.document
        if isinstance(event, Selected) and event.document == name:
            self._caret = event.offset
        elif isinstance(event, Changed) and event.document == name:
            self._caret = cursor_after(event, self._all, position + 1)
        elif isinstance(event, Focused):
            self._caret = 0
        text = self.editor.texts.get(name)
        if text is not None:
            self._show(Scene(name, text, min(self._caret, len(text))), self.tally)

    def _show_answers(self) -> None:
        found = self.result.opportunities[self._told :]
        self._told = len(self.result.opportunities)
        for each in found:
            self._show_answer(each)
        if self._watched is not None:
            self._watched.seconds.clear()

    def _show_answer(self, opportunity: Opportunity) -> None:
        """One answer: its canvases, then the suggestion, then what became of it; or why there is none."""
        text = self.editor.texts.get(opportunity.path)
        if text is None or opportunity.silence == SilenceReason.SUPERSEDED:
            return
        canvases = self._canvases(opportunity)
        candidate = opportunity.candidate
        scene = Scene(
            opportunity.path,
            text,
            min(self._caret, len(text)),
            canvases=canvases,
            steps=len(canvases),
            milliseconds=0.0 if self._watched is None else self._watched.seconds[opportunity.kind] * 1e3,
        )
        likely = None if candidate is None else candidate.signals.get("likely")
        if opportunity.silence is not None:
            reason = SilenceReason(opportunity.silence)
            self.tally.silent[reason] += 1
            self._present(replace(scene, likely=likely, said=f"silent: {reason.message}"), _SILENCE)
            return
        for step in range(1, len(canvases) + 1):
            said = "denoising: a step fixes what the model is sure of"
            self._present(replace(scene, canvases=canvases[:step], said=said), _CANVAS)
        if candidate is None:
            return
        scene = replace(scene, edits=candidate.edits, likely=likely, maker=candidate.maker)
        self._present(replace(scene, said="suggested; what would the person do?"), _SUGGESTION)
        outcome = candidate.outcome
        self.tally.outcomes[outcome] += 1
        self._present(replace(scene, outcome=outcome, said=_OUTCOMES[outcome]), _OUTCOME)
        if outcome == "accepted":
            self._written_until = candidate.given

    def _canvases(self, opportunity: Opportunity) -> tuple[CanvasText, ...]:
        """Those that led to what was suggested; none where a draft was likelier than the model's own words."""
        candidate = opportunity.candidate
        if self._watched is None or opportunity.kind != "fill" or (candidate is not None and candidate.maker != CANVAS):
            return ()
        return self._watched.canvases

    def _present(self, scene: Scene, seconds: float) -> None:
        self._show(scene, self.tally)
        self._rest(seconds)


def resting(
    speed: float | None,
    until: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Callable[[float], None]:
    """Lets spectators look for so many seconds, at speed 1.

    Args:
        speed: how many times as fast as the recording; None does not rest at all.
        until: of `clock`, when the demonstration ends with an OverError; None for its own end.
        clock: seconds.
        sleep: waits for so many of them.
    """

    def rest(seconds: float) -> None:
        left = math.inf if until is None else until - clock()
        if left <= 0.0:
            raise OverError
        if speed is not None and seconds > 0.0:
            sleep(min(seconds / speed, left))

    return rest
