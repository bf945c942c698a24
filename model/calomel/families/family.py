"""What is known of one family of checkpoints: everything above the engine asks through these names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calomel.engine import Serving
from calomel.engine.config import Shape
from calomel.engine.quantize import Quantization as Quantization  # noqa: PLC0414  (part of OpenOptions)
from calomel.families.estimate import Estimate, EstimateOptions
from calomel.families.facts import FamilyFacts
from calomel.families.generation import Generation
from calomel.families.style import PromptStyle


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """How a checkpoint is opened.

    Attributes:
        device: `cpu`, `cuda` or `cuda:N`.
        dtype: of weights and cache, as `bfloat16`, `float16` or `float32`; None for what the device computes fastest.
        threads: of a large CPU forward; None for PyTorch's own choice.
        cache_tokens: context tokens that stay encoded; None for the device's usual number, or for what fits.
        spare_tokens: see `Engine`; None for as many as `cache_tokens`.
        quantize: weights in eight bits; None for `dtype`.
        memory_limit: bytes that weights, cache and activations may take together; None for what the device has free.
        max_batch: requests of one priority that are served at a time.
        exact: whole forwards at every step, where a family has a faster way that is nearly as good.
    """

    device: str = "cpu"
    dtype: str | None = None
    threads: int | None = None
    cache_tokens: int | None = None
    spare_tokens: int | None = None
    quantize: Quantization | None = None
    memory_limit: int | None = None
    max_batch: int = 8
    exact: bool = False

    @property
    def cached(self) -> int:
        """`cache_tokens`, or the usual number."""
        return usual_cache(self.device) if self.cache_tokens is None else self.cache_tokens

    @property
    def spare(self) -> int:
        """`spare_tokens`, or as many as are cached."""
        return self.cached if self.spare_tokens is None else self.spare_tokens


def usual_cache(device: str) -> int:
    """Context tokens that stay encoded where nobody says how many.

    A GPU serves a team: 64 clients with 2,048 tokens each and their answers. A CPU serves an editor, with four contexts
    of 8K: with the shipped model in float32 they, and as many laid out, take 400 MB.
    """
    return 163_840 if device.startswith("cuda") else 32_768


@dataclass(frozen=True, slots=True)
class Family:
    """One family of checkpoints.

    Attributes:
        name: short and stable, as `calomel models info` prints it.
        recognises: whether a `config.json` is of this family.
        config: what the engine asks of the model, from its `config.json` and folder (generation_config.json and the
            tokenizer's files lie there); raises CheckpointError.
        open: the weights in a folder as a running engine; raises CheckpointError. Called by `open_engine`, which has
            compared the estimate with the memory there is.
        estimate: the memory that it takes, from `config.json` and the headers of the weights alone.
        prompts: how it is asked.
        generation: how it generates where its folder says nothing else (see `generation_of`).
        facts: for people, each with its source.
        read_generation: how a checkpoint in a folder generates, from its `config.json`; None where `generation` and
            the temperature, top_p and top_k of generation_config.json are all there is.
    """

    name: str
    recognises: Callable[[Mapping[str, Any]], bool]
    config: Callable[[Mapping[str, Any], Path], Shape]
    open: Callable[[Path, OpenOptions], Serving]
    estimate: Callable[[Mapping[str, Any], EstimateOptions], Estimate]
    prompts: PromptStyle
    generation: Generation
    facts: FamilyFacts
    read_generation: Callable[[Mapping[str, Any], Path], Generation] | None = None
