"""The form that an answer must have, JSON of a schema or text of a pattern, and which tokens it allows.

A schema comes from a client. Its size, depth and number of parts are bounded here before anything is compiled, because
it is easy to give a grammar compiler endless work (CVE-2025-48944 was a pattern that stopped a server). The library
parses while tokens come, within a budget per token; compiling has one too. A request that exceeds them gets an error
instead of hanging.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

from calomel.prompts.tokenizer import TextTokenizer

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer
    from llguidance._lib import JsonCompileOptions

MAX_CHARACTERS: Final = 65_536
MAX_PARTS: Final = 4_000
MAX_DEPTH: Final = 64
MAX_PATTERN_CHARACTERS: Final = 4_096
# The library writes repetitions of repetitions out before its own budgets count: `(a{1000}){1000}` took seven seconds
# and half a gigabyte, one of ten thousand takes milliseconds.
MAX_EXPANDED: Final = 10_000

# The grammar library keeps bounds as 64-bit numbers, and silently truncates larger ones.
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_LARGEST: Final = 2**53

# JSON in one of the common layouts, on one line or with a line per item. If whitespace is allowed between all parts,
# small models fill their answers with it. A client's own `x-guidance` cannot change this: later options win.
_OPTIONS: Final[JsonCompileOptions] = {
    "key_separator": ": ?",
    "item_separator": r",( |\n {0,24})?",
    "whitespace_flexible": False,
    "coerce_one_of": True,
    "lenient": False,
}

# At most two thirds of the library's defaults: by its figures a millisecond of compiling takes 50 thousand units of
# fuel, one of a token 14 thousand. A state of the lexer takes about 2 KB.
_COMPILE_FUEL: Final = 500_000
_STEP_FUEL: Final = 100_000
_STEP_ITEMS: Final = 20_000
_ROW_ITEMS: Final = 1_000
_STATES: Final = 10_000
_SYMBOLS: Final = 100_000
# Clients use the same few schemas again and again.
_REMEMBERED: Final = 8

_KEYWORDS: Final = frozenset({
    "not", "if", "then", "else", "contains", "minContains", "maxContains", "uniqueItems", "propertyNames",
    "dependentRequired", "dependentSchemas", "minProperties", "maxProperties", "unevaluatedProperties",
    "unevaluatedItems", "patternProperties", "multipleOf", "contentEncoding", "contentMediaType", "$dynamicRef",
})  # fmt: skip
_REASONS: Final = (
    ("Unknown format", "the schema names an unsupported format"),
    ("look-around", "patterns cannot use look-ahead or look-behind"),
    ("regex parse error", "a pattern is not a valid regular expression"),
    ("Invalid type", "the schema names a type that does not exist"),
    ("too big", "the schema or pattern is too complex"),
    ("too many", "the schema or pattern is too complex"),
    ("limit", "the schema or pattern is too complex"),
    ("nsatisfiable", "nothing fits the schema"),
    ("NoExtension", "nothing fits the schema"),
)


class GrammarError(ValueError):
    """A schema or pattern is malformed, too large, or uses unsupported features. The message never quotes it."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """What an answer may be, in the grammar library's language."""

    grammar: str


def json_form(schema: Mapping[str, Any]) -> AnswerForm:
    """One JSON value that `schema` allows. `oneOf` is treated as `anyOf`.

    Raises:
        GrammarError: it is too large or too deep, or refers to something outside of itself.
    """
    return AnswerForm(_library().grammar_from_json_schema(checked_schema(schema), overrides=_OPTIONS))


def pattern_form(pattern: str) -> AnswerForm:
    """A text that the regular expression `pattern` matches as a whole.

    Raises:
        GrammarError: it is too long.
    """
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise GrammarError(f"the pattern is longer than {MAX_PATTERN_CHARACTERS} characters")
    _check_pattern(pattern)
    return AnswerForm(_library().grammar_from_regex(pattern))


def _library() -> type[LLMatcher]:
    """A compiled library of the extra `engine`, not needed before a form is used. Raises GrammarError without it."""
    try:
        from llguidance import LLMatcher
    except ModuleNotFoundError:
        raise GrammarError("without Calomel's own engine there are neither schemas nor patterns: remove it") from None
    return LLMatcher


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
                _check_part(value)
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


def _check_part(part: Mapping[str, Any]) -> None:
    reference = part.get("$ref", "#")
    if isinstance(reference, str) and not reference.startswith("#"):
        raise GrammarError("the schema refers to another document; put its definitions into `$defs`")
    pattern = part.get("pattern")
    if isinstance(pattern, str):
        _check_pattern(pattern)
    for bound in _BOUNDS:
        number = part.get(bound, 0)
        if isinstance(number, int | float) and not -_LARGEST <= number <= _LARGEST:
            raise GrammarError(f"the schema's {bound} is above 2**53, the limit for exact numbers")


# A piece of a regular expression: an escape, what opens and closes a group, an alternative, a repetition, a character.
_PIECE: Final = re.compile(
    r"\\[pPxuU]\{[^}]*\}|\\.|\(\?[^:)>]*[:>)]?|[()|]|\{[ \t]*(\d*)[ \t]*(?:,[ \t]*(\d*)[ \t]*)?\}|.", re.DOTALL
)


def _check_pattern(pattern: str) -> None:
    """Raises GrammarError for a pattern that is too large once its repetitions are written out."""
    if re.search(r"\(\?[a-zA-Z]*x", pattern):
        raise GrammarError("a pattern with comments and blanks (`(?x)`) is not supported")
    # Of each open group: its size, and that of its last piece.
    groups, last = [0], 0
    at = 0
    while at < len(pattern):
        if pattern[at] == "[":
            at = _class_end(pattern, at)
            groups[-1], last = groups[-1] + 1, 1
            continue
        found = _PIECE.match(pattern, at)
        if found is None:
            break
        at = found.end()
        piece = found[0]
        if piece[0] == "(" and piece[-1] != ")":
            groups.append(0)
        elif piece == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        elif piece[0] == "{" and len(piece) > 1:
            times = max([1, *(int(number[:9]) for number in found.groups() if number)])
            groups[-1] += last * (times - 1)
            last *= times
        elif piece not in {"|", "*", "+", "?"}:
            groups[-1], last = groups[-1] + 1, 1
        if groups[-1] > MAX_EXPANDED:
            raise GrammarError(f"a pattern has more than {MAX_EXPANDED} parts, counting repetitions")


def _class_end(pattern: str, start: int) -> int:
    """The end of the character class that begins at `start`; classes may hold classes."""
    depth, at = 1, start + 1
    at += pattern.startswith("^", at)
    at += pattern.startswith("]", at)
    while depth and at < len(pattern):
        depth += {"[": 1, "]": -1}.get(pattern[at], 0)
        at += 2 if pattern[at] == "\\" else 1
    return at


@dataclass(frozen=True, slots=True, eq=False)
class GrammarConstraint:
    """A compiled form. Shared by requests; a `calomel.engine.Constraint`."""

    _matcher: LLMatcher
    _size: int

    def begin(self) -> GrammarWalk:
        """A walk at the beginning of an answer."""
        return GrammarWalk(self._matcher.deep_copy(), self._size)


@dataclass(slots=True, eq=False)
class GrammarWalk:
    """A position in a form. Exceeding a token's budget ends it: nothing more is allowed."""

    _matcher: LLMatcher
    _size: int

    def advance(self, tokens: Sequence[int]) -> int:
        """Accept the longest beginning of `tokens` that is allowed, and return its length."""
        known = next((at for at, token in enumerate(tokens) if not 0 <= token < self._size), len(tokens))
        return self._matcher.try_consume_tokens(list(tokens[:known]))

    def may_end(self) -> bool:
        """Whether the accepted tokens are a complete answer."""
        return self._matcher.is_accepting()

    def allowed(self) -> bytes:
        """The tokens that may come next, one bit each, the lowest first."""
        return b"" if self._matcher.is_stopped() else self._matcher.compute_bitmask()

    def forced(self) -> Sequence[int]:
        """Tokens that must come next."""
        return () if self._matcher.is_stopped() else self._matcher.compute_ff_tokens()


class GrammarCompiler:
    """Makes constraints for one tokenizer, with a cache of recent ones. Safe to use from any thread."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        self._remembered = lru_cache(maxsize=_REMEMBERED)(self._compile)

    def compile(self, form: AnswerForm) -> GrammarConstraint:
        """The constraint of `form`; blocks for a few milliseconds, at worst for a second or two.

        Raises:
            GrammarError: the form is malformed, needs unsupported features, or exceeds the budget.
        """
        return self._remembered(form)

    def _compile(self, form: AnswerForm) -> GrammarConstraint:
        from llguidance import LLMatcher, LLParserLimits

        limits = LLParserLimits(
            max_items_in_row=_ROW_ITEMS,
            initial_lexer_fuel=_COMPILE_FUEL,
            step_lexer_fuel=_STEP_FUEL,
            step_max_items=_STEP_ITEMS,
            max_lexer_states=_STATES,
            max_grammar_size=_SYMBOLS,
            precompute_large_lexemes=False,
            verbose_errors=False,
        )
        matcher = LLMatcher(self._tokens, form.grammar, log_level=0, limits=limits)
        if matcher.is_error():
            raise GrammarError(_reason(matcher.get_error()))
        first = matcher.deep_copy()
        first.compute_bitmask()
        if first.is_error():
            raise GrammarError(_reason(first.get_error()))
        return GrammarConstraint(matcher, self._tokenizer.size)

    @cached_property
    def _tokens(self) -> LLTokenizer:
        from llguidance import LLTokenizer

        return LLTokenizer(_Vocabulary(self._tokenizer), eos_token=self._tokenizer.end)  # type: ignore[arg-type]


class _Vocabulary:
    """A tokenizer in the form that the library reads."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        self.eos_token_id = tokenizer.end
        names = {token: name for name, token in tokenizer.control.items()}
        self.special_token_ids = sorted(names)
        self.tokens = [
            names[token].encode() if token in names else tokenizer.decode_bytes([token])
            for token in range(tokenizer.size)
        ]

    def __call__(self, text: str | bytes) -> list[int]:
        return self._tokenizer.encode(text if isinstance(text, str) else text.decode("utf-8", "replace"))


def _reason(message: str) -> str:
    """Why a form cannot be compiled. The library's message quotes the client; only known words of it are used."""
    if unimplemented := re.search(r"Unimplemented keys: (\[[^\]]*\])", message):
        named = sorted(name for name in _KEYWORDS if f'"{name}"' in unimplemented[1])
        return f"the schema uses unsupported keywords{': ' if named else ''}{', '.join(named)}"
    for part, reason in _REASONS:
        if part in message:
            return reason
    return "the schema or pattern is malformed, or uses unsupported features"
