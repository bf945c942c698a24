"""Stable-DiffCoder: Seed-Coder, a Llama, made to denoise blocks of four (ByteDance-Seed/Stable-DiffCoder)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from calomel.engine import DiffusionConfig, ModelConfig, Serving
from calomel.families.configuration import block_of, decoder_config, named
from calomel.families.decoder import open_decoder, qwen_places
from calomel.families.estimate import Estimate, EstimateOptions, decoder_estimate
from calomel.families.facts import FamilyFacts, Published
from calomel.families.family import Family, OpenOptions
from calomel.families.generation import Generation
from calomel.families.style import FimNames, PromptStyle
from calomel.families.token_ids import need_token_id, token_id

# generation_utils.py: block_length and mask_id of generate_block.
BLOCK: Final = 4
MASK_ID: Final = 5
MASK: Final = "<[MASK_TOKEN]>"
END: Final = "<[end▁of▁sentence]>"


def _recognises(raw: Mapping[str, Any]) -> bool:
    return named(raw, "diffcoder")


def _config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
    block = block_of(raw, "block_length", BLOCK)
    mask = raw.get("mask_token_id", token_id(folder, MASK))
    diffusion = DiffusionConfig(
        mask_token_id=MASK_ID if mask is None else int(mask),
        end_token_id=need_token_id(folder, END),
        max_canvas=block,
        verifiable=False,
        block=block,
    )
    return decoder_config(raw, diffusion)


def _open(folder: Path, options: OpenOptions) -> Serving:
    config = _config(json.loads((folder / "config.json").read_text(encoding="utf-8")), folder)
    return open_decoder(folder, options, config, qwen_places(config))


def _estimate(raw: Mapping[str, Any], options: EstimateOptions) -> Estimate:
    return decoder_estimate(raw, options, canvas=block_of(raw, "block_length", BLOCK))


STABLE_DIFFCODER: Final = Family(
    name="stable-diffcoder",
    recognises=_recognises,
    config=_config,
    open=_open,
    estimate=_estimate,
    # The tokens of Seed-Coder, which was trained on holes in this order (its report, section on fill-in-the-middle).
    prompts=PromptStyle(
        fim="fim_tokens",
        edit="chat",
        mask=MASK,
        ends=(END,),
        begin="<[begin▁of▁sentence]>",
        names=FimNames("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", order="spm"),
    ),
    generation=Generation(
        policy="low_confidence",
        max_steps=BLOCK,
        fill_canvases=(BLOCK,),
        edit_canvas=BLOCK,
        source="model card: 512 steps for 512 tokens in blocks of 4, low_confidence, no threshold, temperature 0",
    ),
    facts=FamilyFacts(
        title="Stable-DiffCoder",
        checkpoints=(
            Published("ByteDance-Seed/Stable-DiffCoder-8B-Base", 8.0, "MIT"),
            Published("ByteDance-Seed/Stable-DiffCoder-8B-Instruct", 8.0, "MIT"),
        ),
        attention="block-causal, blocks of 4",
        mask="`<[MASK_TOKEN]>` 5",
        shift=False,
        block=BLOCK,
        sources=("huggingface.co/ByteDance-Seed/Stable-DiffCoder-8B-Instruct: generation_utils.py",),
        parity="tests/families/test_stable_diffcoder.py",
        limits="the mask token is never predicted; the published code lets it be and masks the position again",
    ),
)
FAMILIES: Final = (STABLE_DIFFCODER,)
