from __future__ import annotations

import pytest

from calomel.suggest.pace import FIRST_GAP, LONGEST_WAIT, Cooldown, Debounce, Latency
from calomel.suggest.session import Switches
from calomel.workspace.documents import Document
from calomel.workspace.settings import SuggestSettings


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def typing(gap: float, keys: int = 20) -> tuple[Debounce, Clock]:
    clock = Clock()
    debounce = Debounce(clock)
    for _ in range(keys):
        clock.now += gap
        debounce.key()
    return debounce, clock


def test_a_slow_typist_is_waited_for_longer_than_a_fast_one() -> None:
    assert typing(0.3)[0].wait("a", 0.0) > typing(0.1)[0].wait("a", 0.0) > 0.1


def test_a_pause_for_thought_is_no_rhythm() -> None:
    debounce, clock = typing(0.1)
    clock.now += 60.0
    debounce.key()
    assert debounce.usual_gap == pytest.approx(0.1)


def test_before_anything_is_known_the_usual_rhythm_of_people_counts() -> None:
    debounce, _ = typing(0.1, keys=1)
    assert debounce.usual_gap == FIRST_GAP


def test_where_a_word_may_begin_the_wait_is_shorter() -> None:
    debounce, _ = typing(0.2)
    assert debounce.wait(".", 0.0) < debounce.wait("a", 0.0)


def test_what_the_model_takes_anyway_is_not_waited_for() -> None:
    debounce, _ = typing(0.2)
    assert debounce.wait("a", 0.1) == pytest.approx(debounce.wait("a", 0.0) - 0.1)


def test_the_time_since_the_last_key_counts() -> None:
    debounce, clock = typing(0.2)
    whole = debounce.wait("a", 0.0)
    clock.now += 0.1
    assert debounce.wait("a", 0.0) == pytest.approx(whole - 0.1)
    clock.now += 5.0
    assert debounce.wait("a", 0.0) == 0.0


def test_a_cursor_that_moves_without_typing_is_not_waited_for() -> None:
    assert Debounce(Clock()).wait("a", 0.0) == 0.0


def test_patience_lengthens_the_wait_up_to_a_second() -> None:
    debounce, _ = typing(0.2)
    assert debounce.wait("a", 0.0) < debounce.wait("a", 0.0, 2.0) <= LONGEST_WAIT
    assert debounce.wait("a", 0.0, 50.0) == LONGEST_WAIT


def test_a_wait_that_the_user_set_is_kept() -> None:
    clock = Clock()
    debounce = Debounce(clock, fixed=0.75)
    debounce.key()
    assert debounce.wait(".", 0.3, 5.0) == 0.75


def test_two_rejections_bring_no_pause_and_each_further_one_a_longer_one() -> None:
    clock = Clock()
    cooldown = Cooldown(clock)
    pauses = []
    for _ in range(7):
        cooldown.rejected()
        pauses.append(cooldown.left)
    assert pauses == [0.0, 0.0, 5.0, 10.0, 20.0, 40.0, 60.0]
    clock.now += 61.0
    assert cooldown.left == 0.0


def test_an_acceptance_ends_the_pause() -> None:
    cooldown = Cooldown(Clock())
    for _ in range(4):
        cooldown.rejected()
    cooldown.accepted()
    assert (cooldown.left, cooldown.counts) == (0.0, (1, 4))


def test_rejections_are_forgotten_slowly() -> None:
    clock = Clock()
    cooldown = Cooldown(clock)
    assert cooldown.patience == 1.0
    cooldown.rejected()
    assert cooldown.patience == pytest.approx(1.5)
    clock.now += 600.0
    assert 1.0 < cooldown.patience < 1.2


def test_latency_is_told_by_rank() -> None:
    latency = Latency()
    assert latency.quantile(0.5) is None
    for seconds in (0.4, 0.1, 0.3, 0.2):
        latency.add(seconds)
    assert (latency.quantile(0.5), latency.quantile(0.95), latency.quantile(0.0)) == (0.2, 0.4, 0.1)


def test_what_the_user_said_by_hand_comes_before_the_settings() -> None:
    switches = Switches(Clock())
    settings = SuggestSettings(enabled=False)
    python, go = (Document(f"file:///{name}", name, 1, "") for name in ("python", "go"))
    assert switches.off(settings, python) == "off_globally"
    assert switches.toggle("global", None, settings, enabled=None)
    assert not switches.toggle("language", "python", settings, enabled=False)
    assert switches.off(settings, python) == "off_language"
    assert switches.off(settings, go) is None
    for scope in ("galaxy", "language"):
        with pytest.raises(ValueError, match="scope"):
            switches.toggle(scope, None, settings, enabled=True)
