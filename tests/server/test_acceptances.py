from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from calomel.prompts.parts import Hunk
from calomel.server.deliveries import Acceptances, Deliveries
from calomel.suggest.offers import Outcome

BEFORE, AFTER = "    return w\n", "    return width\n"


class Log:
    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def record(self, outcome: Outcome) -> None:
        self.told.append((outcome.id, outcome.outcome, outcome.reason))


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def now() -> SimpleNamespace:
    return SimpleNamespace(seconds=100.0)


@pytest.fixture
def acceptances(log: Log, now: SimpleNamespace) -> Acceptances:
    deliveries = Deliveries(log)
    for name in ("one", "two"):
        deliveries.remember(name, "edit", "m", 0.8, "width")
    return Acceptances(deliveries, lambda: float(now.seconds))


def edit(after: str = AFTER, before: str = BEFORE, path: str = "app/a.py", *, predicted: bool = True) -> Hunk:
    return Hunk(path, 3, before, after, predicted)


def accepted(name: str) -> list[tuple[str, str, str]]:
    return [(name, "shown", ""), (name, "accepted", "by_prompt")]


def test_an_edit_that_the_next_prompt_marks_was_shown_and_accepted_once(acceptances: Acceptances, log: Log) -> None:
    acceptances.seen("ann", [])
    acceptances.offered("ann", "one", [edit(predicted=False)])
    for _ in range(3):
        acceptances.seen("ann", [edit()])

    assert log.told == accepted("one")


def test_what_the_user_wrote_himself_says_nothing(acceptances: Acceptances, log: Log) -> None:
    acceptances.offered("ann", "one", [edit()])
    acceptances.seen("ann", [edit(predicted=False)])

    assert log.told == []


def test_an_answer_that_is_never_seen_again_stays_unknown(acceptances: Acceptances, log: Log) -> None:
    acceptances.offered("ann", "one", [edit()])
    acceptances.seen("ann", [edit("    return something\n")])

    assert log.told == []


def test_of_the_same_edit_offered_twice_the_newer_one_was_accepted(acceptances: Acceptances, log: Log) -> None:
    acceptances.offered("ann", "one", [edit()])
    acceptances.offered("ann", "two", [edit()])
    acceptances.seen("ann", [edit()])
    acceptances.seen("ann", [edit()])

    assert log.told == accepted("two")


def test_an_older_acceptance_of_the_same_text_is_not_counted_again(acceptances: Acceptances, log: Log) -> None:
    acceptances.seen("ann", [edit()])
    acceptances.offered("ann", "one", [edit()])
    acceptances.seen("ann", [edit(), edit("x\n", "y\n", predicted=False)])
    assert log.told == []
    acceptances.seen("ann", [edit(), edit("x\n", "y\n", predicted=False), edit()])

    assert log.told == accepted("one")


@pytest.mark.parametrize(
    "marked",
    [
        edit(before="    return wi\n"),
        edit("    width = 1\n" + AFTER, "    w = 1\n" + BEFORE),
        edit(path="a.py"),
        edit(AFTER.removesuffix("\n")),
    ],
)
def test_an_acceptance_is_found_when_it_began_as_typing_or_is_told_with_its_neighbours(
    acceptances: Acceptances, log: Log, marked: Hunk
) -> None:
    acceptances.offered("ann", "one", [edit()])
    acceptances.seen("ann", [marked])

    assert log.told == accepted("one")


def test_a_deletion_is_found_by_what_was_there(acceptances: Acceptances, log: Log) -> None:
    acceptances.offered("ann", "one", [edit("", "import os\n")])
    acceptances.seen("ann", [edit("", "import re\n")])
    assert log.told == []
    acceptances.seen("ann", [edit("", "import re\nimport os\n")])

    assert log.told == accepted("one")


@pytest.mark.parametrize(
    "other",
    [
        lambda a: a.seen("bob", [edit()]),
        lambda a: a.seen("ann", [edit(path="app/b.py")]),
        lambda a: a.seen("ann", [edit(path="xapp/a.py")]),
    ],
)
def test_other_clients_and_other_files_say_nothing(
    acceptances: Acceptances, log: Log, other: Callable[[Acceptances], None]
) -> None:
    acceptances.offered("ann", "one", [edit()])
    other(acceptances)

    assert log.told == []


def test_what_was_offered_long_ago_is_not_meant(acceptances: Acceptances, log: Log, now: SimpleNamespace) -> None:
    acceptances.offered("ann", "one", [edit()])
    now.seconds += 901
    acceptances.seen("ann", [edit()])

    assert log.told == []


def test_clients_without_end_take_no_memory_without_end(acceptances: Acceptances) -> None:
    for number in range(1000):
        acceptances.offered(f"client {number}", "one", [edit()] * 3)
    for _ in range(1000):
        acceptances.offered("ann", "one", [edit()])

    assert len(acceptances._clients) == 256
    assert len(acceptances._clients["ann"].offers) == 64
