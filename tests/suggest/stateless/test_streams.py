from __future__ import annotations

from calomel.prompts.parts import Hunk
from calomel.suggest.stateless import Streams


def hunks(*names: str) -> tuple[Hunk, ...]:
    return tuple(Hunk("a.py", 0, "", f"{name}\n") for name in names)


def test_a_history_that_loses_its_beginning_only_grows_here() -> None:
    streams = Streams()
    first = streams.follow("me", hunks("a", "b", "c"))
    second = streams.follow("me", hunks("b", "c", "d"))

    assert second.hunks == hunks("a", "b", "c", "d")
    assert second.hops == first.hops


def test_a_history_that_was_rewritten_starts_anew() -> None:
    streams = Streams()
    first = streams.follow("me", hunks("a", "b"))
    second = streams.follow("me", hunks("a", "B"))

    assert second.hunks == hunks("a", "B")
    assert second.hops > first.hops


def test_clients_do_not_share_a_history() -> None:
    streams = Streams()
    streams.follow("me", hunks("a", "b"))

    assert streams.follow("you", hunks("b", "c")).hunks == hunks("b", "c")


def test_a_history_does_not_grow_for_ever() -> None:
    streams = Streams()
    names = [str(number) for number in range(400)]
    kept = [len(streams.follow("me", hunks(*names[at : at + 5])).hunks) for at in range(395)]

    assert max(kept) <= 64
