"""Asks one checkpoint of our own in many ways."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from calomel.bench.decoding.orders import Ordered
from calomel.bench.decoding.variants import Order, Variant
from calomel.bench.holes import Hole, TokenMeasure
from calomel.bench.machine import weights_hash
from calomel.bench.model import TokenizerMeasure, checkpoint_folder
from calomel.prompts.parts import PromptParts
from calomel.suggest.fill import DEFAULT_CONTEXT, FillRequest
from calomel.suggest.filler import Filler

if TYPE_CHECKING:
    from calomel.bench.decoding.end_bias import BiasedEnd  # imports torch


class Asker(Protocol):
    """Answers holes in any way."""

    def ask(self, variant: Variant, hole: Hole) -> tuple[str, int]:
        """The answer, and the forwards that it took behind its prompt."""
        ...

    def likelihood(self, hole: Hole, text: str) -> tuple[float, int]:
        """The log-probability of an answer and its end, read left to right, and how many tokens these are."""
        ...


class ModelAsker:
    """Asks a model.

    Attributes:
        weights: short hash of the weights.
        measure: of its tokens.
    """

    def __init__(self, filler: Filler, model: BiasedEnd, weights: str) -> None:
        tokenizer = filler.tokenizer
        self.weights = weights
        self.measure: TokenMeasure = TokenizerMeasure(tokenizer)
        self._model = model
        self._filler = filler
        self._tokenizer = tokenizer
        self._fillers: dict[Order, Filler] = {"shipped": filler}

    def ask(self, variant: Variant, hole: Hole) -> tuple[str, int]:
        """Raises the engine's errors."""
        request = FillRequest(
            prefix=hole.prefix,
            suffix=hole.suffix,
            path=hole.path,
            max_tokens=hole.max_tokens,
            min_tokens=variant.min_tokens,
            policy=variant.policy,
            max_steps=variant.max_steps,
            canvas_lengths=variant.canvases,
            max_context=variant.context or DEFAULT_CONTEXT,
            stop=("\n",) if variant.one_line else (),
            whole_word=variant.from_boundary,
            recall=False,
        )
        self._model.bias = variant.end_bias
        fill = self._filler_of(variant.order).fill(request)
        return fill.text, fill.forwards

    def likelihood(self, hole: Hole, text: str) -> tuple[float, int]:
        """Of an answer behind the shipped prompt."""
        from calomel.engine import Request  # imports torch

        self._model.bias = 0.0
        parts = PromptParts(path=hole.path, prefix=hole.prefix, suffix=hole.suffix)
        prompt = self._filler.manner.renderer.render(parts, DEFAULT_CONTEXT)
        given = tuple(self._tokenizer.encode(text))
        result = self._filler.engine.submit(Request(context=prompt.context, given=given, reuse=prompt.reuse)).result()
        return sum(result.log_probs) + float(result.end_log_prob or 0.0), len(given) + 1

    def _filler_of(self, order: Order) -> Filler:
        """One for each order of parts, over the one engine."""
        known = self._fillers.get(order)
        if known is None:
            from calomel.prompts.tokenizer import Tokenizer

            if not isinstance(self._tokenizer, Tokenizer):
                raise TypeError("another order of parts is known for checkpoints of our own alone")
            manner = replace(self._filler.manner, renderer=Ordered(self._tokenizer, order))
            known = self._fillers[order] = Filler(self._filler.engine, self._tokenizer, manner)
        return known


@contextmanager
def open_asker(folder: Path | None, *, device: str = "cpu", threads: int | None = None) -> Iterator[ModelAsker]:
    """Load a checkpoint of our own.

    Raises:
        CheckpointError, TokenizerError: the folder is incomplete, or of another maker.
    """
    from calomel.bench.decoding.end_bias import BiasedEnd  # these import torch
    from calomel.engine import Engine
    from calomel.engine.checkpoint import load_checkpoint
    from calomel.engine.engine import native_dtype
    from calomel.prompts.tokenizer import Tokenizer

    place = checkpoint_folder(folder)
    tokenizer = Tokenizer.from_file(place / "tokenizer.json")
    model = BiasedEnd(load_checkpoint(place, dtype=native_dtype(device), device=device))
    filler = Filler(Engine(model, device=device, threads=threads), tokenizer)
    try:
        yield ModelAsker(filler, model, weights_hash(place))
    finally:
        filler.close()
