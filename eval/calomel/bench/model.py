"""The model under test, over one checkpoint folder, and the ways to decode that are compared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from calomel.bench.holes import TokenMeasure
from calomel.report.heldout import Hole
from calomel.report.result import weights_hash
from calomel.suggest.fill import DEFAULT_CONTEXT, Fill, FillRequest
from calomel.suggest.filler import Filler
from calomel.suggest.opening import open_filler

if TYPE_CHECKING:
    # At run time these load torch, which `calomel --help` must not.
    from calomel.engine import AnyEngine
    from calomel.engine.quantize import Quantization
    from calomel.prompts.tokenizer import TextTokenizer

LEFT_TO_RIGHT: Final = "left_to_right"


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

        With `as_doors` from the beginning of the cursor's word on, with recalled text, and no more than fits; else on
        the bare prompt.
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
                fitted=as_doors,
            )
        )


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to decode: a policy, and its bound on steps, None for the default.

    Without a policy it is the shipped way: from the beginning of the cursor's word on, or what stands elsewhere where
    that is likelier right. Policies are compared on the bare prompt.
    """

    name: str
    policy: str | None = None
    max_steps: int | None = None

    @classmethod
    def parse(cls, text: str) -> Contender:
        """Read `POLICY` or `POLICY@STEPS`, as in `threshold:0.9@8`.

        Raises:
            ValueError: the steps are no positive number.
        """
        policy, mark, steps = text.partition("@")
        if mark and not (steps.isdigit() and int(steps) > 0):
            raise ValueError(f"{text!r}: behind @ belongs a positive number of steps")
        return cls(text, None if policy == "default" else policy, int(steps) if mark else None)

    @classmethod
    def chosen(cls, policy: str | None, max_steps: int | None) -> Contender:
        """What the options name, by default the default; `max_steps` goes before the policy's own bound."""
        text = policy or "default"
        return cls.parse(text if max_steps is None else f"{text.partition('@')[0]}@{max_steps}")


BASELINE: Final = Contender(LEFT_TO_RIGHT, LEFT_TO_RIGHT)


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
