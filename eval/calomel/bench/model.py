"""The model under test: engine, tokenizer and filler over one checkpoint folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from calomel.bench.holes import Hole, TokenMeasure
from calomel.bench.machine import weights_hash
from calomel.suggest.fill import DEFAULT_CONTEXT, Fill, FillRequest
from calomel.suggest.filler import Filler, open_filler

if TYPE_CHECKING:
    # At run time these load torch, which `calomel --help` must not.
    from calomel.engine import AnyEngine
    from calomel.engine.quantize import Quantization
    from calomel.prompts.text_tokenizer import TextTokenizer

LEFT_TO_RIGHT = "left_to_right"
_PIECE = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class TokenizerMeasure:
    """Counts and boundaries of the model's own tokenizer."""

    tokenizer: TextTokenizer

    def count(self, text: str) -> int:
        """How many tokens `text` has."""
        return len(self.tokenizer.encode(text))

    def boundary(self, text: str) -> int:
        """The character at which the last pre-token of `text` begins."""
        return self.tokenizer.boundary(text)


class PlainMeasure:
    """Words and signs instead of tokens, for runs without a model."""

    def count(self, text: str) -> int:
        """How many words, signs and stretches of space `text` has."""
        return len(_PIECE.findall(text))

    def boundary(self, text: str) -> int:
        """The character at which the last of them begins."""
        return max((piece.start() for piece in _PIECE.finditer(text)), default=0)


@dataclass(frozen=True, slots=True)
class OpenModel:
    """A loaded checkpoint."""

    folder: Path
    weights_hash: str
    engine: AnyEngine
    tokenizer: TextTokenizer
    filler: Filler
    measure: TokenMeasure

    @property
    def verifiable(self) -> bool:
        """Whether left-to-right decoding of these weights means anything."""
        return self.engine.config.diffusion.verifiable

    @property
    def weight_bytes(self) -> int:
        """What the weights take; 0 where the engine does not tell."""
        found: int = getattr(self.engine, "weight_bytes", 0)
        return found

    def fill(
        self,
        hole: Hole,
        *,
        policy: str | None,
        max_steps: int | None,
        max_tokens: int,
        max_context: int = DEFAULT_CONTEXT,
        as_doors: bool = False,
    ) -> Fill:
        """Fill `hole` greedily; raises the engine's errors.

        With `as_doors` from the beginning of the cursor's word on, and with recalled text; else on the bare prompt.
        """
        return self.filler.fill(
            FillRequest(
                prefix=hole.prefix,
                suffix=hole.suffix,
                path=hole.path,
                max_tokens=max_tokens,
                policy=policy,
                max_steps=max_steps,
                max_context=max_context,
                recall=as_doors,
                whole_word=as_doors,
            )
        )


def checkpoint_folder(folder: Path | None) -> Path:
    """`folder`, or the one of the weights that ship with Calomel."""
    if folder is not None:
        return folder
    from calomel.weights import nano_path

    return nano_path()


@contextmanager
def open_model(
    folder: Path | None,
    *,
    device: str = "cpu",
    threads: int | None = None,
    dtype: str | None = None,
    quantize: Quantization | None = None,
) -> Iterator[OpenModel]:
    """Load a checkpoint of any family, `dtype` as in "bfloat16" or None for the engine's choice; closes it at the end.

    `quantize` is for weights in eight bits.

    Raises:
        CheckpointError: the folder does not hold a checkpoint, or one that is too large for this device.
    """
    place = checkpoint_folder(folder)
    filler = open_filler(place, device, threads, dtype=dtype, quantize=quantize)
    try:
        measure = TokenizerMeasure(filler.tokenizer)
        yield OpenModel(place, weights_hash(place), filler.engine, filler.tokenizer, filler, measure)
    finally:
        filler.close()
