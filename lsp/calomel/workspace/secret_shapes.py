"""Secrets that are recognised by their shape: a literal that starts them, and what follows it.

The prefixes are those that their issuers publish, so that scanners like this one can find leaked ones. A secret that
is being typed is recognised before it is whole: as soon as what follows the prefix is no word any more.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

# What a reader takes for one word or number: `getHTTPResponse2` has four.
_PIECE: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
# Mean length of these pieces. Random letters and digits of base 62 have 2.2, of hexadecimal 2.1, of lower-case base 36
# 2.5; names in the standard library of Python have more than 5.
_LONGEST_PIECES: Final = 3.0
# The 180 pairs of letters that make 84 % of all pairs in the 12,939 words of Python's standard library; of random
# letters they make 27 %.
_TABLE: Final = (
    "abacadagaialamanaparasataybabebiblbobucacechcickclcocrctcudadedidodrdsdueaecedeeefegelemeneperesetevexfafefffi"
    "flfofrgegigrhahehihoiaibicidieifigiliminioipirisitivizkelaldlelilllolsltlymamemimompnancndnenfngninonsntobocod"
    "olomonoooporosotouowpapepiplpoppprptqurarcrdrerirmrorrrsrtrysascseshsisospssstsutatctethtitltotptrtstttutyubue"
    "ulumunupurusutvaveviwawixtypze"
)
_PAIRS: Final = frozenset(_TABLE[at : at + 2] for at in range(0, len(_TABLE), 2))
# Above the one there are words, however short their pieces; below the other there are none, however long.
_SURELY_WORDS: Final = 0.7
_PERHAPS_WORDS: Final = 0.55
_FEWEST_PAIRS: Final = 8
_LETTERS: Final = re.compile(r"[a-z]{2,}")
_HEX_RUN: Final = re.compile(r"[0-9a-f]{24,}|[0-9A-F]{24,}")
_ENOUGH: Final = 256


def looks_random(text: str) -> bool:
    """Whether ASCII letters and digits follow each other as no names do; short texts may look so by accident."""
    text = text[:_ENOUGH]
    pieces = _PIECE.findall(text)
    if len(pieces) < 2:  # noqa: PLR2004 - one word or one number
        return False
    digits, lower, upper = any(map(str.isdigit, pieces)), any(map(_has_lower, pieces)), any(map(_has_upper, pieces))
    if digits + lower + upper < 2:  # noqa: PLR2004 - of one kind
        return False
    if _HEX_RUN.search(text):
        return True
    pairs = [a + b for run in _LETTERS.findall(text.lower()) for a, b in pairwise(run)]
    wordlike = sum(map(_PAIRS.__contains__, pairs)) / len(pairs) if len(pairs) >= _FEWEST_PAIRS else None
    if sum(map(len, pieces)) <= _LONGEST_PIECES * len(pieces):
        return wordlike is None or wordlike < _SURELY_WORDS
    return digits and wordlike is not None and wordlike < _PERHAPS_WORDS


def _has_lower(text: str) -> bool:
    return text[-1].islower()


def _has_upper(text: str) -> bool:
    return text[0].isupper()


Found = tuple[int, int, str]

_URLSAFE: Final = r"[A-Za-z0-9_-]"
# No known secret is longer; a match is bounded so that a line of a megabyte costs what its length says.
_LONGEST: Final = 4096
_LONG_WORD: Final = re.compile(r"[A-Za-z0-9_./+:~-]{8,}")
# A word of small letters alone is a name.
_NOTABLE: Final = re.compile(r"[A-Z0-9]")
# Between two parts of a text in quotes: `"ghp_" + "…"`.
JOINT: Final = re.compile(r"""["'`][ \t]{0,16}[+.&|]{0,2}[ \t]{0,16}[brf]?["'`]""")
_WORD: Final = re.compile(r"[A-Za-z0-9_]")
# Of these few characters nothing was ever generated: `xxxxxxxx`, `00000000`, a row of asterisks.
_FEWEST_DISTINCT: Final = 4
# `xoxb-your-token-here`, `npm_config_registry`
_WORDS: Final = re.compile(r"[a-z_.-]+")


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape.

    Attributes:
        kind: name of the rule.
        literal: how it starts.
        body: the characters that follow, as many as there are.
        full: so many of them are a secret without further questions.
        early: so many are one if they look random; 0 when only the whole is.
    """

    kind: str
    literal: str
    body: re.Pattern[str]
    full: int
    early: int


def _shapes(tables: Mapping[str, Any]) -> Iterator[Shape]:
    for kind, rows in tables.items():
        for literals, characters, full, early in rows:
            body = re.compile(f"{characters}{{1,{_LONGEST}}}")
            yield from (Shape(kind, literal, body, full, early) for literal in literals.split())


# What no model may see: shapes of secrets, and names of files and services.
TABLES: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("privacy.toml").read_text("utf-8"))
SHAPES: Final = tuple(_shapes(TABLES["shapes"]))

# Tokens whose telling part stands in their middle. What is in front of it is bounded, and does not begin within a word.
_MIDDLES: Final = (
    ("telegram_token", ":AA", re.compile(r"(?<!\w)\d{8,10}:AA[\w-]{32,34}(?![\w-])")),
    ("mailchimp_key", "-us", re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{32}-us\d{1,2}(?![0-9A-Za-z])")),
    ("azure_secret", "Q~", re.compile(r"(?<![\w.~-])[\w.~-]{3}\dQ~[\w.~-]{31,40}(?![\w.~-])")),
    ("terraform_token", ".atlasv1.", re.compile(r"(?<!\w)[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,80}")),
    ("airtable_token", "pat", re.compile(r"(?<!\w)pat[A-Za-z0-9]{14}\.[0-9a-f]{64}(?!\w)")),
    ("discord_token", ".", re.compile(r"(?<![\w-])[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,45}(?![\w-])")),
)

# Header, payload, signature; the first two are JSON objects. While it is typed, the header alone is long enough.
_JWT: Final = re.compile(rf"eyJ{_URLSAFE}{{12,{_LONGEST}}}(?:\.{_URLSAFE}{{0,{_LONGEST}}}){{0,4}}")
# The password in `scheme://user:password@host`; not a place for one, such as `{password}` or `$PASSWORD`.
_URL: Final = re.compile(
    r"""://[^\s/:@"'`<>(){}\\]{0,256}:(?P<secret>(?![{$<%*])[^\s/@"'`<>\\{}]{1,256})@(?=[\w.\[$%{<-])"""
)
_SAID: Final = r"""(?P<secret>(?![$<{%])[^\s"'`$]{4,200})"""
_PAIR: Final = re.compile(rf"[ \t]{{0,16}}[\"'][^\"'\n]{{1,100}}[\"'],[ \t]{{0,16}}[\"']{_SAID}[\"']")
# What HTTP headers, signed addresses, command lines and SQL put in front of a credential.
_PHRASES: Final = {
    "bearer ": re.compile(r"[ \t]*(?P<secret>[A-Za-z0-9+/_=.~-]{8,4096})"),
    "basic ": re.compile(r"[ \t]*(?P<secret>[A-Za-z0-9+/_=-]{8,4096})"),
    "sig=": re.compile(r"(?P<secret>[A-Za-z0-9+/_=%-]{20,4096})"),
    "signature=": re.compile(r"(?P<secret>[A-Za-z0-9+/_=%-]{20,4096})"),
    " -u ": re.compile(r"""[ \t]*["']?[^\s:"'/]{1,64}:(?P<secret>[^\s"'/$]{4,200})"""),
    "identified by ": re.compile(rf"[ \t]*[\"']{_SAID}"),
    # Commands and calls that take a password without naming it.
    "mysql": re.compile(rf"[^\n|;&]{{0,200}}?[ \t]-p[\"']?{_SAID}"),
    "mariadb": re.compile(rf"[^\n|;&]{{0,200}}?[ \t]-p[\"']?{_SAID}"),
    "sshpass": re.compile(rf"[ \t]{{1,16}}-p[ \t]{{0,16}}[\"']?{_SAID}"),
    "redis-cli": re.compile(rf"[^\n|;&]{{0,200}}?[ \t](?:-a|--pass)[ \t]{{1,16}}[\"']?{_SAID}"),
    " login ": re.compile(rf"[^\n|;&]{{0,200}}?[ \t]-p[ \t]{{1,16}}[\"']?{_SAID}"),
    " pass:": re.compile(_SAID),
    ".login(": re.compile(rf"[^\n,()]{{1,100}},[ \t]{{0,16}}[\"']{_SAID}[\"']"),
    "auth=(": _PAIR,
    "auth(": _PAIR,
}


_RANDOM: Final = {"bearer ", "basic ", "sig=", "signature="}


def find_shapes(text: str) -> Iterator[Found]:
    """Everything in `text` that has a known shape, as (start, end, kind); in any order, may overlap."""
    # Every shape is in a long word, and there are far fewer different long words than there is text. A text that is put
    # together of several in quotes is one word.
    words = "\n".join(filter(_NOTABLE.search, set(_LONG_WORD.findall(JOINT.sub("", text)))))
    for shape in SHAPES:
        if shape.literal not in words:
            continue
        at = text.find(shape.literal)
        while at >= 0:
            end, is_secret = _end(text, at, shape)
            if is_secret:
                yield at, end, shape.kind
            at = text.find(shape.literal, end)
    for kind, literal, pattern in _MIDDLES:
        if literal in words and pattern.search(words):
            yield from ((*found.span(), kind) for found in pattern.finditer(text))
    if "eyJ" in text:
        yield from ((*found.span(), "jwt") for found in _JWT.finditer(text) if not _goes_on_from(text, found.start()))
    if "://" in text:
        yield from ((*found.span("secret"), "url_password") for found in _URL.finditer(text))


def find_phrases(text: str, lower: str) -> Iterator[Found]:
    """Credentials behind what announces them; `lower` is `text` in lower case."""
    for phrase, pattern in _PHRASES.items():
        at, patience = lower.find(phrase), Patience()
        while at >= 0:
            found = pattern.match(text, at + len(phrase))
            if found and (looks_random(found["secret"]) or not (phrase in _RANDOM or found["secret"].isalpha())):
                yield (*found.span("secret"), "credential")
            at = lower.find(phrase, patience.next(at + len(phrase), found.end() if found else 0))


class Patience:
    """How often one stretch of text is looked at: names in a value have values of their own, but not without end."""

    _TRIES: Final = 8

    def __init__(self) -> None:
        self._until = self._tries = 0

    def next(self, behind: int, end: int) -> int:
        """Where to look on, behind a place that was looked at up to `end`."""
        if behind > self._until:
            self._until, self._tries = end, 0
        self._tries += 1
        return behind if self._tries < self._TRIES else max(behind, self._until)


def _end(text: str, at: int, shape: Shape) -> tuple[int, bool]:
    """Where to look on behind the shape that may begin at `at`, and whether it is a secret up to there."""
    behind = at + len(shape.literal)
    if _goes_on_from(text, at):
        return at + 1, False
    joint = JOINT.match(text, behind)
    found = shape.body.match(text, joint.end() if joint else behind)
    if found is None:
        return behind, False
    body = found[0]
    if len(body) >= _FEWEST_DISTINCT > len(set(body)) or _WORDS.fullmatch(body):
        # No part of it is anything else.
        return found.end(), False
    if len(body) >= shape.full or (shape.early and len(body) >= shape.early and looks_random(body)):
        return found.end(), True
    return behind, False


def _goes_on_from(text: str, at: int) -> bool:
    """Whether a name goes on at `at` that began before it."""
    return at > 0 and _WORD.match(text, at - 1) is not None
