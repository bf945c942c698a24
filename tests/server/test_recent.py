from __future__ import annotations

from calomel.server.metrics import Recent, Spent
from calomel.suggest.completer import CanvasText


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def test_the_newest_answers_come_first() -> None:
    recent = Recent(now=lambda: 5.0)
    for name in "abc":
        recent.add(name, "fim", Spent())

    assert [(entry.id, entry.at) for entry in recent.entries(2)] == [("c", 5.0), ("b", 5.0)]
    assert recent.entries(0) == []


def test_the_pace_is_that_of_the_last_minute() -> None:
    clock = Clock()
    recent = Recent(clock)
    recent.add("old", "fim", Spent(completion_tokens=99, seconds=9.0))
    clock.at += 100
    for number in range(20):
        clock.at += 1
        recent.add(str(number), "fim", Spent(completion_tokens=3, seconds=number / 1000))
    clock.at += 1

    pace = recent.pace()
    assert (pace.seconds, pace.answers_per_second, pace.tokens_per_second) == (60.0, 20 / 60, 1.0)
    assert (pace.p50_ms, pace.p95_ms) == (10.0, 19.0)
    assert pace.by_second == [0] * 40 + [1] * 20


def test_a_server_that_has_answered_nothing_has_no_times() -> None:
    pace = Recent(Clock()).pace()

    assert (pace.answers_per_second, pace.p50_ms, pace.by_second) == (0, None, [0])


def test_recordings_are_kept_until_they_take_too_much_memory() -> None:
    recent = Recent()
    recent.add("small", "fim", Spent(), [CanvasText(1, "x", ("x",), (True,))])
    assert recent.recording("small") is not None
    large = [CanvasText(step, "x" * 1024, ("x" * 1024,), (True,)) for step in range(512)]
    for number in range(20):
        recent.add(str(number), "fim", Spent(), large)

    kept = [str(number) for number in range(20) if recent.recording(str(number)) is not None]
    assert kept == ["16", "17", "18", "19"]
    assert recent.recording("small") is None
    assert recent.recording("19") == tuple(large)
    assert recent.recording("nobody") is None


def test_recordings_are_few_however_small() -> None:
    recent = Recent()
    for number in range(1000):
        recent.add(str(number), "fim", Spent(), [CanvasText(1, "")])

    assert sum(recent.recording(str(number)) is not None for number in range(1000)) == 256
