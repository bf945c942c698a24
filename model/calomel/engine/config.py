"""The architecture of a checkpoint, read from the `config.json` that lies beside its weights.

Field names are those of the Hugging Face Qwen3 configuration, so that an ordinary checkpoint's file is read as it is.
What a diffusion checkpoint needs on top (its mask token, its end token, whether logits are shifted) is in
`DiffusionConfig`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Protocol, get_args

from calomel.engine.errors import CheckpointError
from calomel.engine.memory import MemoryConfig


@dataclass(frozen=True, slots=True)
class MoeConfig:
    """A mixture of experts in the place of an MLP.

    Attributes:
        experts: of every layer that has some.
        chosen: so many of them see a token.
        intermediate_size: width of one expert.
        score: how the router's logits become scores.
        normalised: the scores of the chosen experts are divided by their sum.
        bias: a bias per expert is added to the scores that choose; the weights are without it.
        groups: the experts are in so many groups of one size, ...
        chosen_groups: ... and a token's experts are in so many of them: those whose best two scores have the largest
            sums.
        scaling: the weights are multiplied by it.
        shared: so many experts of `intermediate_size` see every token, as one wider MLP.
        dense: layers that have an ordinary MLP instead, by number.
    """

    experts: int
    chosen: int
    intermediate_size: int
    score: Literal["softmax", "sigmoid"] = "softmax"
    normalised: bool = True
    bias: bool = False
    groups: int = 1
    chosen_groups: int = 1
    scaling: float = 1.0
    shared: int = 0
    dense: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.score not in {"softmax", "sigmoid"}:
            raise CheckpointError(f"a router's scores are softmax or sigmoid, not {self.score!r}")
        if self.groups < 1 or self.experts % self.groups:
            raise CheckpointError(f"{self.experts} experts are not {self.groups} groups of one size")
        if not 1 <= self.chosen_groups <= self.groups:
            raise CheckpointError(f"{self.chosen_groups} of {self.groups} groups cannot be chosen")
        if not 1 <= self.chosen <= self.experts // self.groups * self.chosen_groups:
            raise CheckpointError(
                f"{self.chosen} experts cannot be chosen out of {self.chosen_groups} groups of "
                f"{self.experts // self.groups}"
            )

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> MoeConfig:
        """Read the field `moe` of a `config.json`; raises TypeError for a field of the wrong type or name."""
        return cls(**{**raw, "dense": tuple(raw.get("dense", ()))})


LayerType = Literal["full_attention", "sliding_attention"]


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """Frequencies of RoPE that were changed so that more positions fit.

    Attributes:
        factor: frequencies are divided by it: all of them (`linear`), ...
        positions: ... or, as in Llama 3.1 (`llama3`), the slow ones: those of waves longer than so many positions ...
        low: ... divided by this. ...
        high: ... Those of waves shorter than `positions` divided by this stay, and those between change by degrees.
        yarn: by degrees of their place among the frequencies, not of their waves (`yarn`, arXiv 2309.00071).
    """

    factor: float
    positions: int | None = None
    low: float = 1.0
    high: float = 4.0
    yarn: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.factor < math.inf:
            raise CheckpointError(f"the factor of rope_scaling is {self.factor!r}; it must be a number above 0")
        if self.positions is not None:
            need_whole(self, 1, "positions")
            if not 0 < self.low < self.high < math.inf:
                raise CheckpointError(
                    f"rope_scaling has low_freq_factor {self.low!r} and high_freq_factor {self.high!r}; the first must "
                    "be above 0 and below the second"
                )


@dataclass(frozen=True, slots=True)
class DiffusionConfig:
    """How a checkpoint denoises.

    Attributes:
        mask_token_id: the id that stands for "not known yet" on a canvas; -1 where there is none: noise is uniform, or
            nothing is denoised, and the model writes from left to right alone.
        end_token_id: the id that ends an answer; everything behind it on a canvas is dropped.
        logit_shift: True when row i predicts the token at i + 1 on a canvas too (Dream, Fast-dLLM v2), False when a
            masked row predicts its own token (SDAR, LLaDA).
        max_canvas: the longest canvas, in tokens, that the checkpoint was trained on.
        verifiable: True when the causal mode was trained on this context layout, so that left-to-right decoding means
            something.
        block: the context is encoded in blocks of so many positions, counted from its first token; a token sees all of
            its own block. 1 for a causal context. With blocks, a canvas ends where a block ends, sees itself block by
            block too, and is headed by the tokens before it that fill no block.
        sub_block: with blocks, a canvas is revealed in runs of so many positions, from left to right; None where it is
            revealed as a whole.
        opens: the causal mode decides the first position of every canvas before it is denoised, and where it decides
            every token, drafts are denoised for it (Nemotron-Labs-Diffusion); with blocks and shifted logits it decides
            the first one anyway.
        reads_suffix: the model reads in both directions over the whole sequence, so that a request may say what stands
            behind the answer.
    """

    mask_token_id: int
    end_token_id: int
    logit_shift: bool = False
    max_canvas: int = 64
    verifiable: bool = True
    block: int = 1
    reads_suffix: bool = False
    sub_block: int | None = None
    opens: bool = False

    def __post_init__(self) -> None:
        need_whole(self, -1, "mask_token_id")
        need_whole(self, 0, "end_token_id")
        need_whole(self, 1, "block", "max_canvas")
        for name in ("logit_shift", "verifiable", "reads_suffix", "opens"):
            if not isinstance(getattr(self, name), bool):
                raise CheckpointError(f"{name} is {getattr(self, name)!r}; it must be true or false")
        if self.block > 1 and (self.verifiable or self.max_canvas % self.block):
            raise CheckpointError(
                f"with blocks of {self.block} a checkpoint is not verifiable, and max_canvas ({self.max_canvas}) is a "
                "multiple of the block"
            )
        if self.sub_block is not None and (self.sub_block < 1 or self.block % self.sub_block):
            raise CheckpointError(f"sub_block is {self.sub_block}; blocks of {self.block} are no multiple of it")


def need_whole(config: object, least: int, *names: str) -> None:
    """Raise the CheckpointError that names the first field that is no whole number of at least `least`."""
    for name in names:
        value = getattr(config, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise CheckpointError(f"{name} is {value!r}; it must be a whole number of at least {least}")


class Shape(Protocol):
    """What is asked of a model's configuration before a request is queued; `ModelConfig` is one."""

    @property
    def vocab_size(self) -> int:
        """Number of token ids."""

    @property
    def max_position_embeddings(self) -> int:
        """Positions of context and answer together."""

    @property
    def diffusion(self) -> DiffusionConfig:
        """How the checkpoint denoises."""


# Fields of a `config.json` that there must be, and how others are read.
_NEEDED: Final = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "max_position_embeddings",
)  # fmt: skip
_OPTIONAL: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("rms_norm_eps", "rope_theta"), float),
    **dict.fromkeys(("tie_word_embeddings", "qk_norm", "attention_bias", "output_bias", "mlp_bias"), bool),
    **dict.fromkeys(("sliding_window", "rotary_dim"), lambda said: said),
    "layer_types": tuple,
}


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Shape of a Qwen3-like decoder (RMSNorm, RoPE, grouped-query attention, optional QK-norm, SwiGLU).

    Fields beyond those of a Qwen3 configuration: `output_bias`, the attention's output projection has a bias;
    `mlp_bias`, those of the MLPs have one; `rotary_dim`, so many first dimensions of a head turn with the position
    (None for all); `moe`, a mixture of experts in the place of the MLPs; `memory`, tables of the last two and three
    tokens beside the embedding.
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    max_position_embeddings: int
    diffusion: DiffusionConfig
    rms_norm_eps: float = 1e-6
    rope_theta: float = 1_000_000.0
    sliding_window: int | None = None
    layer_types: tuple[LayerType, ...] = ()
    tie_word_embeddings: bool = True
    qk_norm: bool = True
    attention_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    rotary_dim: int | None = None
    rope_scaling: RopeScaling | None = None
    moe: MoeConfig | None = None
    memory: MemoryConfig | None = None

    def __post_init__(self) -> None:
        need_whole(self, 1, "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")
        need_whole(self, 1, "num_attention_heads", "num_key_value_heads", "head_dim", "max_position_embeddings")
        need_whole(self.diffusion, -1 if self.diffusion.verifiable else 0, "mask_token_id")
        for name, least, most in (("rms_norm_eps", 0.0, 1.0), ("rope_theta", 1.0, math.inf)):
            if not least < getattr(self, name) < most:
                raise CheckpointError(
                    f"{name} is {getattr(self, name)}; it must be a number above {least:.0f} and below {most:.0f}"
                )
        for name in ("mask_token_id", "end_token_id"):
            if getattr(self.diffusion, name) >= self.vocab_size:
                raise CheckpointError(f"{name} is {getattr(self.diffusion, name)}; vocab_size is {self.vocab_size}")
        if self.num_attention_heads % self.num_key_value_heads:
            raise CheckpointError(
                f"num_attention_heads ({self.num_attention_heads}) is no multiple of num_key_value_heads "
                f"({self.num_key_value_heads})"
            )
        self._check_layers()

    def _check_layers(self) -> None:
        for kind in set(self.layer_types) - set(get_args(LayerType)):
            raise CheckpointError(f"layer_types has {kind!r}; there are {', '.join(get_args(LayerType))}")
        if not self.layer_types:
            object.__setattr__(self, "layer_types", ("full_attention",) * self.num_hidden_layers)
        if len(self.layer_types) != self.num_hidden_layers:
            raise CheckpointError(
                f"layer_types names {len(self.layer_types)} layers, num_hidden_layers is {self.num_hidden_layers}"
            )
        if "sliding_attention" in self.layer_types:
            if not self.sliding_window:
                raise CheckpointError("layer_types has sliding_attention layers, but sliding_window is not set")
            need_whole(self, 1, "sliding_window")

    def window(self, layer: int) -> int | None:
        """How many positions back layer `layer` sees, itself included; None when it sees all."""
        return self.sliding_window if self.layer_types[layer] == "sliding_attention" else None

    def to_dict(self) -> dict[str, Any]:
        """The contents of `config.json`; `from_dict` reads them back."""
        fields = asdict(self)
        fields["layer_types"] = list(self.layer_types)
        # An ordinary Qwen3 checkpoint has none of these.
        for name in ("output_bias", "mlp_bias", "rotary_dim", "rope_scaling", "moe", "memory"):
            if not fields[name]:
                del fields[name]
        if self.memory:  # who does not know of it must not load the rest as if that were all
            return {"model_type": "calomel", "architectures": ["CalomelForInfilling"], "hidden_act": "silu", **fields}
        return {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_act": "silu", **fields}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> ModelConfig:
        """Read the fields of a `config.json`.

        Raises:
            CheckpointError: a required field is missing or has the wrong type; the message names it.
        """
        if raw.get("hidden_act", "silu") not in ("silu", "swish"):
            raise CheckpointError(f"config.json says hidden_act {raw['hidden_act']!r}; only silu is there")
        try:
            # Some older files have `block_cache`, which was never set.
            diffusion = DiffusionConfig(
                **{key: raw["diffusion"][key] for key in raw["diffusion"] if key != "block_cache"}
            )
            found: dict[str, Any] = {name: int(raw[name]) for name in _NEEDED}
            heads = found["num_attention_heads"]
            found["num_key_value_heads"] = int(raw.get("num_key_value_heads", heads))
            found["head_dim"] = int(raw.get("head_dim", raw["hidden_size"] // (heads or 1)))
            return cls(
                **found,
                diffusion=diffusion,
                **{name: read(raw[name]) for name, read in _OPTIONAL.items() if name in raw},
                rope_scaling=RopeScaling(**raw["rope_scaling"]) if raw.get("rope_scaling") else None,
                moe=MoeConfig.from_dict(raw["moe"]) if raw.get("moe") else None,
                memory=MemoryConfig.from_dict(raw["memory"]) if raw.get("memory") else None,
            )
        except KeyError as error:
            raise CheckpointError(f"config.json has no field {error}; is this a diffusion checkpoint?") from error
        except (TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
            raise CheckpointError(f"config.json has a field of the wrong type: {error}") from error
