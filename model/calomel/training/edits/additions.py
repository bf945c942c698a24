"""Parameters that people add: a name, its type and a value, as each language writes them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from calomel.training.edits.naming import Name, keywords, words_of
from calomel.training.edits.source import Source

Kind = Literal["flag", "number", "text", "fraction"]
_NAMES: Final[dict[Kind, tuple[str, ...]]] = {
    "flag": (
        "strict", "verbose", "force", "recursive", "dry_run", "quiet", "lazy", "include_{}", "skip_{}", "allow_{}",
        "use_{}", "with_{}", "keep_{}", "is_{}", "ignore_case", "overwrite", "check_{}", "show_{}", "sort_{}", "reuse",
    ),
    "number": (
        "limit", "max_depth", "retries", "offset", "indent", "batch_size", "page_size", "max_{}", "min_{}", "{}_count",
        "{}_size", "width", "depth", "level", "max_attempts", "{}_index", "priority", "capacity", "seed", "first_{}",
    ),
    "text": (
        "prefix", "suffix", "encoding", "label", "separator", "mode", "{}_name", "{}_key", "title", "{}_path", "locale",
        "namespace", "reason", "default_{}", "{}_type", "message", "tag", "scope", "origin", "{}_prefix",
    ),
    "fraction": ("timeout", "scale", "threshold", "tolerance", "ratio", "delay", "{}_timeout", "weight", "{}_scale"),
}  # fmt: skip
_TYPES: Final = {
    "python": {"flag": "bool", "number": "int", "text": "str", "fraction": "float"},
    "typescript": {"flag": "boolean", "number": "number", "text": "string", "fraction": "number"},
    "javascript": {"flag": "boolean", "number": "number", "text": "string", "fraction": "number"},
    "go": {"flag": "bool", "number": "int", "text": "string", "fraction": "float64"},
    "rust": {"flag": "bool", "number": "usize", "text": "&str", "fraction": "f64"},
}
_NUMBERS: Final = ("0", "1", "2", "3", "5", "8", "10", "16", "50", "64", "100", "256", "1000")
_FRACTIONS: Final = ("0.1", "0.25", "0.5", "1.0", "1.5", "2.0", "5.0", "10.0", "30.0")
_TEXTS: Final = ("", "default", "utf-8", "-", "main", "auto", "user", "root", "none", "base")
_TRIES: Final = 10


@dataclass(frozen=True, slots=True)
class Addition:
    """A parameter to add: `default` stands in the signature, `value` is what a caller gives."""

    name: str
    type: str
    default: str
    value: str


def addition(source: Source, rng: random.Random, taken: Sequence[str]) -> Addition | None:
    """A parameter that a person could add to a function in this file; None where all that were tried are taken."""
    vocabulary = [word for word in words_of(source.names) if len(word) > 3 and word not in keywords(source.language)]  # noqa: PLR2004
    for _ in range(_TRIES):
        kind = rng.choice(tuple(_NAMES))
        pattern = rng.choice(_NAMES[kind])
        if "{}" in pattern and not vocabulary:
            continue
        words = tuple(pattern.format(rng.choice(vocabulary) if vocabulary else "").split("_"))
        style: Literal["snake", "camel"] = "snake" if source.language in ("python", "rust") else "camel"
        name = Name(words, style).with_words(words)
        if name in taken or name in keywords(source.language) or len(set(words)) < len(words):
            continue
        default, value = _values(source, rng, kind)
        return Addition(name, _TYPES[source.language][kind], default, value)
    return None


def _values(source: Source, rng: random.Random, kind: Kind) -> tuple[str, str]:
    if kind == "flag":
        words = ("True", "False") if source.language == "python" else ("true", "false")
        return words if rng.random() < 0.3 else (words[1], words[0])  # noqa: PLR2004
    choices = _NUMBERS if kind == "number" else _FRACTIONS if kind == "fraction" else _TEXTS
    first, second = rng.sample(choices, 2)
    if kind == "text":
        mark = quote(source)
        return f"{mark}{first}{mark}", f"{mark}{second}{mark}"
    return first, second


def quote(source: Source) -> str:
    """The mark around strings that the file uses more often."""
    if source.language in ("go", "rust"):
        return '"'
    return "'" if source.text.count("'") > source.text.count('"') else '"'
