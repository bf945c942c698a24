"""The families of which a tiny checkpoint can be written, and the shape of one."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from calomel.engine import ModelConfig
from calomel.families.configuration import read_config
from calomel.families.table import find

Writer = Callable[[Path], object]


def writers() -> dict[str, Writer]:
    """Family name to what writes a tiny random checkpoint of it: `WRITERS` of every module in `published`."""
    found: dict[str, Writer] = {}
    for file in sorted((Path(__file__).parent / "published").glob("*.py")):
        found |= getattr(import_module(f"tests.families.published.{file.stem}"), "WRITERS", {})
    return found


def shape_of(folder: Path) -> ModelConfig:
    """The shape of a checkpoint's decoder."""
    return find(folder).config(read_config(folder), folder)
