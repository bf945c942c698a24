"""Grammars for the tokens of one tokenizer: what a form allows, token by token.

The library parses while tokens come, within a budget for each token; compiling is bounded too. Whoever exceeds it gets
an error, never a wait.
"""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from calomel.prompts.answer_form import AnswerForm, GrammarError
from calomel.prompts.text_tokenizer import TextTokenizer

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

# Two thirds and less of the library's own defaults: its figures are 50 thousand units of fuel a millisecond for
# compiling, 14 thousand for a token. A state of the lexer takes about 2 KB.
_COMPILE_FUEL: Final = 500_000
_STEP_FUEL: Final = 100_000
_STEP_ITEMS: Final = 20_000
_ROW_ITEMS: Final = 1_000
_STATES: Final = 10_000
_SYMBOLS: Final = 100_000
# A client asks with the same few schemas again and again.
_REMEMBERED: Final = 8

_KEYWORDS: Final = frozenset({
    "not", "if", "then", "else", "contains", "minContains", "maxContains", "uniqueItems", "propertyNames",
    "dependentRequired", "dependentSchemas", "minProperties", "maxProperties", "unevaluatedProperties",
    "unevaluatedItems", "patternProperties", "multipleOf", "contentEncoding", "contentMediaType", "$dynamicRef",
})  # fmt: skip


class GrammarConstraint:
    """A compiled form. Shared by requests; a `calomel.engine.Constraint`.

    Attributes:
        form: what was compiled.
    """

    def __init__(self, form: AnswerForm, matcher: LLMatcher, size: int) -> None:
        self.form = form
        self._matcher = matcher
        self._size = size

    def begin(self) -> GrammarWalk:
        """A walk at the beginning of an answer."""
        return GrammarWalk(self._matcher.deep_copy(), self._size)


class GrammarWalk:
    """One way through a form. Where the budget of a token is exceeded there is no way on."""

    def __init__(self, matcher: LLMatcher, size: int) -> None:
        self._matcher = matcher
        self._size = size

    def advance(self, tokens: Sequence[int]) -> int:
        """Take in the longest beginning of `tokens` that is allowed, and return its length."""
        known = next((at for at, token in enumerate(tokens) if not 0 <= token < self._size), len(tokens))
        return self._matcher.try_consume_tokens(list(tokens[:known]))

    def may_end(self) -> bool:
        """Whether the tokens that were taken in are a whole answer."""
        return self._matcher.is_accepting()

    def allowed(self) -> bytes:
        """The tokens that may come next, one bit each, the lowest first."""
        return b"" if self._matcher.is_stopped() else self._matcher.compute_bitmask()

    def forced(self) -> Sequence[int]:
        """Tokens that come next in any case."""
        return () if self._matcher.is_stopped() else self._matcher.compute_ff_tokens()


class GrammarCompiler:
    """Makes constraints for one tokenizer. Safe to use from any thread; what was compiled lately is remembered."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        self._vocabulary: LLTokenizer | None = None
        self._lock = threading.Lock()
        self._compiled: OrderedDict[str, GrammarConstraint] = OrderedDict()

    def compile(self, form: AnswerForm) -> GrammarConstraint:
        """The constraint of `form`; blocks for some milliseconds, at worst for a second or two.

        Raises:
            GrammarError: the form is malformed, needs what is not supported, or is beyond the budget.
        """
        with self._lock:
            known = self._compiled.get(form.grammar)
            if known is not None:
                self._compiled.move_to_end(form.grammar)
                return known
        constraint = self._compile(form)
        with self._lock:
            self._compiled[form.grammar] = constraint
            while len(self._compiled) > _REMEMBERED:
                self._compiled.popitem(last=False)
        return constraint

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
        matcher = LLMatcher(self._tokens(), form.grammar, log_level=0, limits=limits)
        if matcher.is_error():
            raise GrammarError(_reason(matcher.get_error()))
        first = matcher.deep_copy()
        first.compute_bitmask()
        if first.is_error():
            raise GrammarError(_reason(first.get_error()))
        return GrammarConstraint(form, matcher, self._tokenizer.size)

    def _tokens(self) -> LLTokenizer:
        from llguidance import LLTokenizer

        with self._lock:
            if self._vocabulary is None:
                self._vocabulary = LLTokenizer(_Vocabulary(self._tokenizer), eos_token=self._tokenizer.end)  # type: ignore[arg-type]
            return self._vocabulary


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
    """Why a form can not be had. The library's own message quotes the client; of it only known words are taken."""
    if unimplemented := re.search(r"Unimplemented keys: (\[[^\]]*\])", message):
        named = sorted(_KEYWORDS & {str(name) for name in _read(unimplemented[1])})
        return f"the schema uses keywords that are not supported{': ' if named else ''}{', '.join(named)}"
    for part, reason in _REASONS:
        if part in message:
            return reason
    return "the schema or pattern is malformed, or uses what is not supported"


_REASONS: Final = (
    ("Unknown format", "the schema names a format that is not supported"),
    ("look-around", "look-ahead and look-behind in a pattern are not supported"),
    ("regex parse error", "a pattern is no valid regular expression"),
    ("Invalid type", "the schema names a type that does not exist"),
    ("too big", "the schema or pattern is too complex"),
    ("too many", "the schema or pattern is too complex"),
    ("limit", "the schema or pattern is too complex"),
    ("nsatisfiable", "nothing fits the schema"),
    ("NoExtension", "nothing fits the schema"),
)


def _read(names: str) -> list[object]:
    try:
        found = json.loads(names)
    except ValueError:
        return []
    return found if isinstance(found, list) else []
