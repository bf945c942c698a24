"""What an upstream says, piece by piece, as the tokens of an answer and their log-probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from calomel.engine.config import Shape
from calomel.engine.request import FinishReason, Result
from calomel.prompts.tokenizer import TextTokenizer, TokenizerError
from calomel.suggest.upstream.errors import UpstreamError

NO_LOG_PROBS: Final = (
    "the upstream answers without log-probabilities, and without them nothing can be held back that is not sure: "
    "have it return them (vLLM does), or serve the model's weights here"
)
_NUMBERED: Final = "token_id:"
_LEAST: Final = -9999.0


class Answer:
    """An answer that grows.

    Args:
        shape: of the model.
        tokenizer: of the model.
        ends: ids of the tokens that end an answer.

    Attributes:
        pieces: so many came.
        over: an end came, or the upstream has said that there is nothing more.
        closed: the latter.
    """

    def __init__(self, shape: Shape, tokenizer: TextTokenizer, ends: Sequence[int]) -> None:
        self._shape = shape
        self._tokenizer = tokenizer
        self._ends = frozenset(ends)
        self._ids: list[int] = []
        self._log_probs: list[float] = []
        self._text = ""
        self._exact = True  # the ids are the upstream's own
        self._end_log_prob: float | None = None
        self._said: str | None = None
        self._prompt_tokens: int | None = None
        self._cached_tokens = 0
        self.pieces = 0
        self.over = False
        self.closed = False

    @property
    def ids(self) -> tuple[int, ...]:
        """The tokens so far, without the end."""
        return tuple(self._ids)

    def take(self, piece: Any) -> None:
        """One event of a stream, or a whole answer. Raises UpstreamError for what is no completion."""
        if not isinstance(piece, dict) or "error" in piece:
            raise UpstreamError("the upstream failed in the middle of an answer; its own log says why")
        self._count(piece.get("usage"))
        choices = piece.get("choices")
        if not isinstance(choices, list) or len(choices) > 1 or not all(isinstance(each, dict) for each in choices):
            raise UpstreamError("what the upstream answered is no completion")
        for choice in choices:
            if not self.over:
                self._take_choice(choice)
            self.closed = self.closed or choice.get("finish_reason") is not None

    def result(self, reason: FinishReason | None, context: int, times: tuple[float, float]) -> Result:
        """The answer as the engine's; `reason` where it was ended here."""
        ids, log_probs = self._settled()
        said: FinishReason = "length" if self._said == "length" else "stop"
        prompt = context if self._prompt_tokens is None else self._prompt_tokens
        cached = min(self._cached_tokens, prompt)
        return Result(
            ids=ids,
            log_probs=log_probs,
            entropies=(),
            end_log_prob=self._end_log_prob,
            finish_reason=reason or said,
            steps=self.pieces,
            forwards=self.pieces,
            cached_tokens=cached,
            computed_tokens=prompt - cached,
            canvas_length=0,
            length_scores=(),
            prefill_seconds=times[0],
            denoise_seconds=times[1],
        )

    def mismatch(self) -> bool:
        """Whether the upstream's ids stand for another text than it says: its tokenizer is another one."""
        text = self._tokenizer.decode(self._ids)
        return self._exact and bool(self._text) and "\ufffd" not in self._text and text.strip() != self._text.strip()

    def _count(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        prompt, details = usage.get("prompt_tokens"), usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        if isinstance(prompt, int) and 0 <= prompt <= self._shape.max_position_embeddings:
            self._prompt_tokens = prompt
        if isinstance(cached, int) and cached >= 0:
            self._cached_tokens = cached

    def _take_choice(self, choice: Mapping[str, Any]) -> None:
        text, said, given = choice.get("text") or "", choice.get("finish_reason"), choice.get("token_ids")
        told = choice.get("logprobs") or {}
        if not isinstance(text, str) or not isinstance(told, dict):
            raise UpstreamError("what the upstream answered is no completion")
        tokens, numbers = told.get("tokens") or [], told.get("token_logprobs") or []
        if not isinstance(tokens, list) or not isinstance(numbers, list):
            raise UpstreamError("what the upstream answered is no completion")
        self.pieces += 1
        self._text += text
        if given:
            self._take_ids(given, numbers)
        elif tokens and len(tokens) == len(numbers):
            self._exact = False
            self._take_tokens(tokens, numbers)
        elif text:
            raise UpstreamError(NO_LOG_PROBS)
        if said is not None:
            self._said, self.over = self._said or str(said), True

    def _take_ids(self, ids: Any, numbers: Sequence[Any]) -> None:
        if not isinstance(ids, list) or not all(type(token) is int for token in ids):
            raise UpstreamError("what the upstream answered is no completion")
        # Some leave the end out of one of the two.
        if len(numbers) < len(ids) and not (len(numbers) == len(ids) - 1 and ids[-1] in self._ends):
            raise UpstreamError(NO_LOG_PROBS)
        for place, token in enumerate(ids):
            self._add(token, numbers[place] if place < len(numbers) else None)

    def _take_tokens(self, tokens: Sequence[Any], numbers: Sequence[Any]) -> None:
        for token, number in zip(tokens, numbers, strict=True):
            spelled = str(token)
            digits = spelled.removeprefix(_NUMBERED)
            if digits != spelled and digits.isdecimal() and len(digits) < 10:  # noqa: PLR2004
                found = [int(digits)]
            elif spelled in self._tokenizer.control:
                found = [self._tokenizer.control[spelled]]
            else:
                found = self._tokenizer.encode(spelled)
            # A piece that is several tokens here has its probability on the first of them: the sum is the same.
            for place, each in enumerate(found):
                self._add(each, number if not place else 0.0)

    def _add(self, token: int, number: Any) -> None:
        if self.over:
            return
        if token in self._ends:
            self._end_log_prob = None if number is None else _log_prob(number)
            self._said, self.over = "stop", True
            return
        if not 0 <= token < self._shape.vocab_size:
            raise UpstreamError("the upstream's tokens are none of the model folder's tokenizer: is it another model?")
        self._ids.append(token)
        self._log_probs.append(_log_prob(number))

    def _settled(self) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Tokens and log-probabilities; where tokens came as text, they make up the text that was said."""
        try:
            decoded = self._tokenizer.decode(self._ids)
        except TokenizerError:
            raise UpstreamError(
                "the upstream's tokens are none of the model folder's tokenizer: is it another model?"
            ) from None
        if self._exact or decoded == self._text:
            return self.ids, tuple(self._log_probs)
        ids = tuple(self._tokenizer.encode(self._text))
        share = sum(self._log_probs) / max(1, len(ids))
        return ids, (share,) * len(ids)


def _log_prob(number: Any) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or math.isnan(number):
        raise UpstreamError(NO_LOG_PROBS)
    return min(0.0, max(_LEAST, float(number)))
