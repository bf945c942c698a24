"""A checkpoint folder of any family, ready to fill holes and to rewrite regions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from calomel.suggest.fill import Filler
from calomel.suggest.manner import Manner

if TYPE_CHECKING:
    from calomel.families.family import OpenOptions


def open_folder(folder: Path, options: OpenOptions) -> Filler:
    """Load the checkpoint in `folder` and start an engine for it.

    Raises:
        CheckpointError, TokenizerError: the folder is incomplete, of no known family, or too large for this device.
    """
    from calomel.engine import SamplingParams  # these import torch
    from calomel.families.generation import generation_of
    from calomel.families.open import open_engine
    from calomel.families.table import find, read_config

    family = find(folder)
    raw = read_config(folder)
    if family.prompts.fim == "calomel":
        from calomel.prompts.tokenizer import Tokenizer

        own = Tokenizer.from_file(folder / "tokenizer.json")
        return Filler(open_engine(folder, options)[0], own)
    from calomel.prompts.styles.choose import open_published  # jinja2 takes its time

    diffusion = family.config(raw, folder).diffusion
    generation = generation_of(family, raw, folder)
    # Before the weights: what is wrong with the small files is known at once.
    published = open_published(folder, family.prompts, end=diffusion.end_token_id, mask=diffusion.mask_token_id)
    sampling = SamplingParams(temperature=generation.temperature, top_p=generation.top_p, top_k=generation.top_k)
    steps = generation.max_steps
    fill = Manner(published.fill, generation.policy, steps, generation.fill_canvases, sampling, published.fill.ended)
    edits = Manner(published.edit, generation.policy, steps, (generation.edit_canvas,), sampling, published.edit.ended)
    return Filler(open_engine(folder, options)[0], published.tokenizer, fill, edits)
