"""The families that write from left to right, on our own decoder: Qwen2, Qwen3 and Llama, and their derivatives.

They have no mask token, so no canvas is denoised: the causal mode decides every token (policy `left_to_right`), and
what followed the same tokens in the context is used as a draft. Models trained for fill-in-the-middle are recognised by
the tokens of their tokenizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from calomel.engine import CheckpointError, DiffusionConfig, Engine, ModelConfig
from calomel.engine.checkpoint import tensor_table
from calomel.families.configuration import decoder_config, names_of, read_config, rope_of, token_ids
from calomel.families.family import Family, Generation, OpenOptions
from calomel.families.generation import read_generation_config
from calomel.families.loading import open_decoder
from calomel.families.memory import decoder_estimate
from calomel.prompts.fim_tokens import format_of
from calomel.prompts.next_edit import format_called
from calomel.prompts.renderer import EditKind, PromptStyle

# End tokens of texts and turns, in the names of several makers, besides those that a folder declares.
_STYLE: Final = PromptStyle(
    fim="fim_tokens",
    edit="chat",
    mask=None,
    ends=("<|endoftext|>", "<|im_end|>", "<|end_of_text|>", "<|eot_id|>", "<|EOT|>"),
)
# Drafted rows cost little beside the weights, which are read anyway.
_GENERATION: Final = Generation(
    policy="left_to_right:10",
    max_steps=1,
    fill_canvas=1,
    edit_canvas=1,
    source="greedy, as the makers' examples of filling gaps are; 10 tokens are read ahead as in transformers' prompt "
    "lookup decoding",
)


def _ends(raw: Mapping[str, Any], folder: Path) -> tuple[int, ...]:
    """All end tokens: first the one that ends a filled hole.

    Raises:
        CheckpointError: there is none.
    """
    known = token_ids(folder)
    form = format_of(known, folder.name)
    names = (*_STYLE.ends, *(() if form is None else form.names))
    said: list[Any] = [known.get(form.end)] if form is not None else []
    for place in (raw, read_generation_config(folder)):
        ends = place.get("eos_token_id")
        said += ends if isinstance(ends, list) else [ends]
    said += [known[name] for name in names if name in known]
    size = int(raw["vocab_size"])
    found = tuple(dict.fromkeys(each for each in said if type(each) is int and 0 <= each < size))
    if not found:
        raise CheckpointError(f"{folder} has no end token: config.json needs eos_token_id")
    return found


def _family(name: str, architecture: str, *, qk_norm: bool = False, qkv_bias: bool | None = None) -> Family:
    """Checkpoints whose `config.json` names exactly this class of transformers."""

    def recognises(raw: Mapping[str, Any]) -> bool:
        said = raw.get("architectures")
        return raw.get("model_type") == name and (not said or said == [architecture]) and not raw.get("auto_map")

    def config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
        if rope_of(raw).get("partial_rotary_factor") not in (None, 1):
            raise CheckpointError("partial_rotary_factor in config.json is not supported")
        diffusion = DiffusionConfig(mask_token_id=-1, end_token_id=_ends(raw, folder)[0])
        return decoder_config(raw, diffusion, qk_norm=qk_norm, qkv_bias=qkv_bias, windows=True)

    def opened(folder: Path, options: OpenOptions) -> Engine:
        raw = read_config(folder)
        shape = config(raw, folder)
        return open_decoder(folder, options, shape, tensor_table(shape), end_token_ids=_ends(raw, folder))

    return Family(
        name=name,
        recognises=recognises,
        config=config,
        open=opened,
        estimate=decoder_estimate,
        prompts=_STYLE,
        generation=_GENERATION,
        # The sampling of generation_config.json is for conversations.
        read_generation=lambda _raw, _folder: _GENERATION,
    )


QWEN2: Final = _family("qwen2", "Qwen2ForCausalLM", qkv_bias=True)
QWEN3: Final = _family("qwen3", "Qwen3ForCausalLM", qk_norm=True)
LLAMA: Final = _family("llama", "LlamaForCausalLM")


def _trained(family: Family, name: str, edit: EditKind) -> Family:
    """Checkpoints of `family` that were trained on a next-edit format, which only their name tells."""
    return replace(
        family,
        name=name,
        prompts=replace(_STYLE, edit=edit),
        confirms=lambda raw, folder: format_called(names_of(raw, folder)) == edit,
    )


ZETA2: Final = _trained(LLAMA, "zeta2", "zeta2")
ZETA21: Final = _trained(LLAMA, "zeta2.1", "zeta2.1")
SWEEP: Final = _trained(QWEN2, "sweep-next-edit", "sweep")
SWEEP_V2: Final = _trained(QWEN2, "sweep-next-edit-v2", "sweep-v2")
