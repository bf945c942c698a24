"""Names as people change them: one word for another, one word more or less, a short form written out."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Final, Literal

Style = Literal["snake", "camel", "pascal", "upper"]
_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_SHAPE: Final = re.compile(r"_{0,2}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*_?")
# Words that stand for each other often enough that either is a believable name.
_ALIKE: Final = (
    "get fetch load read find lookup retrieve",
    "set assign update store",
    "add append insert push register",
    "remove delete drop discard",
    "create make build new construct",
    "check validate verify ensure",
    "parse decode read",
    "format render encode write",
    "handle process on",
    "run execute start perform",
    "stop close finish end",
    "compute calculate evaluate",
    "convert transform translate",
    "send emit publish dispatch",
    "init setup prepare configure",
    "is has should can",
    "show display print",
    "merge combine join",
    "split divide partition",
    "filter select pick",
    "sort order arrange",
    "copy clone duplicate",
    "data payload content body",
    "value item element entry",
    "values items elements entries",
    "list items collection sequence",
    "key name label id",
    "index position offset idx",
    "count total size length num",
    "result output response outcome",
    "input source text raw",
    "message msg text notice",
    "error err failure problem",
    "options settings config params",
    "context ctx scope env",
    "request req query",
    "response resp reply answer",
    "path file filename location",
    "dir directory folder root",
    "buffer buf chunk block",
    "start begin first left",
    "end stop last right",
    "min lower low smallest",
    "max upper limit largest",
    "parent owner container",
    "child node leaf",
    "current active present",
    "previous prev last old",
    "next following upcoming",
    "temp tmp scratch",
    "type kind category",
    "status state phase",
    "user account member",
    "client connection session",
    "server host backend",
    "callback handler listener hook",
    "func function fn callable",
    "args arguments params",
    "match found hit",
    "token word symbol",
    "line row",
    "column col",
    "table grid map",
    "map lookup mapping table",
    "cache store memo",
    "default fallback initial",
    "target destination dest",
    "time timestamp moment",
    "timeout delay deadline",
    "version revision release",
    "test check case",
    "field attribute property",
    "builder factory maker",
    "manager controller coordinator",
    "reader loader parser",
    "writer encoder emitter",
    "spec schema definition",
    "width size extent",
    "height depth extent",
    "level depth tier",
    "flag enabled toggle",
    "visible shown displayed",
    "other another rhs",
    "expr expression term",
    "stmt statement",
    "ptr pointer address",
    "val value",
    "str string text",
    "obj object instance",
    "elem element el item",
    "attr attribute prop",
    "num number count",
    "char character letter",
    "doc document page",
    "cmd command action",
    "cfg config conf configuration",
    "param parameter arg argument",
    "var variable",
    "pos position",
    "len length size",
    "cb callback",
    "opts options",
    "tmpl template layout",
    "img image picture",
    "btn button",
    "evt event",
    "e err event",
    "i index idx",
    "j inner",
    "n count total size",
    "s text source",
    "x value",
    "k key",
    "v value",
    "f file func",
    "d data delta",
    "p path point",
    "r reader response",
    "w writer width",
    "c client char",
    "t token time",
    "b buf block",
    "m match",
)  # fmt: skip
_BEFORE: Final = ("new", "raw", "base", "current", "local", "inner", "default", "next", "final", "parsed", "cached")
_BEHIND: Final = ("name", "value", "data", "list", "info", "count", "key", "path", "text", "id")
_BEHIND_FUNCTION: Final = ("all", "one", "by_name", "by_id", "safe", "once", "now", "internal", "async", "or_default")
_BEHIND_TYPE: Final = ("info", "config", "base", "spec", "entry", "record", "model", "state", "impl", "handler")
_LONGEST: Final = 36
_TRIES: Final = 12


@dataclass(frozen=True, slots=True)
class Name:
    """A name taken apart.

    Attributes:
        words: in lower case.
        style: how they are put together.
        before, behind: underscores at either end.
    """

    words: tuple[str, ...]
    style: Style
    before: str = ""
    behind: str = ""

    def with_words(self, words: Sequence[str]) -> str:
        """Other words put together alike."""
        if self.style == "snake":
            body = "_".join(words)
        elif self.style == "upper":
            body = "_".join(words).upper()
        else:
            body = "".join(word[:1].upper() + word[1:] for word in words)
            body = body if self.style == "pascal" else body[:1].lower() + body[1:]
        return self.before + body + self.behind


def name_of(text: str) -> Name | None:
    """A name taken apart; None where it is put together in no way that people follow."""
    if not _SHAPE.fullmatch(text):
        return None
    core = text.strip("_")
    before, behind = text[: len(text) - len(text.lstrip("_"))], text[len(text.rstrip("_")) :]
    words = tuple(word.lower() for word in _WORD.findall(core))
    style: Style
    if core.isupper() and len(core) > 1:
        style, words = "upper", tuple(core.lower().split("_"))
    elif "_" in core or core.islower():
        style, words = "snake", tuple(core.lower().split("_"))
    else:
        style = "pascal" if core[0].isupper() else "camel"
    name = Name(words, style, before, behind)
    # An acronym inside (HTTPServer) would be lost.
    return name if name.with_words(words) == text else None


def words_of(names: Collection[str]) -> tuple[str, ...]:
    """The words that the names of a file are made of, each once, in order."""
    found: dict[str, None] = {}
    for text in names:
        for word in _WORD.findall(text):
            if 3 <= len(word) <= 12 and word.isalpha():  # noqa: PLR2004
                found[word.lower()] = None
    return tuple(found)


def new_name(  # noqa: PLR0913
    text: str,
    rng: random.Random,
    names: Collection[str],
    *,
    language: str,
    role: Literal["function", "value", "type"],
    camel: bool = False,
    near: str = "",
) -> str | None:
    """What a person could call it instead; None where nothing comes to mind.

    Args:
        text: the name it has.
        rng: draws one of the ways.
        names: those of the file; none of them comes out, and their words go in.
        language: whose keywords must not come out.
        role: what is named.
        near: the code around the definition, whose words fit best.
        camel: whether a name of one lower-case word grows like `itemName` instead of `item_name`.
    """
    name = name_of(text)
    if name is None:
        return None
    if camel and name.style == "snake" and len(name.words) == 1:
        name = Name(name.words, "camel", name.before, name.behind)
    words = words_of(re.findall(r"\w+", near)) or words_of(names)
    vocabulary = [word for word in words if word not in keywords(language)]
    for _ in range(_TRIES):
        others = _other(name.words, rng, vocabulary, role)
        if others is None or len(set(others)) != len(others):
            continue
        made = name.with_words(others)
        if made != text and made not in names and made not in keywords(language) and len(made) <= _LONGEST:
            return made
    return None


def _other(
    words: tuple[str, ...], rng: random.Random, vocabulary: Sequence[str], role: Literal["function", "value", "type"]
) -> list[str] | None:
    out = list(words)
    way = rng.choices(("alike", "more", "own", "less", "number", "swap"), (14, 4, 3, 2, 1, 1))[0]
    if way == "alike":
        places = [place for place, word in enumerate(words) if word in _alike()]
        if not places:
            return None
        place = rng.choice(places)
        out[place] = rng.choice(_alike()[words[place]])
        return out
    if way == "more":
        if len(words) > 3:  # noqa: PLR2004
            return None
        if role == "function":
            return [*out, *rng.choice(_BEHIND_FUNCTION).split("_")]
        if role == "type" or rng.random() < 0.5:  # noqa: PLR2004
            return [*out, rng.choice(_BEHIND_TYPE if role == "type" else _BEHIND)]
        return [rng.choice(_BEFORE), *out]
    if way == "own":
        if not vocabulary or len(words) > 3:  # noqa: PLR2004
            return None
        word = rng.choice(vocabulary)
        place = len(out) if role == "function" and len(out) == 1 else rng.randrange(len(out) + (role != "function"))
        if role == "function" and len(out) > 1:
            out[max(place, 1)] = word
        else:
            out.insert(place, word)
        return out
    if way == "less":
        if len(words) < 2 or (role == "function" and len(words) < 3):  # noqa: PLR2004
            return None
        del out[rng.randrange(1 if role == "function" else 0, len(out))]
        return out
    if way == "number":
        last = out[-1]
        if role == "type" or len(last) < 4 or last.endswith(("ss", "us", "is", "as", "ed", "ing")):  # noqa: PLR2004
            return None
        out[-1] = last[:-1] if last.endswith("s") else last + "s"
        return out
    if len(words) < 3 or role != "value":  # noqa: PLR2004
        return None
    out[-1], out[-2] = out[-2], out[-1]
    return out


@cache
def _alike() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for line in _ALIKE:
        group = line.split()
        for word in group:
            found.setdefault(word, []).extend(other for other in group if other != word and len(other) > 1)
    return {word: tuple(others) for word, others in found.items() if others}


_MORE_KEYWORDS: Final = frozenset(
    "abstract any as assert async await become bool box boolean break byte case catch chan char class cls const "
    "constructor continue crate debugger declare def default defer del delete do dyn elif else enum error except "
    "exec export extends extern fallthrough false final finally float fn for from func function get global go goto if "
    "impl implements import in instanceof int interface is lambda len let loop macro map match mod module move mut "
    "namespace new nil none nonlocal not null number object of or override package pass print priv private "
    "protected pub public raise range ref require return select self set static str string struct super switch "
    "symbol this throw trait true try type typeof undefined union unsafe unsized use var virtual void where while "
    "with yield list dict tuple min max sum id filter sorted input format hash iter next open all".split()
)
_BUILTINS: Final = {"python": "builtins"}


@cache
def keywords(language: str) -> frozenset[str]:
    """Words that nothing can be called in a language, and builtins that nobody should hide."""
    module = _BUILTINS.get(language)
    return _MORE_KEYWORDS if module is None else _MORE_KEYWORDS | frozenset(dir(import_module(module)))
