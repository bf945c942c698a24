"""Which tokens of an answer are hidden in each draw of its evidence lower bound: for policy and reference the same.

An answer of L tokens, its end among them, has the bound

    B = E over l ~ U{1..L}, sets of l tokens:  L / l * sum of log p(hidden token | the others)

estimated without replacement (fixed-l; ELBO-KTO, arXiv 2510.23658). The sizes of one pass' draws are spread evenly over
1..L, which leaves each of them uniform, so the mean unbiased, and takes away most of its variance. Draws come from a
64-bit seed of their own each (splitmix64): who knows the answer knows its masks, so nothing of them is stored.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import Final

_WORD: Final = (1 << 64) - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15


def splitmix64(state: int) -> int:
    """One output of splitmix64 (Steele et al. 2014) at `state`: seeds that differ in one bit give unrelated streams."""
    mixed = (state + _GOLDEN) & _WORD
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _WORD
    return mixed ^ (mixed >> 31)


def key_of(context: Sequence[int], answer: Sequence[int]) -> str:
    """Names an answer to a prompt, 16 hexadecimal digits; the same in every run."""
    said = ",".join(map(str, context)) + "|" + ",".join(map(str, answer))
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def draw_seed(key: str, seed: int, number: int) -> int:
    """The seed of draw `number` of the answer `key` in a run with `seed`."""
    return splitmix64(splitmix64(int(key, 16) ^ splitmix64(seed & _WORD)) ^ number)


def draw_count(length: int, draws: int) -> int:
    """How many draws an answer of `length` tokens needs: of one token there is only one mask."""
    return 1 if length == 1 else draws


def hidden_places(length: int, seed: int, stratum: int = 0, strata: int = 1) -> tuple[int, ...]:
    """Which of `length` places one draw hides, in order.

    Args:
        length: L, at least 1.
        seed: of this draw.
        stratum: the draw's number within its pass.
        strata: draws of the pass.
    """
    rng = random.Random(seed)
    size = min(length, 1 + int(length * (stratum + rng.random()) / strata))
    return tuple(sorted(rng.sample(range(length), size)))
