"""The aligned weights as a checkpoint folder like the one they came from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

import torch

from calomel.engine.checkpoint import CONFIG_FILE, save_checkpoint
from calomel.engine.transformer import Transformer

# The model card stays behind: its figures are of other weights.
_COPIED: Final = ("tokenizer.json", "calibrator.json", "NOTICE", "LICENSE")


def export(model: Transformer, source: Path, folder: Path, dtype: torch.dtype) -> None:
    """Write `model` to `folder`, with what the checkpoint `source` says it was trained for, its tokenizer and licences.

    The calibrator is the old one: `calomel calibrate` fits it anew to what the new weights say.
    """
    said = json.loads((source / CONFIG_FILE).read_text(encoding="utf-8"))
    known = model.config.to_dict()
    save_checkpoint(model, folder, dtype=dtype, abilities={name: said[name] for name in said if name not in known})
    for name in _COPIED:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
