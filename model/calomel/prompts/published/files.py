"""A published tokenizer's files, in whichever of their forms, as one description for the tokenizers library."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from calomel.prompts.text_tokenizer import TokenizerError

# Qwen2's own pattern; Dream's tokenizer is a copy of Qwen2's.
_QWEN: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_BYTE_LEVEL: Final = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}


@dataclass(frozen=True, slots=True)
class Added:
    """A token beside the vocabulary of text.

    Attributes:
        name: its text.
        id: its number.
        special: as the files say it; makers leave it out for many a control token.
    """

    name: str
    id: int
    special: bool


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """What the files say.

    Attributes:
        description: in the form of a `tokenizer.json`, its added tokens among it.
        added: from all files.
    """

    description: dict[str, Any]
    added: tuple[Added, ...]


def read_files(folder: Path) -> TokenizerFiles:
    """The tokenizer in `folder`: tokenizer.json, else vocab.json with merges.txt; added tokens from every file.

    Raises:
        TokenizerError: files are missing or damaged, or of a kind that is not known.
    """
    said = _object(folder / "tokenizer_config.json")
    if (folder / "tokenizer.json").is_file():
        description = _object(folder / "tokenizer.json")
    elif (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        description = _from_slow(folder, str(said.get("tokenizer_class", "")))
    else:
        raise TokenizerError(f"{folder} has no tokenizer.json, and no vocab.json with merges.txt")
    found: dict[str, Added] = {}
    try:
        for entry in description.get("added_tokens") or ():
            found[entry["content"]] = Added(entry["content"], int(entry["id"]), bool(entry.get("special")))
        for name, number in _object(folder / "added_tokens.json").items():
            found.setdefault(name, Added(name, int(number), special=False))
        for number, entry in (said.get("added_tokens_decoder") or {}).items():
            known = found.get(entry["content"])
            special = bool(entry.get("special")) or (known is not None and known.special)
            found[entry["content"]] = Added(entry["content"], int(number), special)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TokenizerError(
            f"the tokenizer files in {folder} have an added token of a wrong form: {error!r}"
        ) from error
    return TokenizerFiles(description, tuple(sorted(found.values(), key=lambda token: token.id)))


def _from_slow(folder: Path, kind: str) -> dict[str, Any]:
    """What the library's converters make of a slow byte-level tokenizer."""
    if "qwen" in kind.lower() or "dream" in kind.lower():
        normalizer: dict[str, Any] | None = {"type": "NFC"}
        split = {"type": "Split", "pattern": {"Regex": _QWEN}, "behavior": "Isolated", "invert": False}
        steps = [split, {**_BYTE_LEVEL, "use_regex": False}]
    elif "gpt2" in kind.lower():
        normalizer, steps = None, [{**_BYTE_LEVEL, "use_regex": True}]
    else:
        raise TokenizerError(
            f"{folder} has no tokenizer.json, and tokenizer_config.json says {kind or 'no tokenizer_class'}: "
            "of those that publish vocab.json and merges.txt alone, Qwen2's and GPT-2's are known"
        )
    try:
        lines = (folder / "merges.txt").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TokenizerError(f"{folder / 'merges.txt'} can not be read: {error}") from error
    merges = [line.split(" ") for line in lines if line and not line.startswith("#version")]
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": "",
        "end_of_word_suffix": "",
        "fuse_unk": False,
        "byte_fallback": False,
        "vocab": _object(folder / "vocab.json"),
        "merges": merges,
    }
    return {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "decoder": {**_BYTE_LEVEL, "use_regex": True},
        "model": model,
    }


def _object(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TokenizerError(f"{path} is no tokenizer file: {error}") from error
    if not isinstance(found, dict):
        raise TokenizerError(f"{path} is no tokenizer file: it holds no object")
    return found
