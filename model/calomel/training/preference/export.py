"""The aligned weights as a checkpoint folder like the one they came from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from calomel.engine.checkpoint import CONFIG_FILE, save_checkpoint
from calomel.engine.transformer import Transformer

# The model card stays behind: its figures are of other weights.
_COPIED: Final = ("tokenizer.json", "calibrator.json", "recall.json", "NOTICE", "LICENSE")


def export(model: Transformer, source: Path, folder: Path, seed: int) -> None:
    """Write `model` to `folder`, with what the checkpoint `source` says it was trained for, its tokenizer and licences.

    Its parameters become what was written. The calibrator is the old one: `calomel calibrate` fits it anew to what the
    new weights say.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(rounded(parameter.cpu(), generator))
    said = json.loads((source / CONFIG_FILE).read_text(encoding="utf-8"))
    known = model.config.to_dict()
    save_checkpoint(model, folder, abilities={name: said[name] for name in said if name not in known})
    for name in _COPIED:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)


def rounded(weights: Tensor, generator: torch.Generator) -> Tensor:
    """Float32 weights as bfloat16 can hold them: up or down by chance, so that in the mean nothing changes.

    An alignment moves most weights by less than half of what tells two neighbours in bfloat16 apart. Rounded to the
    nearest, they stay where they were: of nano's margin behind 11 steps 57 % was left; by chance,
    99 %.
    """
    bits = weights.detach().float().contiguous().view(torch.int32)
    chance = torch.randint(0, 1 << 16, bits.shape, generator=generator, dtype=torch.int32)
    return ((bits + chance) & ~0xFFFF).view(torch.float32)
