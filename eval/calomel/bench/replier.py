"""Answering holes with contexts that were built for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from calomel.bench.answer import Contender
from calomel.bench.holes import Hole
from calomel.bench.model import OpenModel
from calomel.context.counter import EstimateCounter, ExactCounter, TokenCounter
from calomel.prompts.parts import PromptParts
from calomel.prompts.tokenizer import Tokenizer
from calomel.suggest.fill import FillRequest


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer: what would be inserted, the tokens of its prompt and how many of them came from the cache."""

    text: str
    context_tokens: int
    cached_tokens: int
    seconds: float


class Replier(Protocol):
    """Answers holes with a context that was built for them."""

    @property
    def counter(self) -> TokenCounter:
        """Counts the tokens of what it reads."""
        ...

    def room(self, size: int, hole: Hole) -> int:
        """Tokens of context that are left of `size` beside the answer."""
        ...

    def reply(self, parts: PromptParts, hole: Hole, contender: Contender, budget: int) -> Reply:
        """Fill the hole."""
        ...


class ModelReplier:
    """Answers with a model, through the same `Filler` as every door."""

    def __init__(self, model: OpenModel) -> None:
        self._model = model
        tokenizer = model.tokenizer
        self.counter: TokenCounter = ExactCounter(tokenizer) if isinstance(tokenizer, Tokenizer) else EstimateCounter()

    def room(self, size: int, hole: Hole) -> int:
        """The model's positions hold context and answer."""
        return min(size, self._model.engine.config.max_position_embeddings - hole.max_tokens)

    def reply(self, parts: PromptParts, hole: Hole, contender: Contender, budget: int) -> Reply:
        """Fill the hole greedily; raises the engine's errors."""
        fill = self._model.filler.fill(
            FillRequest(
                prefix="",
                parts=parts,
                max_tokens=hole.max_tokens,
                policy=contender.policy,
                max_steps=contender.max_steps,
                max_context=budget,
                recall=False,
                whole_word=False,
            )
        )
        return Reply(fill.text, fill.prompt_tokens, fill.cached_tokens, fill.seconds)


class OracleReplier:
    """Answers with what was there: proves that holes and contexts fit together."""

    counter: TokenCounter = EstimateCounter()

    def room(self, size: int, hole: Hole) -> int:
        """All of it, less the answer."""
        return size - hole.max_tokens

    def reply(self, parts: PromptParts, hole: Hole, contender: Contender, budget: int) -> Reply:  # noqa: ARG002
        """The hole's own text, if the context is one of the hole."""
        fits = hole.prefix.endswith(parts.prefix) and hole.suffix.startswith(parts.suffix)
        return Reply(hole.answer if fits else "", 0, 0, 0.0)
