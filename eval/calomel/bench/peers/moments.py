"""Where the peers are asked: rests of lines in held-out files, with other files of the language in front."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from calomel.bench.heldout import HeldoutFile
from calomel.bench.holes import REST_OF_LINE, Hole, TokenMeasure, make_holes

# What code has on average; the prompt cuts what is too much at a line.
CHARACTERS_PER_TOKEN = 4


def rests_of_lines(
    files: Sequence[HeldoutFile], measure: TokenMeasure, *, context: int, count: int, seed: int
) -> list[Hole]:
    """`count` holes, of every language alike, whose prefixes have at least `context` tokens' worth of text."""
    found = [hole for hole in make_holes(files, measure, per_kind=count, seed=seed) if hole.row == REST_OF_LINE]
    return [_with_files_before(hole, files, context, seed) for hole in found[:count]]


def _with_files_before(hole: Hole, files: Sequence[HeldoutFile], context: int, seed: int) -> Hole:
    rng = random.Random(f"{seed}:{hole.key}")  # noqa: S311 - seeded, not secret
    relatives = [file for file in files if file.language == hole.language and file.path != hole.path]
    prefix = hole.prefix
    while relatives and len(prefix) < context * CHARACTERS_PER_TOKEN:
        prefix = rng.choice(relatives).text + "\n" + prefix
    return replace(hole, prefix=prefix)


def accepted(answer: str, truth: str) -> int:
    """How many characters of `answer`'s beginning the author of the file has written too."""
    count = 0
    for ours, theirs in zip(answer, truth, strict=False):
        if ours != theirs:
            break
        count += 1
    return count
