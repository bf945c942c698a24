"""Families and their published checkpoints, described for people, out of `facts.toml`. It imports no PyTorch."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Published:
    """A published checkpoint.

    Attributes:
        name: on the hub, as owner/name.
        billions: of parameters.
        licence: of the weights, as its makers name it; "not stated" if they don't.
        figures: quality or speed as published elsewhere, with the source; never measured here.
        shape: of its network, by its name in `shapes.toml`; empty for the one that ships.
    """

    name: str
    billions: float
    licence: str
    figures: str = ""
    shape: str = ""

    @property
    def config(self) -> Mapping[str, Any]:
        """The fields of its `config.json` that give its size. Raises KeyError if no shape is known."""
        return _shapes()[self.shape]


@dataclass(frozen=True, slots=True)
class FamilyFacts:
    """A family, described for people.

    Attributes:
        title: its name in prose.
        checkpoints: the published ones.
        attention: kind, in a few words ("block-causal, blocks of 4").
        mask: the mask token and its id ("`<MASK>` 151669"); "none" if there is none.
        shift: whether row i predicts the token at i + 1.
        block: the published length of a block; None without blocks.
        sources: where these facts are published.
        parity: the test that compares it with a reference, as a path in the repository; empty while there is none.
        gpu: what ran on a GPU ("tiny random weights, H200"); empty while nothing did.
        measured: figures measured here, with the command; empty while there are none.
        limits: missing features of the published model ("pictures are refused"); empty if nothing is missing.
    """

    title: str
    checkpoints: tuple[Published, ...]
    attention: str
    mask: str
    shift: bool
    sources: tuple[str, ...]
    block: int | None = None
    parity: str = ""
    gpu: str = ""
    measured: str = ""
    limits: str = ""


@cache
def _shapes() -> dict[str, dict[str, Any]]:
    return tomllib.loads((Path(__file__).parent / "shapes.toml").read_text(encoding="utf-8"))


@cache
def family_facts() -> dict[str, FamilyFacts]:
    """What is told of each family, by its name."""
    table = tomllib.loads((Path(__file__).parent / "facts.toml").read_text(encoding="utf-8"))
    return {
        name: FamilyFacts(
            **{
                **row,
                "sources": tuple(row["sources"]),
                "checkpoints": tuple(Published(**each) for each in row["checkpoints"]),
            }
        )
        for name, row in table.items()
    }
