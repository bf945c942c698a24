"""What is still to come, said in the text as it is now."""

from __future__ import annotations

import random
from itertools import pairwise

from calomel.training.edits.scene import Scene, is_silent, pending
from calomel.training.edits.story import Change


def applied(text: str, changes: tuple[Change, ...]) -> str:
    for change in changes:
        text = change.apply(text)
    return text


def test_changes_far_apart_keep_their_texts() -> None:
    changes = (Change(8, 9, "XYZ"), Change(0, 1, "longer"), Change(17, 17, "!"))
    assert pending(changes) == (Change(0, 1, "longer"), Change(8, 9, "XYZ"), Change(10, 10, "!"))


def test_a_change_of_what_another_wrote_is_one_with_it() -> None:
    assert pending((Change(2, 3, "abcd"), Change(3, 5, "-"))) == (Change(2, 3, "a-d"),)


def test_any_changes_lead_to_the_same_text_at_once_as_one_by_one() -> None:
    rng = random.Random(1)
    for _ in range(400):
        text = "".join(rng.choices("abcdef\n", k=30))
        now, changes = text, []
        for _ in range(rng.randint(1, 7)):
            start = rng.randint(0, len(now))
            end = min(len(now), start + rng.choice((0, 0, 1, 2, 6)))
            changes.append(Change(start, end, "".join(rng.choices("XYZ", k=rng.choice((0, 1, 3))))))
            now = changes[-1].apply(now)
        waiting = pending(tuple(changes))
        assert Scene("python", "a.py", text, (), waiting, ()).end() == applied(text, tuple(changes))
        assert all(one.end < other.start for one, other in pairwise(waiting))


def test_a_place_is_silent_when_its_lines_stay() -> None:
    text = "one\ntwo\nthree\nfour\nfive\nsix\n"
    changes = (Change(text.index("six"), text.index("six") + 3, "6"),)
    assert is_silent(text, changes, 0)
    assert not is_silent(text, changes, text.index("five"))
