"""The form that an answer has to have: JSON of a schema, or text of a pattern. Checked before anything is compiled.

A schema comes from a client. It is bounded here in size, depth and number of parts, because a compiler of grammars is
easily given work without end (CVE-2025-48944 was a pattern that stopped a server).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

MAX_CHARACTERS: Final = 65_536
MAX_PARTS: Final = 4_000
MAX_DEPTH: Final = 64
MAX_PATTERN_CHARACTERS: Final = 4_096

# JSON in one of the common ways, on one line or with a line for each item. Where blanks are allowed between all parts,
# small models fill their answers with them. A client's own `x-guidance` can not change it: later options win.
_OPTIONS: Final[JsonCompileOptions] = {
    "key_separator": ": ?",
    "item_separator": r",( |\n {0,24})?",
    "whitespace_flexible": False,
    "coerce_one_of": True,
    "lenient": False,
}


class GrammarError(ValueError):
    """A schema or pattern is malformed, too large, or uses what is not supported. The message never quotes it."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """What an answer may be, in the words of the grammar library."""

    grammar: str


def json_form(schema: Mapping[str, Any]) -> AnswerForm:
    """One JSON value that `schema` allows. `oneOf` is taken as `anyOf`.

    Raises:
        GrammarError: it is too large or too deep, or refers to something outside of itself.
    """
    from llguidance import LLMatcher  # a compiled library, not needed before somebody asks for a form

    return AnswerForm(LLMatcher.grammar_from_json_schema(checked_schema(schema), overrides=_OPTIONS))


def any_object() -> AnswerForm:
    """Any JSON object."""
    return json_form({"type": "object"})


def pattern_form(pattern: str) -> AnswerForm:
    """A text that the regular expression `pattern` matches as a whole.

    Raises:
        GrammarError: it is too long.
    """
    from llguidance import LLMatcher

    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise GrammarError(f"the pattern is longer than {MAX_PATTERN_CHARACTERS} characters")
    return AnswerForm(LLMatcher.grammar_from_regex(pattern))


def embedded(schema: Mapping[str, Any]) -> str:
    """`schema` as a term of a larger grammar. Raises as `json_form` does."""
    return "%json " + json.dumps({**json.loads(checked_schema(schema)), "x-guidance": _OPTIONS})


def checked_schema(schema: Mapping[str, Any]) -> str:
    """`schema` as JSON.

    Raises:
        GrammarError: it is too large or too deep, or refers to something outside of itself.
    """
    level: list[Any] = [schema]
    parts = depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise GrammarError(f"the schema is nested deeper than {MAX_DEPTH} levels")
        below: list[Any] = []
        for value in level:
            parts += 1
            if isinstance(value, Mapping):
                reference = value.get("$ref", "#")
                if isinstance(reference, str) and not reference.startswith("#"):
                    raise GrammarError("the schema refers to another document; put its definitions into `$defs`")
                below += value.values()
            elif isinstance(value, Sequence) and not isinstance(value, str):
                below += value
        if parts > MAX_PARTS:
            raise GrammarError(f"the schema has more than {MAX_PARTS} parts")
        level = below
    text = json.dumps(schema, ensure_ascii=False)
    if len(text) > MAX_CHARACTERS:
        raise GrammarError(f"the schema is longer than {MAX_CHARACTERS} characters")
    return text
