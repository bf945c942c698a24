"""Ids of control tokens by name, from whichever tokenizer files a checkpoint has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calomel.engine import CheckpointError


def token_ids(folder: Path) -> dict[str, int]:
    """Every added token's name and id, from tokenizer.json, added_tokens.json and tokenizer_config.json.

    Raises:
        CheckpointError: one of these files is there and damaged.
    """
    found: dict[str, int] = {}
    fast = _read(folder / "tokenizer.json")
    found |= {token["content"]: int(token["id"]) for token in fast.get("added_tokens") or ()}
    found |= {name: number for name, number in _read(folder / "added_tokens.json").items() if isinstance(number, int)}
    decoder = _read(folder / "tokenizer_config.json").get("added_tokens_decoder") or {}
    return found | {token["content"]: int(number) for number, token in decoder.items()}


def token_id(folder: Path, *names: str) -> int | None:
    """The id of the first of `names` that the checkpoint has, as an added token or in its vocabulary; else None.

    Raises:
        CheckpointError: a tokenizer file is there and damaged.
    """
    added = token_ids(folder)
    for name in names:
        if name in added:
            return added[name]
    model = _read(folder / "tokenizer.json").get("model")
    vocabulary = model.get("vocab") if isinstance(model, Mapping) else _read(folder / "vocab.json")
    if isinstance(vocabulary, Mapping):
        return next((int(vocabulary[name]) for name in names if name in vocabulary), None)
    return None


def need_token_id(folder: Path, *names: str) -> int:
    """The same; raises CheckpointError where the checkpoint has none of `names`."""
    found = token_id(folder, *names)
    if found is None:
        raise CheckpointError(f"the tokenizer in {folder} has no token {' or '.join(names)}")
    return found


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is not valid JSON: {error}") from error
    return found if isinstance(found, dict) else {}
