"""What is known of one family of checkpoints: the interface for everything above the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args

from calomel.engine import CheckpointError, Engine
from calomel.engine.config import ModelConfig
from calomel.families.facts import FamilyFacts, family_facts
from calomel.families.memory import Estimate, EstimateOptions
from calomel.prompts.renderer import PromptStyle
from calomel.storage.failures import cause

T = TypeVar("T")
Quantization = Literal["int8"]
QUANTIZED: Final[tuple[Quantization, ...]] = get_args(Quantization)
# Requests of one priority at a time, if memory allows.
USUAL_BATCH: Final = 8
# What reading raises for a field with an absurd value.
MISFITS: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Generation:
    """Defaults of a request to a checkpoint.

    Attributes:
        policy: `Request.policy`.
        max_steps: denoising steps per canvas.
        fill_canvas: canvas length for a hole.
        edit_canvas: canvas length for a region that is rewritten.
        temperature: 0 takes the best token.
        top_p: as in `SamplingParams`.
        top_k: as in `SamplingParams`.
        source: where these are published.
    """

    policy: str
    max_steps: int
    fill_canvas: int
    edit_canvas: int
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = -1
    source: str = ""


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """How a checkpoint is opened.

    Attributes:
        device: `cpu`, `cuda`, `cuda:N` or `mps`.
        dtype: of weights and cache: `bfloat16`, `float16` or `float32`; None for the type that the device computes
            fastest.
        threads: of a large CPU forward; None for PyTorch's own choice.
        cache_tokens: context tokens that stay encoded; None for what fits, up to the device's default.
        quantize: weights in eight bits; None for `dtype`.
        memory_limit: bytes that weights, cache and activations may take together; None for what is free on the device.
        max_batch: requests of one priority that are served at a time; None for what fits, up to 8.
        exact: whole forwards at every step, if a family has a faster way that is nearly as good.
    """

    device: str = "cpu"
    dtype: str | None = None
    threads: int | None = None
    cache_tokens: int | None = None
    quantize: Quantization | None = None
    memory_limit: int | None = None
    max_batch: int | None = None
    exact: bool = False

    @property
    def cached(self) -> int:
        """`cache_tokens`, or the default."""
        return usual_cache(self.device) if self.cache_tokens is None else self.cache_tokens

    @property
    def batch(self) -> int:
        """`max_batch`, or the default."""
        return USUAL_BATCH if self.max_batch is None else self.max_batch


def usual_cache(device: str) -> int:
    """The default number of context tokens that stay encoded.

    A GPU serves a team: 64 clients with 2,048 tokens each and their answers. A CPU serves an editor, with eight
    contexts of 8K or two of 32K: with the shipped model in bfloat16 they take 300 MB.
    """
    return 163_840 if device.startswith("cuda") else 65_536


@dataclass(frozen=True, slots=True)
class Family:
    """One family of checkpoints.

    Attributes:
        name: short and stable, as `calomel models info` prints it.
        recognises: whether a `config.json` is of this family.
        config: what the engine needs to know of the model, from its `config.json` and folder (with
            generation_config.json and the tokenizer's files); raises CheckpointError.
        open: the weights in a folder as a running engine; raises CheckpointError. Called by `open_engine`, which has
            compared the estimate with the available memory.
        estimate: the memory that it takes, from `config.json` and the headers of the weights alone.
        prompts: how it is prompted.
        generation: how it generates unless its folder says otherwise (see `generation_of`).
        read_generation: how a checkpoint in a folder generates, from its `config.json`; None if `generation` and the
            temperature, top_p and top_k of generation_config.json are enough.
        confirms: whether a folder whose `config.json` is recognised is of this family; None if `config.json` is enough.
    """

    name: str
    recognises: Callable[[Mapping[str, Any]], bool]
    config: Callable[[Mapping[str, Any], Path], ModelConfig]
    open: Callable[[Path, OpenOptions], Engine]
    estimate: Callable[[Mapping[str, Any], EstimateOptions], Estimate]
    prompts: PromptStyle
    generation: Generation
    read_generation: Callable[[Mapping[str, Any], Path], Generation] | None = None
    confirms: Callable[[Mapping[str, Any], Path], bool] | None = None

    @property
    def facts(self) -> FamilyFacts:
        """Facts for people, each with its source."""
        return family_facts()[self.name]

    def __post_init__(self) -> None:
        # A folder may contain anything: a field with an absurd value must not end in a traceback.
        for name in ("config", "estimate", "read_generation", "confirms"):
            object.__setattr__(self, name, _told(getattr(self, name)))


def _told(read: Callable[[Any, Any], T] | None) -> Callable[[Any, Any], T] | None:
    """Wraps `read` to raise CheckpointError for a field that it cannot handle."""
    if read is None:
        return None

    @wraps(read)
    def told(raw: Any, place: Any) -> T:
        try:
            return read(raw, place)
        except MISFITS as error:
            files = "config.json, generation_config.json or a tokenizer's file"
            raise CheckpointError(f"{files} has a field of the wrong type or size: {cause(error)}") from error

    return told
