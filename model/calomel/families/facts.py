"""What is to be told of a family, with the source of each fact; the table in the documentation is made of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Published:
    """A checkpoint that its makers publish.

    Attributes:
        name: on the hub, as owner/name.
        billions: of parameters.
        licence: of the weights, as its makers name it; "not stated" where they don't.
        figures: quality or speed as published elsewhere, with the place; never measured here.
    """

    name: str
    billions: float
    licence: str
    figures: str = ""


@dataclass(frozen=True, slots=True)
class FamilyFacts:
    """A family, for people.

    Attributes:
        title: its name in prose.
        checkpoints: that are published.
        attention: kind, in a few words ("block-causal, blocks of 4").
        mask: the mask token and its id ("`<MASK>` 151669"); "none" where there is none.
        shift: whether row i predicts the token at i + 1.
        block: the published length of a block; None where there are none.
        sources: where these facts are published.
        parity: the test that compares it with a reference, as a path in the repository; empty while there is none.
        gpu: what ran on a GPU ("tiny random weights, H200"); empty while nothing did.
        measured: figures measured here, with the command; empty while there are none.
        limits: what of the published model is not there ("pictures are refused"); empty where nothing is missing.
        eight_bits: whether its weights can be kept in eight bits.
    """

    title: str
    checkpoints: tuple[Published, ...]
    attention: str
    mask: str
    shift: bool
    block: int | None
    sources: tuple[str, ...]
    parity: str = ""
    gpu: str = ""
    measured: str = ""
    limits: str = ""
    eight_bits: bool = True
