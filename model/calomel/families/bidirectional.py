"""The families that read the whole sequence in both directions, in a window of a few thousand positions.

* Dream and Dream-Coder (arXiv 2508.15487): Qwen2.5; a row predicts the next position.
* DiffuCoder (arXiv 2506.20639): Dream's network and loop, trained on code from Qwen2.5-Coder.
* DreamOn (arXiv 2602.01326): Dream-Coder with canvases that grow and shrink by special tokens.
* Open-dCoder (Open-dLLM): Qwen2.5-Coder 0.5B.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from calomel.engine import Bidirectional, BidirectionalOptions, DiffusionConfig, Engine, ModelConfig
from calomel.engine.checkpoint import tensor_table
from calomel.families.configuration import control_id, decoder_config, named, need_token_id, read_config, token_id
from calomel.families.family import Family, Generation, OpenOptions
from calomel.families.generation import published_generation, read_generation_config
from calomel.families.loading import dtype_of, load_decoder
from calomel.families.memory import Estimate, EstimateOptions, decoder_estimate
from calomel.prompts.renderer import PromptStyle

# From the Qwen2.5 tokenizer.
END: Final = "<|endoftext|>"
TURN_END: Final = "<|im_end|>"
_CANVAS: Final = 256


def _ends(folder: Path, *names: str) -> BidirectionalOptions:
    """Those of `names` that the tokenizer has also end an answer."""
    found = (token_id(folder, name) for name in names)
    return BidirectionalOptions(end_token_ids=tuple(each for each in found if each is not None))


@dataclass(frozen=True, slots=True)
class Window:
    """How the checkpoints of a family denoise in a window.

    Attributes:
        positions: maximum of a window. The configurations give those of the model that it was made of: far more than a
            step could forward.
        canvas: the longest one.
        shift: whether a row predicts the next position.
        block: a canvas is denoised in blocks of this many positions; None for all of it at once.
        network: other settings of the network; Qwen2's by default.
        own: further options of denoising, from the folder; None if only the end tokens of its prompts count.
    """

    positions: int
    canvas: int = _CANVAS
    shift: bool = True
    block: int | None = None
    network: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda _: {"qkv_bias": True}
    own: Callable[[Mapping[str, Any], Path], BidirectionalOptions] | None = None

    def config(self, raw: Mapping[str, Any], folder: Path, prompts: PromptStyle) -> ModelConfig:
        """The configuration of the checkpoint in `folder`. Raises CheckpointError."""
        diffusion = DiffusionConfig(
            mask_token_id=control_id(raw, folder, "mask_token_id", (str(prompts.mask),), None),
            end_token_id=control_id(raw, folder, "", prompts.ends[:1], None),
            logit_shift=self.shift,
            max_canvas=self.canvas,
            verifiable=False,
            reads_suffix=True,
        )
        positions = raw.get("max_position_embeddings")
        most = min(self.positions, positions) if isinstance(positions, int) else self.positions
        return decoder_config({**raw, "max_position_embeddings": most}, diffusion, **self.network(raw))

    def open(self, folder: Path, options: OpenOptions, prompts: PromptStyle) -> Engine:
        """The checkpoint in `folder` as a running engine. Raises CheckpointError if its tensors do not fit."""
        raw, dtype = read_config(folder), dtype_of(options.dtype, options.device)
        config = self.config(raw, folder, prompts)
        own = _ends(folder, *prompts.ends[1:]) if self.own is None else self.own(raw, folder)
        # docs/decisions/008
        own = replace(own, block=self.block, dual_cache=not options.exact)
        model = load_decoder(
            folder, config, tensor_table(config), dtype=dtype, device=options.device, quantize=options.quantize
        )
        room = options.batch * config.max_position_embeddings
        return Engine(Bidirectional(model, own, threads=options.threads, cache_tokens=room), max_batch=options.batch)

    def estimate(self, raw: Mapping[str, Any], options: EstimateOptions) -> Estimate:
        """Its memory: a step forwards the windows of all requests; a dual cache keeps the keys and values of each."""
        asked = replace(options, context=min(options.context, self.positions))
        found = decoder_estimate(raw, asked, cached=False, canvas=self.canvas)
        kept = replace(asked, cache_tokens=asked.max_batch * asked.context)
        return replace(found, cache=decoder_estimate(raw, kept, cached=True, canvas=self.canvas).cache)

    def family(
        self,
        name: str,
        recognises: Callable[[Mapping[str, Any]], bool],
        generation: Generation,
        prompts: PromptStyle,
        confirms: Callable[[Mapping[str, Any], Path], bool] | None = None,
        *,
        samples: bool = True,
    ) -> Family:
        """The family of this name; `samples` says whether a checkpoint's generation_config.json counts."""
        return Family(
            name=name,
            recognises=recognises,
            config=lambda raw, folder: self.config(raw, folder, prompts),
            open=lambda folder, options: self.open(folder, options, prompts),
            estimate=self.estimate,
            prompts=prompts,
            generation=generation,
            read_generation=lambda _, folder: published_generation(generation, folder) if samples else generation,
            confirms=confirms,
        )


# Dream, DiffuCoder, DreamOn: only the tokenizer tells them apart reliably

# "the context length (input+output) of Dream currently is 2048": the makers' README.
_DREAM: Final = Window(2048)
_DREAM_MASK: Final = "<|mask|>"


def _is_dream(raw: Mapping[str, Any]) -> bool:
    """Whether a `config.json` is of Dream's network, whoever trained it, but not of DreamReasoner with its blocks."""
    return named(raw, "dreammodel") and not raw.get("block_size")


_DREAM_GENERATION: Final = Generation(
    policy="entropy",
    max_steps=_CANVAS,
    fill_canvas=16,
    edit_canvas=128,
    temperature=0.2,
    top_p=0.95,
    source="model cards: alg entropy, alg_temp 0, temperature 0.2, top_p 0.95, one token a step; canvases are ours",
)
DREAM: Final = _DREAM.family(
    "dream",
    _is_dream,
    _DREAM_GENERATION,
    PromptStyle(fim="around", edit="chat", mask=_DREAM_MASK, ends=(END, TURN_END), begin="<|beginoftext|>"),
)
# It fills the canvas after an answer, and its makers' examples cut it off.
_PADDING: Final = "<|dlm_pad|>"
DIFFUCODER: Final = _DREAM.family(
    "diffucoder",
    _is_dream,
    replace(
        _DREAM_GENERATION,
        source="model cards: alg entropy, alg_temp 0, temperature 0.2 (base), top_p 0.95; canvases are ours",
    ),
    PromptStyle(fim="around", edit="chat", mask=_DREAM_MASK, ends=(END, TURN_END, _PADDING)),
    confirms=lambda _, folder: token_id(folder, _PADDING) is not None,
)

_EXPAND: Final = "<|expand|>"


def _elastic(raw: Mapping[str, Any], folder: Path) -> BidirectionalOptions:
    """How DreamOn's canvases grow and shrink."""
    said = read_generation_config(folder)
    expand = raw.get("expand_token_id", said.get("expand_token_id"))
    budget, transfer = said.get("expand_budget"), said.get("number_transfer_tokens")
    return BidirectionalOptions(
        expand_token_id=expand if isinstance(expand, int) else need_token_id(folder, _EXPAND),
        # Its loop uses the end token for this.
        delete_token_id=need_token_id(folder, END),
        expand_budget=budget if isinstance(budget, int) and budget >= 0 else None,
        transfer=transfer if isinstance(transfer, int) and transfer > 0 else 1,
    )


# Its README's max_new_tokens; a canvas begins with 4 masks there.
DREAMON: Final = replace(_DREAM, canvas=64, own=_elastic).family(
    "dreamon",
    lambda raw: named(raw, "dreamon") or _is_dream(raw),
    Generation(
        policy="entropy",
        # One token a step, and as many steps for growing and shrinking: the limit of its makers' evaluation.
        max_steps=256,
        fill_canvas=4,
        edit_canvas=64,
        temperature=0.2,
        top_p=0.9,
        source="README: alg entropy, temperature 0.2, top_p 0.9, 4 masks to begin with, number_transfer_tokens 1",
    ),
    PromptStyle(fim="around", edit="around", mask=_DREAM_MASK, ends=(END,), begin="<|beginoftext|>", close=END),
    confirms=lambda raw, folder: isinstance(raw.get("expand_token_id"), int) or token_id(folder, _EXPAND) is not None,
)

# Open-dCoder

_OPEN_DCODER_MASK: Final = "<M>"
# The length that it was trained on.
OPEN_DCODER: Final = Window(4096).family(
    "open-dcoder",
    lambda raw: raw.get("model_type") == "qwen2" and named(raw, "qwen2forcausallm"),
    Generation(
        policy="p2",
        max_steps=64,
        fill_canvas=16,
        edit_canvas=64,
        temperature=0.6,
        top_p=0.95,
        source="Open-dLLM's infilling evaluation: alg p2, 64 steps, temperature 0.6, top_p 0.95; canvases are ours",
    ),
    PromptStyle(fim="around", edit="around", mask=_OPEN_DCODER_MASK, ends=(END, TURN_END)),
    # Its configuration is an ordinary Qwen2's; the mask token tells them apart.
    confirms=lambda raw, folder: (
        isinstance(raw.get("mask_token_id"), int) or token_id(folder, _OPEN_DCODER_MASK) is not None
    ),
)
