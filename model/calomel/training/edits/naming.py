"""Words of programs: those that are reserved in a language."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

WORDS: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))

_MORE_KEYWORDS: Final = frozenset(WORDS["keywords"].split())
_BUILTINS: Final = {"python": "builtins"}


@cache
def keywords(language: str) -> frozenset[str]:
    """Names that are reserved in a language, and builtins that nobody should shadow."""
    module = _BUILTINS.get(language)
    return _MORE_KEYWORDS if module is None else _MORE_KEYWORDS | frozenset(dir(import_module(module)))
