"""All settings of a training run, read from one TOML file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError

from calomel.engine.config import DiffusionConfig, LayerType, ModelConfig
from calomel.prompts.parts import RegionBounds
from calomel.prompts.tokenizer import Tokenizer


class TrainingConfigError(ValueError):
    """A field of the training file is unknown or wrong; the message names it."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The shape of the network to train. See `ModelConfig` for the meaning of the fields."""

    vocab_size: int = 8192
    hidden_size: int = 256
    intermediate_size: int = 672
    layers: int = 6
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    sliding_window: int = 1024
    # Every n-th layer sees everything; the others see `sliding_window` positions.
    full_every: int = 3
    max_position_embeddings: int = 32768
    rope_theta: float = 1e6
    rms_norm_eps: float = 1e-6
    qk_norm: bool = True
    max_canvas: int = 64
    logit_shift: bool = False

    def model_config(self, tokenizer: Tokenizer) -> ModelConfig:
        """The `ModelConfig` of this shape, with as many tokens as `tokenizer` has."""
        layer_types: tuple[LayerType, ...] = tuple(
            "full_attention" if (layer + 1) % self.full_every == 0 else "sliding_attention"
            for layer in range(self.layers)
        )
        return ModelConfig(
            vocab_size=tokenizer.vocab_size,
            hidden_size=self.hidden_size,
            intermediate_size=self.intermediate_size,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            head_dim=self.head_dim,
            max_position_embeddings=self.max_position_embeddings,
            rope_theta=self.rope_theta,
            rms_norm_eps=self.rms_norm_eps,
            qk_norm=self.qk_norm,
            sliding_window=self.sliding_window,
            layer_types=layer_types,
            diffusion=DiffusionConfig(
                mask_token_id=tokenizer.mask,
                end_token_id=tokenizer.end,
                logit_shift=self.logit_shift,
                max_canvas=self.max_canvas,
            ),
        )


@dataclass(frozen=True, slots=True)
class BatchShape:
    """One static shape of a batch.

    Attributes:
        documents: windows of source text in the batch.
        front: rows of causal context per document (path, far suffix, prefix).
        holes: holes per document.
        canvas: rows of each canvas; every hole has two, with complementary masks.
        share: how often this shape is drawn, relative to the others.
        since: the share of the run, 0 to 1, after which it is drawn at all.
        region: room for a region that is rewritten, in tokens: then the branches are questions about an edit, made from
            stories, and a story takes the place of a document. 0 for holes.
        answers: multiplies the weight of the answers' losses.
    """

    documents: int = 4
    front: int = 512
    holes: int = 4
    canvas: int = 32
    share: float = 1.0
    since: float = 0.0
    region: int = 0
    answers: float = 1.0


@dataclass(frozen=True, slots=True)
class HoleMix:
    """Shares of the kinds of hole, and of the ways to cut them."""

    rest_of_line: float = 0.45
    inside_line: float = 0.12
    inside_token: float = 0.10
    inside_indent: float = 0.06
    several_lines: float = 0.17
    nothing: float = 0.10
    # Share of holes whose ends are moved to pre-token boundaries; the rest is cut at any character.
    aligned: float = 0.4


@dataclass(frozen=True, slots=True)
class Losses:
    """Weights of the parts of the loss (see `calomel.training.loss`).

    Attributes:
        classes: how many tokens the head tells apart: those that a batch asks for and a sample of the others, which
            represents all of them (sampled softmax, Jean et al. 2015); 0 for all tokens.
    """

    context: float = 1.0
    causal: float = 0.3
    canvas: float = 0.3
    fill: float = 0.06
    # A masked token's loss is divided by the share of masked tokens, at least 1 / 10 (clipped for variance, BD3-LM).
    max_weight: float = 10.0
    corrupted: float = 1.0
    kept: float = 0.05
    corruption: float = 0.10
    classes: int = 0


@dataclass(frozen=True, slots=True)
class Optimization:
    """Learning rates and schedule (warm-up, stable, linear decay to zero)."""

    muon_lr: float = 0.02
    adam_lr: float = 0.003
    weight_decay: float = 0.05
    warmup_steps: int = 60
    # The share of the run, at its end, in which the rates decay linearly to zero.
    decay_share: float = 0.35
    max_grad_norm: float = 1.0
    # A moving average of the weights is kept, measured and written too: the share of it that each step keeps.
    average: float = 0.0
    compile: bool = True


_File = Annotated[Path, AfterValidator(Path.expanduser)]


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """All settings of one training run.

    Attributes:
        data: folder of shards, from `calomel shards`.
        init_from: a checkpoint folder with the initial weights of the run.
        region: how large a region is; written into the checkpoint.
        languages: relative shares of the languages.
        rows: length of the run, all resumed parts together; the schedule is a function of it. Rows are those of fronts,
            heads, answers and canvases.
        workers: processes that make batches; 0 makes them in the trainer. A GPU needs several, a CPU none.
        gap_share: share of documents that get a random gap in their positions, so that all 32,768 are trained.
        beginnings: share of the holes whose canvases show a beginning of the answer instead of random tokens, of any
            length each, as when an answer is revealed from left to right; those entirely masked are not counted.
        checkpoint_minutes: time between checkpoints.
        evaluate_steps: steps between evaluations on held-out text.
    """

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    data: _File
    init_from: _File | None = None
    region: RegionBounds = field(default_factory=lambda: RegionBounds(above=1, below=2, characters=140, context=512))
    rows: int = 20_000_000
    seed: int = 0
    threads: int = 0
    workers: int = 0
    languages: dict[str, float] = field(default_factory=dict)
    shapes: tuple[BatchShape, ...] = (BatchShape(),)
    model: ModelShape = ModelShape()
    holes: HoleMix = HoleMix()
    losses: Losses = Losses()
    optimization: Optimization = Optimization()
    gap_share: float = 0.25
    far_suffix_share: float = 0.6
    path_share: float = 0.8
    beginnings: float = 0.0
    checkpoint_minutes: float = 5.0
    evaluate_steps: int = 200

    @classmethod
    def from_file(cls, path: Path) -> TrainConfig:
        """Read a TOML file; relative paths in it are relative to the working directory.

        Raises:
            TrainingConfigError: the file is missing or not TOML, or a field is unknown, missing or of the wrong type.
        """
        try:
            config = TypeAdapter(cls).validate_python(tomllib.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError as error:
            raise TrainingConfigError(f"{path} does not exist") from error
        except tomllib.TOMLDecodeError as error:
            raise TrainingConfigError(f"{path} is not valid TOML: {error}") from error
        except ValidationError as error:
            faults = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
            raise TrainingConfigError(f"{path}: {'; '.join(faults)}") from error
        return config
