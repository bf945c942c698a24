"""The architecture of a checkpoint, read from the `config.json` beside its weights.

Field names are those of the Hugging Face Qwen3 configuration, so that an ordinary checkpoint's file can be read as it
is. What a diffusion checkpoint needs besides (its mask token, its end token, whether logits are shifted) is in
`DiffusionConfig`. Types say what a field may hold; msgspec enforces them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from calomel.engine.errors import CheckpointError

Whole = Annotated[int, Meta(ge=1)]
TokenId = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]


@dataclass(frozen=True, slots=True)
class MoeConfig:
    """A mixture of experts in place of an MLP.

    Attributes:
        experts: how many there are per layer that has any.
        chosen: how many of them see a token.
        intermediate_size: width of one expert.
        score: how the router's logits become scores.
        normalised: whether the scores of the chosen experts are divided by their sum.
        bias: a bias per expert is added to the scores that choose; the weights are without it.
        groups: how many groups of equal size the experts are in, ...
        chosen_groups: ... and how many of them a token's experts come from: those whose two best scores have the
            largest sums.
        scaling: factor of the weights.
        shared: how many experts of `intermediate_size` see every token, as one wider MLP.
        dense: layers that have an ordinary MLP instead, by number.
    """

    experts: Whole
    chosen: Whole
    intermediate_size: Whole
    score: Literal["softmax", "sigmoid"] = "softmax"
    normalised: bool = True
    bias: bool = False
    groups: Whole = 1
    chosen_groups: Whole = 1
    scaling: float = 1.0
    shared: int = 0
    dense: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.experts % self.groups:
            raise CheckpointError(f"{self.experts} experts are not {self.groups} groups of one size")
        if self.chosen_groups > self.groups:
            raise CheckpointError(f"{self.chosen_groups} of {self.groups} groups cannot be chosen")
        if self.chosen > self.experts // self.groups * self.chosen_groups:
            raise CheckpointError(
                f"{self.chosen} experts cannot be chosen out of {self.chosen_groups} groups of "
                f"{self.experts // self.groups}"
            )


LayerType = Literal["full_attention", "sliding_attention"]


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """RoPE frequencies changed so that more positions fit.

    Attributes:
        factor: frequencies are divided by it: all of them (`linear`), ...
        positions: ... or, as in Llama 3.1 (`llama3`), the slow ones: those with wavelengths above this many positions,
        low: ... divided by this.
        high: ... Those with wavelengths below `positions` divided by this stay, and those between change gradually.
    """

    factor: Positive
    positions: Whole | None = None
    low: Positive = 1.0
    high: Positive = 4.0

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise CheckpointError(
                f"rope_scaling has low_freq_factor {self.low!r} and high_freq_factor {self.high!r}; the first must be "
                "below the second"
            )


@dataclass(frozen=True, slots=True)
class DiffusionConfig:
    """How a checkpoint denoises.

    Attributes:
        mask_token_id: the id that stands for "not known yet" on a canvas; -1 if there is none: nothing
            is denoised, and the model only writes from left to right.
        end_token_id: the id that ends an answer; everything after it on a canvas is dropped.
        logit_shift: True when row i predicts the token at i + 1 on a canvas too (Dream), False when a masked row
            predicts its own token (SDAR).
        max_canvas: the longest canvas, in tokens, that the checkpoint was trained on.
        verifiable: True when the causal mode was trained on this context layout, so that left-to-right decoding is
            meaningful.
        block: the context is encoded in blocks of this many positions, counted from its first token; a token sees all
            of its own block. 1 for a causal context. With blocks, a canvas ends where a block ends, sees itself block
            by block too, and starts with the tokens before it that fill no block.
        reads_suffix: the model reads the whole sequence in both directions, so that a request may give the text after
            the answer.
    """

    mask_token_id: Annotated[int, Meta(ge=-1)]
    end_token_id: TokenId
    logit_shift: bool = False
    max_canvas: Whole = 64
    verifiable: bool = True
    block: Whole = 1
    reads_suffix: bool = False

    def __post_init__(self) -> None:
        if self.block > 1 and (self.verifiable or self.logit_shift or self.max_canvas % self.block):
            raise CheckpointError(
                f"with blocks of {self.block} a checkpoint is neither verifiable nor shifted, and max_canvas "
                f"({self.max_canvas}) is a multiple of the block"
            )


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Shape of a Qwen3-like decoder (RMSNorm, RoPE, grouped-query attention, optional QK-norm, SwiGLU).

    Fields beyond those of a Qwen3 configuration: `output_bias`, whether the attention's output projection has a bias;
    `mlp_bias`, whether the MLPs have; `rotary_dim`, how many leading dimensions of a head are rotated (None for all);
    `moe`, a mixture of experts in place of the MLPs.
    """

    vocab_size: Whole
    hidden_size: Whole
    intermediate_size: Whole
    num_hidden_layers: Whole
    num_attention_heads: Whole
    num_key_value_heads: Whole
    head_dim: Whole
    max_position_embeddings: Whole
    diffusion: DiffusionConfig
    rms_norm_eps: Annotated[float, Meta(gt=0, lt=1)] = 1e-6
    rope_theta: Annotated[float, Meta(gt=1)] = 1_000_000.0
    sliding_window: Whole | None = None
    layer_types: tuple[LayerType, ...] = ()
    tie_word_embeddings: bool = True
    qk_norm: bool = True
    attention_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    rotary_dim: Whole | None = None
    rope_scaling: RopeScaling | None = None
    moe: MoeConfig | None = None

    def __post_init__(self) -> None:
        if self.diffusion.mask_token_id < 0 and not self.diffusion.verifiable:
            raise CheckpointError("mask_token_id is -1; denoising needs a mask token")
        for name in ("mask_token_id", "end_token_id"):
            if getattr(self.diffusion, name) >= self.vocab_size:
                raise CheckpointError(f"{name} is {getattr(self.diffusion, name)}; vocab_size is {self.vocab_size}")
        if self.num_attention_heads % self.num_key_value_heads:
            raise CheckpointError(
                f"num_attention_heads ({self.num_attention_heads}) must be a multiple of num_key_value_heads "
                f"({self.num_key_value_heads})"
            )
        if not self.layer_types:
            object.__setattr__(self, "layer_types", ("full_attention",) * self.num_hidden_layers)
        if len(self.layer_types) != self.num_hidden_layers:
            raise CheckpointError(
                f"layer_types names {len(self.layer_types)} layers, num_hidden_layers is {self.num_hidden_layers}"
            )
        if "sliding_attention" in self.layer_types and not self.sliding_window:
            raise CheckpointError("layer_types has sliding_attention layers, but sliding_window is not set")

    def window(self, layer: int) -> int | None:
        """How many positions back layer `layer` sees, itself included; None if it sees all."""
        return self.sliding_window if self.layer_types[layer] == "sliding_attention" else None

    def to_dict(self) -> dict[str, Any]:
        """The contents of `config.json`; `from_dict` reads them back."""
        fields = asdict(self)
        fields["layer_types"] = list(self.layer_types)
        # An ordinary Qwen3 checkpoint has none of these.
        for name in ("output_bias", "mlp_bias", "rotary_dim", "rope_scaling", "moe"):
            if not fields[name]:
                del fields[name]
        return {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_act": "silu", **fields}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> ModelConfig:
        """Read the fields of a `config.json`.

        Raises:
            CheckpointError: a required field is missing or has the wrong type; the message names it.
        """
        if raw.get("hidden_act", "silu") not in ("silu", "swish"):
            raise CheckpointError(
                f"hidden_act in config.json is {json.dumps(raw['hidden_act'])}; only silu is supported"
            )
        heads, size = raw.get("num_attention_heads"), raw.get("hidden_size")
        usual = {"num_key_value_heads": heads}
        if isinstance(heads, int) and isinstance(size, int) and heads > 0:
            usual["head_dim"] = size // heads
        try:
            return msgspec.convert({**usual, **raw}, cls)
        except msgspec.ValidationError as error:
            raise CheckpointError(f"config.json cannot be: {error}") from error
