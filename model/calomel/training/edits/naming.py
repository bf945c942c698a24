"""Names as people change them: a word replaced, added or removed, an abbreviation written out."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Collection, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal

# The replacements that the makers of stories use.
WORDS: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))

Role = Literal["function", "value", "type"]
_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_LONGEST: Final = 36
_TRIES: Final = 12


def joined(words: Sequence[str], like: str, *, camel: bool = False) -> str:
    """Join words in lower case in the style of another name, with its leading and trailing underscores.

    A name of one lower-case word grows like `itemName` with `camel`, else like `item_name`.
    """
    core = like.strip("_")
    if core.isupper() and len(core) > 1:
        body = "_".join(words).upper()
    elif "_" in core or (core.islower() and not camel):
        body = "_".join(words)
    else:
        body = "".join(word[:1].upper() + word[1:] for word in words)
        body = body if core[:1].isupper() else body[:1].lower() + body[1:]
    return like.replace(core, body) if core else like


def words_of(names: Collection[str]) -> tuple[str, ...]:
    """The words that the names of a file are made of, each once, in order."""
    found: dict[str, None] = {}
    for text in names:
        for word in _WORD.findall(text):
            if 3 <= len(word) <= 12 and word.isalpha():  # noqa: PLR2004
                found[word.lower()] = None
    return tuple(found)


def new_name(
    text: str,
    rng: random.Random,
    names: Collection[str],
    *,
    language: str,
    role: Role,
    camel: bool = False,
    near: str = "",
) -> str | None:
    """Another plausible name; None if there is none.

    Args:
        text: the current name.
        rng: draws one of the ways.
        names: those of the file; none of them is returned, and their words are used.
        language: its keywords are not returned.
        role: what is named.
        near: the code around the definition, whose words fit best.
        camel: whether a name of one lower-case word grows like `itemName` instead of `item_name`.
    """
    core = text.strip("_")
    mixed = "_" not in core and not core.islower() and not (core.isupper() and len(core) > 1)
    parts = [word.lower() for word in (_WORD.findall(core) if mixed else core.split("_"))]
    # An acronym inside (HTTPServer) would be lost.
    if not core.isascii() or joined(parts, text) != text:
        return None
    words = words_of(re.findall(r"\w+", near)) or words_of(names)
    vocabulary = [word for word in words if word not in keywords(language)]
    for _ in range(_TRIES):
        others = _other(parts, rng, vocabulary, role)
        if not others or len(set(others)) != len(others):
            continue
        made = joined(others, text, camel=camel)
        if made != text and made not in names and made not in keywords(language) and len(made) <= _LONGEST:
            return made
    return None


def _other(words: Sequence[str], rng: random.Random, vocabulary: Sequence[str], role: Role) -> list[str] | None:
    """Other words, with one replaced, inserted or removed; None if that way is not possible."""
    made = list(words)
    # The first word of a function says what it does.
    first = 1 if role == "function" else 0
    way = rng.choices(("alike", "more", "around", "less"), (14, 4, 3, 2))[0]
    if way == "less":
        if len(made) > 1 + first:
            del made[rng.randrange(first, len(made))]
    elif way == "alike":
        places = [place for place, word in enumerate(made) if word in alike()]
        if places:
            place = rng.choice(places)
            made[place] = rng.choice(alike()[made[place]])
    elif len(made) >= _MOST_WORDS:
        return None
    elif way == "more":
        before = rng.choice(WORDS["before"].split()) if role == "value" and rng.random() < _AT_FRONT else None
        made = [before, *made] if before else [*made, *rng.choice(WORDS["behind"][role].split()).split("_")]
    elif vocabulary:
        made.insert(rng.randrange(first, len(made) + 1), rng.choice(vocabulary))
    return made


_MOST_WORDS: Final = 4
_AT_FRONT: Final = 0.5


_MORE_KEYWORDS: Final = frozenset(WORDS["keywords"].split())
_BUILTINS: Final = {"python": "builtins"}


@cache
def keywords(language: str) -> frozenset[str]:
    """Names that are reserved in a language, and builtins that nobody should shadow."""
    module = _BUILTINS.get(language)
    return _MORE_KEYWORDS if module is None else _MORE_KEYWORDS | frozenset(dir(import_module(module)))


@cache
def alike() -> dict[str, tuple[str, ...]]:
    """For each word the others of its groups."""
    found: dict[str, list[str]] = {}
    for line in WORDS["alike"]:
        group = line.split()
        for word in group:
            found.setdefault(word, []).extend(other for other in group if other != word and len(other) > 1)
    return {word: tuple(others) for word, others in found.items() if others}
