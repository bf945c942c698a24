"""Where the members of objects stand in JSON with comments and commas before closing brackets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<blank>[ \t\r\n]+)
      | (?P<comment>//[^\r\n]*|/\*.*?\*/)
      | (?P<string>"(?:[^"\\\x00-\x1f]|\\.)*")
      | (?P<mark>[{}\[\],:])
      | (?P<scalar>[-+.\w]+)""",
    re.DOTALL | re.VERBOSE,
)
_SCALAR: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null", re.ASCII)
_DEEPEST: Final = 200


class JsoncError(ValueError):
    """The text is not JSON, even with comments; the message says in which line."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value, by offsets into the text.

    Attributes:
        start: of its first character.
        end: behind its last one.
        members: of an object, in their order; None for anything else.
        last: where the last member, or the comma behind it, ends; of an empty object where it begins, behind the brace.
        comma: behind the last member.
    """

    start: int
    end: int
    members: tuple[Member, ...] | None = None
    last: int = 0
    comma: bool = False

    def member(self, key: str) -> Member | None:
        """The member of this name; of several the last, which is the one that counts."""
        return next((each for each in reversed(self.members or ()) if each.key == key), None)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object; `start` is that of its key."""

    key: str
    start: int
    value: Value


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def parse(text: str) -> Value | None:
    """The root; None when there is nothing but comments. Raises JsoncError."""
    return _Parser(text).root()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._at = 0
        self._depth = 0

    def root(self) -> Value | None:
        if not self._tokens:
            return None
        value = self._value()
        if self._at < len(self._tokens):
            raise self._error("nothing may follow the closing bracket")
        return value

    def _value(self) -> Value:
        token = self._next()
        if token.text == "{":
            return self._object(token)
        if token.text == "[":
            return self._array(token)
        if token.kind == "scalar" and not _SCALAR.fullmatch(token.text):
            raise self._error(f"{token.text[:20]} is no value")
        if token.kind == "mark":
            raise self._error("a value is missing")
        return Value(token.start, token.end)

    def _object(self, brace: _Token) -> Value:
        self._descend()
        members: list[Member] = []
        last, comma = brace.end, False
        while (token := self._next()).text != "}":
            if token.kind != "string" or (members and not comma):
                raise self._error("a key or a comma is missing")
            if self._next().text != ":":
                raise self._error("a colon is missing")
            value = self._value()
            members.append(Member(_text(token), token.start, value))
            last, comma = value.end, self._peek() == ","
            if comma:
                last = self._next().end
        self._depth -= 1
        return Value(brace.start, token.end, tuple(members), last, comma)

    def _array(self, bracket: _Token) -> Value:
        self._descend()
        comma = True
        while self._peek() != "]":
            if not comma:
                raise self._error("a comma is missing")
            self._value()
            comma = self._peek() == ","
            if comma:
                self._next()
        self._depth -= 1
        return Value(bracket.start, self._next().end)

    def _descend(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error("brackets are nested too deeply")

    def _peek(self) -> str:
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def _next(self) -> _Token:
        if self._at == len(self._tokens):
            raise self._error("it ends in the middle")
        self._at += 1
        return self._tokens[self._at - 1]

    def _error(self, what: str) -> JsoncError:
        place = self._tokens[min(self._at, len(self._tokens)) - 1].start
        return _at_line(self._text, place, what)


def _tokens(text: str) -> Iterator[_Token]:
    at = len(text) - len(text.removeprefix("\ufeff"))
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _at_line(text, at, "this is no JSON")
        at = found.end()
        kind = found.lastgroup or ""
        if kind not in {"blank", "comment"}:
            yield _Token(kind, found[0], found.start(), found.end())


def _text(token: _Token) -> str:
    try:
        return str(json.loads(token.text))
    except ValueError:
        raise JsoncError("a key has an escape that is none") from None


def _at_line(text: str, place: int, what: str) -> JsoncError:
    return JsoncError(f"line {text.count(chr(10), 0, place) + 1}: {what}")
