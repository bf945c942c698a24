"""Pages and messages read like a native developer's: phrases of a translation get fewer, never more."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.house import words

ALLOWED = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("kind", "texts"), [("pages", words.pages), ("messages", words.messages)])
def test_phrases_of_a_translation_get_fewer(kind: str, texts: Callable[[], Iterator[tuple[str, str]]]) -> None:
    found = words.places(texts())
    more = {name: places for name, places in found.items() if len(places) > ALLOWED[kind].get(name, 0)}
    assert more == {}, "say it in ordinary words"
    counts = {name: len(places) for name, places in found.items() if places}
    assert counts == ALLOWED[kind], "fewer than tests/house/words.toml allows: lower its numbers"
