"""What looks like a secret: by its shape, by what announces it, or by its name.

A shape is a literal prefix, and what follows it. The prefixes are those that their issuers publish so that scanners
like this one can find leaked ones. A secret that is being typed is recognised before it is complete: as soon as
what follows the prefix is not a word any more. By its name: `password = "…"`, `API_KEY=…`, `token: …`; the value may
consist of several quoted strings, or be on lines below its name. The tables are `privacy.toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from calomel.code.budget import spent

# What no model may see: shapes of secrets, and names of files and services.
TABLES: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("privacy.toml").read_text("utf-8"))


def _compiled(patterns: Mapping[str, str]) -> dict[str, re.Pattern[str]]:
    """Expressions of a table, in which `<<name>>` stands for any of some words, or for another pattern."""
    tables = {**TABLES["patterns"], **{name: "|".join(words.split()) for name, words in TABLES["names"].items()}}
    return {
        name: re.compile(re.sub("<<([a-z_]+)>>", lambda match: tables[match[1]], text))
        for name, text in patterns.items()
    }


PATTERNS: Final = _compiled(TABLES["patterns"])
# The mean length of pieces. Random letters and digits of base 62 have 2.2, of hexadecimal 2.1, of lower-case base 36
# 2.5; names in the standard library of Python have more than 5.
_LONGEST_PIECES: Final = 3.0
_PAIRS: Final = frozenset(TABLES["names"]["pairs"].split())
# Share of common letter pairs: above the first it is words, however short the pieces; below the second it is not.
_SURELY_WORDS: Final = 0.7
_PERHAPS_WORDS: Final = 0.55
_FEWEST_PAIRS: Final = 8
_ENOUGH: Final = 256


def looks_random(text: str) -> bool:
    """Whether ASCII letters and digits are mixed as in no name; short texts may look so by accident."""
    text = text[:_ENOUGH]
    pieces = PATTERNS["piece"].findall(text)
    if len(pieces) < 2:  # noqa: PLR2004 - one word or one number
        return False
    digits, lower, upper = any(map(str.isdigit, pieces)), any(map(_has_lower, pieces)), any(map(_has_upper, pieces))
    if digits + lower + upper < 2:  # noqa: PLR2004 - of one kind
        return False
    if PATTERNS["hex_run"].search(text):
        return True
    pairs = [a + b for run in PATTERNS["letters"].findall(text.lower()) for a, b in pairwise(run)]
    wordlike = sum(map(_PAIRS.__contains__, pairs)) / len(pairs) if len(pairs) >= _FEWEST_PAIRS else None
    if sum(map(len, pieces)) <= _LONGEST_PIECES * len(pieces):
        return wordlike is None or wordlike < _SURELY_WORDS
    return digits and wordlike is not None and wordlike < _PERHAPS_WORDS


def _has_lower(text: str) -> bool:
    return text[-1].islower()


def _has_upper(text: str) -> bool:
    return text[0].isupper()


SecretMatch = tuple[int, int, str]

# No known secret is longer; the bound keeps the cost of a megabyte-long line linear.
_LONGEST: Final = 4096
# How much of a key is typed before it is recognised where nothing else begins so.
_DISTINCT: Final = 6
_FEWEST_TYPED: Final = 3
# A text with fewer different characters was not generated: `xxxxxxxx`, `00000000`, a row of asterisks.
_FEWEST_DISTINCT: Final = 4


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape.

    Attributes:
        kind: name of the rule.
        literal: its prefix.
        body: the characters that follow, as many as there are.
        full: from this many on, it is a secret without further checks.
        early: from this many on, it is one if it looks random; 0 if only the whole is. Up to `_DISTINCT`, nothing
            else begins with the literal: it is one if it is no word.
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


SHAPES: Final = tuple(_shapes(TABLES["shapes"]))

# Tokens that are recognised by a part in their middle.
_MIDDLES: Final = tuple((kind, part, re.compile(pattern)) for kind, (part, pattern) in TABLES["middles"].items())
_RANDOM_PHRASES: Final = _compiled(TABLES["random_phrases"])
_PHRASES: Final = _RANDOM_PHRASES | _compiled(TABLES["phrases"])


def find_shapes(text: str) -> Iterator[SecretMatch]:
    """Everything in `text` with a known shape, as (start, end, kind); in any order, may overlap."""
    # Every shape is in a long word, and there are far fewer different long words than text. A text that consists of
    # several quoted strings is one word.
    words = "\n".join(
        filter(PATTERNS["notable"].search, set(PATTERNS["long_word"].findall(PATTERNS["joint"].sub("", text))))
    )
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
            yield from ((*match.span(), kind) for match in pattern.finditer(text))
    if "eyJ" in text:
        yield from (
            (*match.span(), "jwt") for match in PATTERNS["jwt"].finditer(text) if not _goes_on_from(text, match.start())
        )
    if "://" in text:
        yield from ((*match.span("secret"), "url_password") for match in PATTERNS["url_password"].finditer(text))


# Whatever separates words.
_SEPARATORS: Final = {each: " " for each in range(128) if not (chr(each).isalnum() or chr(each) in "_-")}


@lru_cache(maxsize=2)
def _vocabulary(lower: str) -> str:
    """Every word of a text once, where many are looked for: a third of it, or less."""
    return "\n".join(set(lower.translate(_SEPARATORS).split())) if lower.isascii() else lower


# The longest word in each phrase: a phrase is only looked for where its word is.
_WORDS: Final = [
    (max(re.findall(r"[a-z0-9_-]+", phrase) or [""], key=len), phrase, pattern) for phrase, pattern in _PHRASES.items()
]


def find_phrases(text: str, lower: str) -> Iterator[SecretMatch]:
    """Credentials after what announces them; `lower` is `text` in lower case."""
    words = _vocabulary(lower)
    for word, phrase, pattern in _WORDS:
        if word not in words:
            continue
        at, patience = lower.find(phrase), Patience()
        while at >= 0:
            match = pattern.match(text, at + len(phrase))
            if match and (
                looks_random(match["secret"])
                or (phrase not in _RANDOM_PHRASES and not match["secret"].isalpha())
                or match["secret"].lower() in _COMMON
            ):
                yield (*match.span("secret"), "credential")
            at = lower.find(phrase, patience.next(at + len(phrase), match.end() if match else 0))


class Patience:
    """Limits how often one stretch of text is searched: names in a value have values of their own, but not for ever."""

    _TRIES: Final = 8

    def __init__(self) -> None:
        self._until = self._tries = 0

    def next(self, behind: int, end: int) -> int:
        """Where to continue, after a place that was searched up to `end`."""
        if behind > self._until:
            self._until, self._tries = end, 0
        self._tries += 1
        return behind if self._tries < self._TRIES else max(behind, self._until)


def _end(text: str, at: int, shape: Shape) -> tuple[int, bool]:
    """Where to continue after the shape that may begin at `at`, and whether it is a secret up to there."""
    behind = at + len(shape.literal)
    if _goes_on_from(text, at):
        return at + 1, False
    joint = PATTERNS["joint"].match(text, behind)
    match = shape.body.match(text, joint.end() if joint else behind)
    if match is None:
        return behind, False
    body = match[0]
    if len(body) >= _FEWEST_DISTINCT > len(set(body)) or PATTERNS["words"].fullmatch(body):
        # No part of it is anything else.
        return match.end(), False
    if len(body) >= shape.full or (shape.early and len(body) >= shape.early and looks_random(body)):
        return match.end(), True
    return (match.end(), True) if shape.early <= _DISTINCT and _begins_key(body, shape.early) else (behind, False)


def _begins_key(body: str, early: int) -> bool:
    """Whether the beginning of a body is neither a word nor a place for one, such as `YOUR_TOKEN`."""
    if not 0 < min(early, _FEWEST_TYPED) <= len(body):
        return False
    return PATTERNS["wordlike"].fullmatch(body) is None and PATTERNS["template"].search(body) is None


def _goes_on_from(text: str, at: int) -> bool:
    """Whether a name that began earlier continues at `at`."""
    return at > 0 and PATTERNS["name_character"].match(text, at - 1) is not None


# Cheap to find; their surroundings decide.
_PASSWORD_STEMS: Final = ("pass", "pwd", "pw", "psk", "pasw", "psw", "pssw", "preshared", "pre-shared", "pre_shared")
_FOREIGN_STEMS: Final = tuple(TABLES["names"]["foreign_stems"].split())
_FOREIGN_KEY_STEMS: Final = tuple(TABLES["names"]["foreign_key_stems"].split())
_CODE_STEMS: Final = tuple(TABLES["names"]["code_stems"].split())
_KEYWORDS: Final = (
    *_PASSWORD_STEMS, "secret", "token", "key", "cred", "auth", "bearer", "pat", "phrase", "mnemonic",
    *_FOREIGN_STEMS, *_FOREIGN_KEY_STEMS, *_CODE_STEMS,
)  # fmt: skip
_ASCII_KEYWORDS: Final = tuple(filter(str.isascii, _KEYWORDS))
# How a name with one of these is read from where it begins, and what it holds.
_BEGINNINGS: Final = {
    **dict.fromkeys(_PASSWORD_STEMS, ("password", "password_name")),
    **dict.fromkeys(_FOREIGN_STEMS, ("password", "foreign_name")),
    **dict.fromkeys(_FOREIGN_KEY_STEMS, ("secret", "foreign_key_name")),
    **dict.fromkeys(_CODE_STEMS, ("secret", "code_name")),
    "cred": ("secret", "cred_name"),
    "auth": ("key", "auth_name"),
    "bearer": ("key", "bearer_name"),
    "pat": ("key", "pat_name"),
}
# The name up to and including the keyword, searched this many characters before it.
_BEFORE: Final = 24
_FEWEST_WORDS: Final = 4
_KEYS: Final = tuple(" ".join(TABLES["names"][each] for each in ("keys", "services", "other_services")).split())
_JOINTS: Final = (" ", "_", ".", "-")
# Below a colon there may be code.
_OPEN: Final = {"password": "secret", "secret": "secret"}
# The keys of these services have no shape of their own.
_SERVICES: Final = tuple(TABLES["names"]["services"].split())
_TAKERS: Final = tuple(TABLES["names"]["takers"].split())
_NEAR: Final = 64
_FARTHEST_BELOW: Final = 12
_MOST_PARTS: Final = 8
_FARTHEST: Final = 1_000
_SHORTEST_PASSWORD: Final = 5
_COMMON: Final = frozenset(TABLES["names"]["passwords"].split())
_SHORTEST_MIXED: Final = 8
_SHORTEST_STRONG: Final = 10
# How far behind a name a generated value still belongs to it.
_ALONG: Final = 240
# 64 bits in hexadecimal are a checksum or a short id.
_SHORTEST_HEX: Final = 24
_VALUED_WITHIN: Final = 140
# The beginning of a generated value is enough to recognise it.
_TELLING: Final = 256


_ROW: Final = re.compile(r"[^\n]+")


def find_values(text: str, lower: str) -> Iterator[SecretMatch]:
    """Every value in `text` of a name that sounds secret, as (start, end, kind); may overlap.

    If `start` is `end`, the value is on lines below, see `find_below`. `lower` is `text` in lower case, of the same
    length. Where the budget is spent, everything behind counts as a value: such a text has names and little else.
    """
    keywords = _ASCII_KEYWORDS if lower.isascii() else _KEYWORDS
    for keyword in filter(_vocabulary(lower).__contains__, keywords):
        at, patience = lower.find(keyword), Patience()
        while at >= 0:
            if spent():
                yield from ((at + match.start(), at + match.end(), "key") for match in _ROW.finditer(text[at:]))
                return
            kind, end = _named(text, keyword, at)
            behind = end
            if kind:
                yield from _along(text, end, kind)
                if lower.find("value", end, end + _VALUED_WITHIN) >= 0:
                    yield from _valued(text, end, kind)
                given = PATTERNS["given"].match(text, end)
                if given:
                    yield from _judged(text, at, given, kind)
                    behind = patience.next(end, given.end())
                announced = PATTERNS["announces"].match(text, end)
                if announced and _is_announcement(text, at, announced):
                    yield end, end, _OPEN.get(kind, "key") if announced["open"] else kind
                part = PATTERNS["connection_part"].match(text, end)
                if part and (is_password(part["secret"]) or is_key(part["secret"])):
                    yield (*part.span("secret"), "connection_string")
            at = lower.find(keyword, behind)
    yield from _beside(text, lower)


def _beside(text: str, lower: str) -> Iterator[SecretMatch]:
    """Values beside the name of a service, and in calls that take a password."""
    words = _vocabulary(lower)
    if any(map(words.__contains__, _SERVICES)):
        for match in PATTERNS["generated"].finditer(text):
            if is_key(match[0]) and PATTERNS["service"].search(text, max(0, match.start() - _NEAR), match.start()):
                yield (*match.span(), "key")
    for word in filter(words.__contains__, _TAKERS):
        at, patience = lower.find(word), Patience()
        while at >= 0:
            behind = at + len(word)
            call = PATTERNS["takes_password"].match(text, behind)
            if call is not None:
                stop = text.find("\n", call.end(), call.end() + _ALONG)
                stop = min(len(text), call.end() + _ALONG) if stop < 0 else stop
                yield from ((*span, "password") for span in _strong_strings(text, call.end(), stop))
                behind = patience.next(behind, stop)
            at = lower.find(word, behind)


def _named(text: str, keyword: str, at: int) -> tuple[str, int]:
    """What a name with this keyword holds: `password`, `key`, or nothing; and where the keyword ends."""
    end = at + len(keyword)
    if keyword in _BEGINNINGS:
        kind, name = _BEGINNINGS[keyword]
        match = PATTERNS[name].match(text, at)
        if not match or (match.end() == end and keyword == "pass" and text[end : end + 1].isalpha()):
            return "", end
        return kind, match.end()
    if keyword == "key":
        before = text[max(0, at - _BEFORE) : at].lower()
        return "key" if before[: -1 if before[-1:] in _JOINTS else None].endswith(_KEYS) else "", end
    if keyword in {"phrase", "mnemonic"}:
        return "phrase" if PATTERNS["phrase_name"].search(text, max(0, at - _BEFORE), end) else "", end
    if keyword == "token":
        # A tokenizer has no secret.
        return "" if text[end : end + 2].lower() == "iz" else "key", end
    return "secret", end


def _valued(text: str, end: int, kind: str) -> Iterator[SecretMatch]:
    """What stands behind the word `value`, where the name that ends at `end` is a value, too."""
    match = PATTERNS["valued"].match(text, end)
    for group in ("quoted", "bare"):
        if match and match[group] is not None and _is_secret(match[group], kind):
            yield (*match.span(group), kind)


def _along(text: str, end: int, kind: str) -> Iterator[SecretMatch]:
    """What stands farther behind a name on its line: a default, an item of a list, a value within a text of JSON.

    What was surely generated, whatever else is between them; in a list or a call, what may be a password.
    """
    part = PATTERNS["part"].match(text, end)
    if part and (_is_strong(part["secret"]) or (text[end - 2 : end + 1].isupper() and is_password(part["secret"]))):
        yield (*part.span("secret"), kind)
    stop = text.find("\n", end, end + _ALONG)
    stop = min(len(text), end + _ALONG) if stop < 0 else stop
    tail = PATTERNS["tail"].match(text, end)
    if tail and PATTERNS["harmless_tail"].search(tail[0]):
        return
    for match in PATTERNS["generated"].finditer(text, end, stop):
        called = text[match.end() : match.end() + 1] in {"(", "[", "."} or text[match.start() - 1] in {".", "*", "&"}
        if not called and is_key(match[0]):
            yield (*match.span(), kind)
    opens = PATTERNS["opens"].match(text, end, stop)
    near = kind == "password" and tail is not None and not tail[0]
    if opens or near:
        begin, stop = (opens.end(), stop) if opens else (_closed(text, end), min(stop, end + _NEAR))
        yield from ((*span, kind) for span in _strong_strings(text, begin, stop))


def _closed(text: str, end: int) -> int:
    """Where a name ends with the quotes and brackets that close around it."""
    match = PATTERNS["closers"].match(text, end)
    return end if match is None else match.end()


def _strong_strings(text: str, begin: int, stop: int) -> Iterator[tuple[int, int]]:
    for item in PATTERNS["strings"].finditer(text, begin, stop):
        if _is_strong(item["secret"]) and not PATTERNS["no_value"].match(item["secret"]):
            yield item.span("secret")


def find_below(lines: Sequence[str], announced: Sequence[tuple[int, str]]) -> list[tuple[int, int, int]]:
    """The values below lines that announce one, as (line, start, end).

    Args:
        lines: of the text, without their ends.
        announced: the numbers of those lines, and what they name.
    """
    spans: list[tuple[int, int, int]] = []
    done = -1
    for number, kind in announced:
        # Every secret leads to the next one: a list may have any number of them.
        below, last = max(number, done) + 1, number
        while below < min(len(lines), last + 1 + _FARTHEST_BELOW) and not PATTERNS["over"].match(lines[below]):
            value = PATTERNS["below"].fullmatch(lines[below])
            if value is not None and _is_below(value, kind):
                spans.append((below, *value.span("secret")))
                last = done = below
            if value is not None and value["only"]:
                break
            below += 1
    return spans


def _is_below(value: re.Match[str], kind: str) -> bool:
    if value["child"]:
        return PATTERNS["child"].fullmatch(value["secret"]) is not None and is_key(value["secret"])
    return _is_secret(value["secret"], kind)


def find_unannounced(lines: Iterable[str]) -> list[tuple[int, int, int]]:
    """The values in the first lines of a text that was cut, as in `find_below`: their name may stand above the cut."""
    spans: list[tuple[int, int, int]] = []
    left = _FARTHEST_BELOW
    for number, line in enumerate(lines):
        if not left or PATTERNS["over"].match(line):
            break
        left -= 1
        for name in ("below", "inside"):
            value = PATTERNS[name].fullmatch(line)
            only = value is not None and value.groupdict().get("only")
            if value is not None and _is_secret(value["secret"], "password" if only else "key"):
                spans.append((number, *value.span("secret")))
                left = _FARTHEST_BELOW
                break
    return spans


def _is_announcement(text: str, at: int, match: re.Match[str]) -> bool:
    if PATTERNS["harmless_tail"].search(match["tail"]):
        return False
    start = max(0, at - _BEFORE * 4)
    start = max(start, text.rfind("\n", start, at) + 1)
    return match["named"] is None or PATTERNS["naming"].search(text, start, at) is not None


def _is_secret(value: str, kind: str) -> bool:
    """Whether a value may be what its name says: `password`, `key` or `phrase`."""
    if kind == "key":
        return is_key(value)
    if kind == "secret":
        return is_key(value) or _is_strong(value)
    return is_password(value) or (kind == "phrase" and is_phrase(value))


def is_phrase(value: str) -> bool:
    """Whether a value may be a passphrase: several words that are no placeholder."""
    words = value.replace("-", " ").split()
    return bool(PATTERNS["phrase"].fullmatch(value)) and len(set(words)) >= _FEWEST_WORDS and not _is_placeholder(value)


def _parts(text: str, given: re.Match[str]) -> list[tuple[int, int]]:
    """The spans of the quoted strings that make up the value."""
    spans = [given.span("quoted")]
    while len(spans) < _MOST_PARTS and (joint := PATTERNS["joint"].match(text, spans[-1][1])):
        more = PATTERNS["quoted"].match(text, joint.end())
        if more is None:
            break
        spans.append(more.span())
    return spans


def _judged(text: str, at: int, given: re.Match[str], kind: str) -> Iterator[SecretMatch]:
    if PATTERNS["harmless_tail"].search(given["tail"]) or (given["passed"] and given["tail"]):
        return
    near = max(0, at - _FARTHEST)
    # If the line begins farther away, only the nearer part of it counts.
    line_start = max(near, text.rfind("\n", near, at) + 1)
    option = text.startswith("-", max(line_start, text.rfind(" ", line_start, at) + 1))
    statement = PATTERNS["statement"].match(text, line_start) if given["apart"] and not option else None
    if given["loose"] or (given["apart"] and not (option or statement)):
        yield from _unsigned(text, (line_start, at), given, kind)
        return
    if given["atom"] and not PATTERNS["tuple_name"].search(text, line_start, at):
        return

    if given["quoted"] is not None:
        spans = _parts(text, given)
        if _is_secret("".join(text[start:end] for start, end in spans), kind):
            yield from ((start, end, kind) for start, end in spans)
    elif not (given["passed"] or (statement and statement["quoted"])):
        span = _bare(text, (line_start, at), given, kind, option=option)
        if span is not None:
            yield (*span, kind)


def _unsigned(text: str, name: tuple[int, int], given: re.Match[str], kind: str) -> Iterator[SecretMatch]:
    """A value that no sign assigns: beside a name that is alone on its line, or strong; `name` as in `_bare`.

    `auth_pass "…"` in settings, `:password "…"` in Lisp, `"Password" "…"`, `enable password …` of a router.
    """
    word = given["bare"]
    if word is not None and word.isalpha() and word.lower() not in _COMMON:
        return
    alone = not given["loose"] and PATTERNS["lonely"].fullmatch(text, *name) is not None
    span = given.span("quoted")
    if given["loose"] and "|" in given["loose"] and given["quoted"] is None:
        span = given.span("bare")
    elif given["quoted"] is None:
        match = PATTERNS["rest"].match(text, given.start("bare"))
        if match is None or match["more"]:
            return
        span = match.span()
        alone = alone and not (match[0].isidentifier() and PATTERNS["namelike"].search(match[0]))
    value = text[span[0] : span[1]]
    if PATTERNS["no_value"].match(value):
        return
    if _is_strong(value) or (alone and _is_secret(value, kind)):
        yield (*span, kind)


def _bare(text: str, name: tuple[int, int], given: re.Match[str], kind: str, *, option: bool) -> tuple[int, int] | None:
    """The span of a secret without quotes; `name` is where its line begins, and its keyword."""
    if is_key(given["bare"]) and not _is_code(text, given):
        return given.span("bare")
    start = given.start("bare")
    if kind == "phrase" and (words := PATTERNS["phrase_line"].match(text, start)):
        match: re.Match[str] | None = words
    elif given["default"] or PATTERNS["expansion"].search(text, *name):
        return given.span("bare") if _is_secret(given["bare"], kind) else None
    elif given["apart"] or option:
        match = PATTERNS["word"].match(text, start)
    elif given["element"] or given["sibling"]:
        match = PATTERNS["element"].match(text, start)
    else:
        match = _bare_setting(text, *name, given)
    return match.span() if match and _is_secret(match[0], kind) else None


def _bare_setting(text: str, line_start: int, at: int, given: re.Match[str]) -> re.Match[str] | None:
    """The value on a line of settings or of a shell, which may contain characters that end a value in code."""
    if given["sign"] not in {"=", ":", ":=", "?=", "→", "⇒", "==>"} or not PATTERNS["setting_line"].fullmatch(
        text, line_start, at
    ):
        return None
    match = PATTERNS["rest"].match(text, given.start("bare"))
    if match is None:
        return None
    value = match[0]
    # A command may follow the value of a shell variable.
    is_whole = not match["more"] or PATTERNS["shell"].fullmatch(text, line_start, match.start())
    if value[-1] in ",;" or PATTERNS["call"].match(value) or not is_whole:
        return None
    spaced = given["sign"] in {"=", ":="} and text[match.start() - 1].isspace()
    named = value.isidentifier() and PATTERNS["namelike"].search(value) and not _is_strong(value)
    return None if spaced and named else match


def _is_strong(value: str) -> bool:
    """Whether a value without quotes around it is a password rather than code, or a name."""
    if is_key(value):
        return True
    if len(value) < _SHORTEST_STRONG or not is_password(value) or PATTERNS["constant"].fullmatch(value):
        return False
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return mixed and (PATTERNS["special"].search(value) is not None or ("_" not in value and looks_random(value)))


def is_password(value: str) -> bool:
    """Whether a quoted value may be a password: no prose, no word, no placeholder."""
    if len(value) < _SHORTEST_PASSWORD or any(map(str.isspace, value)) or _is_placeholder(value):
        return False
    if value.isdigit():
        return True
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    if letters and digits:
        # `password2` is a name; `hunter2` too, but short.
        weak = PATTERNS["special"].search(value) or PATTERNS["numbered"].fullmatch(value)
        return bool(weak) or len(value) <= _SHORTEST_MIXED or looks_random(value)
    return value.lower() in _COMMON or bool(
        letters and (PATTERNS["special"].search(value) or looks_random(value)) and not value.startswith(("$", "%", "@"))
    )


def is_key(value: str) -> bool:
    """Whether a value may have been generated: long, a single word, and random."""
    value = value[:_TELLING]
    if not PATTERNS["key_value"].fullmatch(value) or _is_placeholder(value) or len(set(value)) < len(value) ** 0.5 + 2:
        return False
    if len(value) < _SHORTEST_HEX and PATTERNS["hex"].fullmatch(value):
        return False
    # `django-insecure-…`, `prod_…`: parts that are words do not make the others harmless.
    return looks_random(value) or any(looks_random(part) for part in PATTERNS["generated_part"].findall(value))


def _is_placeholder(value: str) -> bool:
    return bool(PATTERNS["template"].search(value) or PATTERNS["placeholder"].fullmatch(value))


def _is_code(text: str, given: re.Match[str]) -> bool:
    """Whether an unquoted value is called, indexed or a chain of names."""
    bare = given["bare"]
    return (
        text[given.end() : given.end() + 1] in {"(", "[", "{"} or "." in bare or bare.startswith(("$", "%", "@", "*"))
    )
