"""What `calomel demo` shows: a log is played to the real suggester, as in a replay, moment by moment."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from calomel.cli.errors import InputError
from calomel.cli.output import numbered, visible
from calomel.replay.editor import cursor_after
from calomel.replay.events import Changed, Edit, Event, Focused, Opened, ReplayLog, Selected
from calomel.replay.logs import read_logs
from calomel.replay.opportunity import Opportunity, ReplayOptions
from calomel.replay.player import Player
from calomel.suggest.silence import SilenceReason

if TYPE_CHECKING:
    from calomel.infer.completer import Completer, ModelInfo

Mark: TypeAlias = Literal["", "new", "old", "caret"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Text in one style: plain, suggested (`new`), to be removed (`old`), or under the caret."""

    text: str
    mark: Mark = ""


@dataclass(slots=True)
class Tally:
    """The results so far: suggestions by outcome, silences by reason."""

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
        likely: the probability that the suggestion gets accepted, by the calibrator; None if unknown.
        maker: the source that proposed it.
        said: one sentence about what happens.
        outcome: what the person did, in one word; empty while unknown.
    """

    path: str
    text: str
    caret: int
    edits: tuple[Edit, ...] = ()
    likely: float | None = None
    maker: str = ""
    said: str = ""
    outcome: str = ""

    def pieces(self) -> Sequence[Piece]:
        """The text with its suggestion and its caret, in reading order."""
        text, caret = self.text, self.caret
        # A line end is invisible: the caret is shown before it, and before what is suggested in its place.
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
        """First and last line, from 0, that must be visible: the caret's and the suggestion's."""
        offsets = [self.caret, *(each for edit in self.edits for each in (edit.start, edit.end))]
        return self._line(min(offsets)), self._line(max(offsets))

    def place(self) -> str:
        """Where the suggestion is, as `path:line`."""
        start = self.edits[0].start if self.edits else self.caret
        return f"{self.path}:{self._line(start) + 1}"

    def _line(self, offset: int) -> int:
        return self.text.count("\n", 0, offset)


# Seconds at speed 1: long enough to see a moment, short enough not to watch somebody think.
_LONGEST_PAUSE: Final = 0.8
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
    """A replay with spectators. Runs in a `CountingLoop`, like any replay.

    Args:
        log: to be played.
        completer: the model.
        info: of it.
        options: with a fixed latency: the log's clock is not the spectators'.
        tally: counts the results.
        show: shows a moment in place of the one before.
        rest: waits this many seconds, at speed 1; raises OverError when the time is over.
    """

    def __init__(
        self,
        log: ReplayLog,
        completer: Completer,
        info: ModelInfo,
        options: ReplayOptions,
        tally: Tally,
        *,
        show: Callable[[Scene, Tally], None],
        rest: Callable[[float], None],
    ) -> None:
        super().__init__(log, completer, info, options)
        self.tally = tally
        self._all = log.events
        self._show = show
        self._rest = rest
        self._caret = 0
        self._told = 0
        self._last = 0.0
        # Until this second of the log the person types what was accepted, which is already there.
        self._written_until: float | None = None

    async def watch(self) -> None:
        """Play the log to its end, or until the time is over."""
        try:
            await self.play()
        except OverError:
            await self.suggester.aclose()

    async def step(self, position: int, event: Event) -> None:
        """Show the answers to earlier requests, then let the event happen and show that."""
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

    def _show_answer(self, opportunity: Opportunity) -> None:
        """Show one answer: the suggestion, then what became of it; or why there is none."""
        text = self.editor.texts.get(opportunity.path)
        if text is None or opportunity.silence == SilenceReason.SUPERSEDED:
            return
        candidate = opportunity.candidate
        scene = Scene(opportunity.path, text, min(self._caret, len(text)))
        likely = None if candidate is None else candidate.signals.get("likely")
        if opportunity.silence is not None:
            reason = SilenceReason(opportunity.silence)
            self.tally.silent[reason] += 1
            self._present(replace(scene, likely=likely, said=f"silent: {reason.message}"), _SILENCE)
            return
        if candidate is None:
            return
        scene = replace(scene, edits=candidate.edits, likely=likely, maker=candidate.maker)
        self._present(replace(scene, said="suggested; what would the person do?"), _SUGGESTION)
        outcome = candidate.outcome
        self.tally.outcomes[outcome] += 1
        self._present(replace(scene, outcome=outcome, said=_OUTCOMES[outcome]), _OUTCOME)
        if outcome == "accepted":
            self._written_until = candidate.given

    def _present(self, scene: Scene, seconds: float) -> None:
        self._show(scene, self.tally)
        self._rest(seconds)


def resting(
    speed: float | None,
    until: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Callable[[float], None]:
    """A function that waits this many seconds, at speed 1.

    Args:
        speed: how many times as fast as the recording; None does not wait at all.
        until: of `clock`, when the demonstration ends with an OverError; None for its own end.
        clock: seconds.
        sleep: waits for a number of seconds.
    """

    def rest(seconds: float) -> None:
        left = math.inf if until is None else until - clock()
        if left <= 0.0:
            raise OverError
        if speed is not None and seconds > 0.0:
            sleep(min(seconds / speed, left))

    return rest


def open_log(path: Path | None) -> ReplayLog:
    """The log at `path`; None for the bundled one. Raises LogError or InputError when nothing of it can be read."""
    if path is None:
        with as_file(files("calomel.cli").joinpath("recordings", "inventory.recording.json")) as bundled:
            return read_logs(bundled)[0]
    found = read_logs(path)
    if not found:
        raise InputError(f"{path} holds no log")
    return found[0]


_BRACKETS: Final = {"new": "⟦{}⟧", "old": "⟨{}⟩"}


def told(scene: Scene) -> list[str]:
    """A suggestion as lines: who made it, the lines that it touches, and what became of it.

    Suggested text is in ⟦⟧, replaced text in ⟨⟩.
    """
    likely = "" if scene.likely is None else f"{scene.likely:.0%} likely · "
    lines = [f"{scene.place()}  {likely}by {scene.maker or 'the model'}"]
    lines += [f"    {line}" for line in suggested_lines(scene.pieces())]
    return [*lines, f"    {scene.said}"]


def suggested_lines(pieces: Sequence[Piece]) -> Sequence[str]:
    """The lines that a suggestion touches, with its marks."""
    text = ""
    touched: set[int] = set()
    for piece in pieces:
        first = text.count("\n")
        text += _BRACKETS.get(piece.mark, "{}").format(visible(piece.text))
        if piece.mark in _BRACKETS:
            touched.update(range(first, text.count("\n") + 1))
    return [line.rstrip() for number, line in enumerate(text.split("\n")) if number in touched]


_STYLES: Final = {"new": "italic green", "old": "strike red", "caret": "reverse"}
_OUTCOME_STYLES: Final = {"accepted": "bold green", "partly": "green", "rejected": "yellow", "too_short": "dim"}
_MOST_LINES: Final = 26
# Lines of the part below the file.
_SAID_LINES: Final = 6
_FRAMES: Final = 4
_BAR: Final = 20


def picture(scene: Scene, tally: Tally, width: int, height: int) -> RenderableType:
    """A scene for a terminal of this many columns and lines."""
    room = max(6, min(_MOST_LINES, height - _SAID_LINES - _FRAMES - 1))
    frame = partial(Panel, title_align="left", border_style="dim", width=width)
    file = frame(_file(scene, room), title=scene.path, height=room + 2)
    return Group(file, frame(_said(scene, tally), title="calomel", height=_SAID_LINES + 2))


def _file(scene: Scene, room: int) -> Text:
    """As many lines as there is room for, including the caret's and the suggestion's, numbered."""
    text = Text(no_wrap=True, overflow="ellipsis")
    for piece in scene.pieces():
        # A caret between two characters, or at a line's end, needs a width to be visible.
        shown = visible(piece.text) or (" " if piece.mark == "caret" else "")
        text.append(shown, _STYLES.get(piece.mark, ""))
    text.expand_tabs(4)
    lines = text.split("\n", allow_blank=True)
    first, last = scene.focus()
    begin = max(0, min((first + last) // 2 - room // 2, len(lines) - room))
    # If not all fits, show the end.
    if last - begin >= room:
        begin = max(0, last - room + 1)
    out = numbered(Text("\n").join(lines[begin : begin + room]), begin + 1, " ")
    out.no_wrap, out.overflow = True, "ellipsis"
    return out


def _said(scene: Scene, tally: Tally) -> Text:
    out = Text(f"{visible(scene.said) or 'the person types'}\n", _OUTCOME_STYLES.get(scene.outcome, ""))
    if scene.likely is not None:
        filled = round(_BAR * scene.likely)
        out.append("█" * filled, "green")
        out.append("░" * (_BAR - filled), "dim")
        out.append(f" {scene.likely:.0%} likely\n", "default")
    if scene.edits:
        out.append(f"by {scene.maker or 'the model'}, at {scene.place()}\n", "dim")
    out.append(f"{tally}\n", "dim")
    for reason, count in tally.silent.most_common(1):
        out.append(f"silent {tally.silent.total()}, mostly {reason} ({count})\n", "dim")
    out.append("Ctrl-C ends", "dim")
    return out
