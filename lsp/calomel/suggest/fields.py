"""Typed reading of a JSON object from outside, with errors that name the field and never repeat what stands there."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar

Value = TypeVar("Value")
Choice = TypeVar("Choice", bound=str)

_REQUIRED: Final[Any] = object()


class FieldError(ValueError):
    """A field is missing or is not what it must be.

    Attributes:
        field: dotted path to it, as in `parts.related.3.text`; empty for the whole document.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field


def document(data: bytes | str) -> dict[str, Any]:
    """The JSON object in `data`. Raises FieldError; its cause, which would quote the text, is dropped."""
    try:
        value = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise FieldError("", "not valid JSON") from None
    if not isinstance(value, dict):
        raise FieldError("", "must be a JSON object")
    return value


def _no_constant(_: str) -> NoReturn:
    raise ValueError  # NaN and infinities are no JSON (RFC 8259, section 6)


@dataclass(frozen=True, slots=True)
class Fields:
    """One JSON object; `at` is its own path. Fields that nobody asks for are ignored.

    Every reader raises FieldError. A default stands for a field that is absent; null counts as absent only where a
    reader says so.
    """

    values: Mapping[str, Any]
    at: str = ""

    def path(self, name: str) -> str:
        """The dotted path of a field."""
        return f"{self.at}.{name}" if self.at else name

    def fail(self, name: str, problem: str) -> NoReturn:
        """Raise FieldError for a field."""
        raise FieldError(self.path(name), problem)

    def text(self, name: str, default: str = _REQUIRED, *, shortest: int = 0, longest: int | None = None) -> str:
        """A string that UTF-8 can hold, of so many characters."""
        value = self._value(name, default)
        if not isinstance(value, str):
            self.fail(name, "must be a string")
        check_text(self.path(name), value, shortest=shortest, longest=longest)
        return value

    def optional_text(self, name: str, *, longest: int | None = None) -> str | None:
        """A string, or None where it is null or absent."""
        return None if self.values.get(name) is None else self.text(name, longest=longest)

    def choice(self, name: str, choices: Sequence[Choice], default: Choice = _REQUIRED) -> Choice:
        """One of `choices`."""
        value = self._value(name, default)
        for choice in choices:
            if value == choice:
                return choice
        raise FieldError(self.path(name), f"must be one of {', '.join(choices)}")

    def truth(self, name: str, *, default: bool = _REQUIRED) -> bool:
        """True or false."""
        value = self._value(name, default)
        if not isinstance(value, bool):
            self.fail(name, "must be true or false")
        return value

    def integer(self, name: str, default: int = _REQUIRED, *, low: int, high: int) -> int:
        """A whole number within bounds; 1.0 is none."""
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(name, "must be a whole number")
        if not low <= value <= high:
            self.fail(name, f"must be between {low} and {high}")
        return value

    def number(self, name: str, default: float = _REQUIRED, *, low: float = -math.inf, high: float = math.inf) -> float:
        """A finite number within bounds."""
        return finite(self._value(name, default), self.path(name), low=low, high=high)

    def optional_number(self, name: str, *, low: float = -math.inf, high: float = math.inf) -> float | None:
        """A finite number, or None where it is null or absent."""
        return None if self.values.get(name) is None else self.number(name, low=low, high=high)

    def inner(self, name: str) -> Fields:
        """The object in a field."""
        return as_object(self._value(name, _REQUIRED), self.path(name))

    def optional_inner(self, name: str) -> Fields | None:
        """The object in a field, or None where it is null or absent."""
        return None if self.values.get(name) is None else self.inner(name)

    def each(self, name: str, read: Callable[[Any, str], Value], *, most: int) -> tuple[Value, ...]:
        """Every entry of a list, read by `read(value, path)`; absent is empty."""
        values = self._value(name, [])
        if not isinstance(values, list):
            self.fail(name, "must be a list")
        if len(values) > most:
            self.fail(name, f"must have at most {most} entries")
        path = self.path(name)
        return tuple(read(value, f"{path}.{index}") for index, value in enumerate(values))

    def _value(self, name: str, default: Any) -> Any:
        value = self.values.get(name, default)
        if value is _REQUIRED:
            self.fail(name, "is missing")
        return value


def as_object(value: Any, path: str) -> Fields:
    """`value` as a JSON object. Raises FieldError."""
    if not isinstance(value, dict):
        raise FieldError(path, "must be an object")
    return Fields(value, path)


def as_text(value: Any, path: str, *, shortest: int = 0, longest: int | None = None) -> str:
    """`value` as a string that UTF-8 can hold. Raises FieldError."""
    if not isinstance(value, str):
        raise FieldError(path, "must be a string")
    check_text(path, value, shortest=shortest, longest=longest)
    return value


def finite(value: Any, path: str, *, low: float = -math.inf, high: float = math.inf) -> float:
    """`value` as a finite number within bounds. Raises FieldError."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldError(path, "must be a number")
    if not (isinstance(value, int) or math.isfinite(value)) or not low <= value <= high:
        bounded = math.isfinite(low) and math.isfinite(high)
        raise FieldError(path, f"must be between {low:g} and {high:g}" if bounded else "must be a finite number")
    try:
        return float(value)
    except OverflowError:
        raise FieldError(path, "must be a finite number") from None


def check_text(path: str, value: str, *, shortest: int = 0, longest: int | None = None) -> None:
    """Raise FieldError unless UTF-8 can hold `value` and its length in characters is within bounds."""
    if len(value) < shortest:
        raise FieldError(path, f"must have at least {shortest} characters")
    if longest is not None and len(value) > longest:
        raise FieldError(path, f"must have at most {longest} characters")
    # JSON can escape half of a surrogate pair; no tokenizer and no UTF-8 file can hold one.
    try:
        value.encode()
    except UnicodeEncodeError:
        raise FieldError(path, "must be valid Unicode text") from None
