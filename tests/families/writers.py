"""The families of which a tiny checkpoint can be written: `WRITERS` of every module in `published`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

Writer = Callable[[Path], object]


def writers() -> dict[str, Writer]:
    """Family name to what writes a tiny random checkpoint of it into a folder."""
    found: dict[str, Writer] = {}
    for file in sorted((Path(__file__).parent / "published").glob("*.py")):
        found |= getattr(import_module(f"tests.families.published.{file.stem}"), "WRITERS", {})
    return found
