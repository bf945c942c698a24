from __future__ import annotations

from dataclasses import dataclass, field

from tests.replay.scripted import INFO, Scripted, log_of, typed

from calomel.cli.tour import OverError, Scene, Tally, Tour, resting
from calomel.replay.events import ReplayLog
from calomel.replay.log_time import run
from calomel.replay.opportunity import ReplayOptions


@dataclass
class Spectator:
    """Sees what is shown, and lets no time pass."""

    scenes: list[Scene] = field(default_factory=list)
    rests: list[float] = field(default_factory=list)
    patience: float = 1e9

    def show(self, scene: Scene, tally: Tally) -> None:
        self.scenes.append(scene)

    def rest(self, seconds: float) -> None:
        self.rests.append(seconds)
        if sum(self.rests) > self.patience:
            raise OverError


def toured(log: ReplayLog, model: Scripted, spectator: Spectator) -> Tally:
    tally = Tally()

    async def watch() -> None:
        options = ReplayOptions(latency=0.05)
        tour = Tour(log, model, INFO, options, tally, watched=None, show=spectator.show, rest=spectator.rest)
        await tour.watch()

    run(watch())
    return tally


def test_what_the_person_writes_is_typed_before_the_eyes() -> None:
    spectator = Spectator()
    toured(log_of(*typed("x = 1", 0, 1.0)), Scripted({}), spectator)
    texts = [scene.text for scene in spectator.scenes]
    assert [text for at, text in enumerate(texts) if text != texts[at - 1] or at == 0] == [
        "", "x", "x ", "x =", "x = ", "x = 1",
    ]  # fmt: skip
    assert spectator.scenes[-1].caret == 5


def test_an_accepted_suggestion_is_shown_then_counted_and_then_there_at_once() -> None:
    log = log_of(*typed("x = ", 0, 1.0), *typed("compute(1)", 4, 6.0), *typed("\ny", 14, 12.0))
    spectator = Spectator()
    tally = toured(log, Scripted({"x = ": "compute(1)"}), spectator)
    assert str(tally) == "shown 1: accepted 1, partly 0, rejected 0"
    (told,) = (scene for scene in spectator.scenes if scene.outcome)
    assert (told.outcome, told.text, told.edits[0].text) == ("accepted", "x = ", "compute(1)")
    shown = [bool(scene.edits) for scene in spectator.scenes]
    suggested = shown.index(True)
    assert spectator.scenes[suggested].outcome == ""
    # Nobody has to look on while what was accepted is typed.
    behind = [rest for rest, scene in zip(spectator.rests, spectator.scenes, strict=False) if scene.text > "x = c"]
    assert sum(rest == 0.0 for rest in behind) >= len("ompute(1")


def test_a_wrong_suggestion_is_rejected_and_the_person_goes_on() -> None:
    log = log_of(*typed("x = ", 0, 1.0), *typed("other", 4, 6.0), *typed("\ny = 1\nz = 2", 9, 12.0))
    spectator = Spectator()
    tally = toured(log, Scripted({"x = ": "compute(1)"}), spectator)
    assert str(tally) == "shown 1: accepted 0, partly 0, rejected 1"
    assert spectator.scenes[-1].text == "x = other\ny = 1\nz = 2"


def test_a_silence_says_why() -> None:
    spectator = Spectator()
    tally = toured(
        log_of(*typed("x = ", 0, 1.0), *typed("y", 4, 9.0)), Scripted({"x = ": ("guess()", 0.01)}), spectator
    )
    assert tally.silent["low_confidence"] >= 1
    assert "silent: The model was not sure enough." in {scene.said for scene in spectator.scenes}


def test_it_ends_when_the_time_is_over() -> None:
    spectator = Spectator(patience=1.0)
    toured(log_of(*typed("x" * 50, 0, 1.0, gap=0.5)), Scripted({}), spectator)
    assert len(spectator.scenes) < 10


def test_rests_are_as_long_as_the_speed_says_and_never_beyond_the_end() -> None:
    slept: list[float] = []
    now = 0.0
    rest = resting(2.0, until=10.0, clock=lambda: now, sleep=slept.append)
    rest(1.0)
    now = 9.9
    rest(1.0)
    assert slept[0] == 0.5
    assert abs(slept[1] - 0.1) < 1e-9
    now = 10.0
    try:
        rest(0.0)
    except OverError:
        return
    raise AssertionError("the time is over")


def test_without_spectators_nothing_rests() -> None:
    slept: list[float] = []
    resting(None, sleep=slept.append)(5.0)
    assert slept == []
