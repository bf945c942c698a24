"""Memory without arithmetic: embeddings of the last two and of the last three tokens, looked up by hash.

A small transformer spends much of its size on which token follows which. A table gives that at the cost of a lookup
("Engram", arXiv 2601.07372; "Over-Tokenized Transformer", Huang et al. 2025).
The tokens are neighbours in the text, not in the prompt: the mark before an answer stands for the last token before the
hole, and an answer's first token follows it, whatever part of the suffix the prompt has in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import torch
from msgspec import Meta
from torch import Tensor, nn

from calomel.engine.errors import CheckpointError

# Tokens before a row that its longest n-gram reads.
REACH: Final = 2
_ORDERS: Final = REACH
# The nearest odd number to 2 ** 64 / golden ratio, as a signed one (Knuth 6.4).
_MULTIPLIER: Final = 0x9E3779B97F4A7C15 - (1 << 64)
_SHIFT: Final = 28
# Rows between the end of the text before the hole and the mark of an answer, at most: region and near suffix.
_LONGEST_ASIDE: Final = 1024


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """The tables' shape, and how a prompt is read as text.

    Attributes:
        entries: rows of the table of each order, a power of two.
        width: numbers in a row.
        pauses: token ids at which a prompt leaves the text before the hole.
        resumes: the id at which it returns to it: the mark before the answer.
    """

    entries: Annotated[int, Meta(ge=1, le=1 << 24)]
    width: Annotated[int, Meta(ge=1)]
    pauses: tuple[int, ...]
    resumes: int

    def __post_init__(self) -> None:
        if self.entries & (self.entries - 1):
            raise CheckpointError(f"memory: entries is a power of two, not {self.entries}")

    def before(self, tokens: Sequence[int], end: int, count: int = REACH) -> list[int]:
        """The last `count` tokens of the text in the rows [0, end) of a prompt and its answer; 0 where there are none.

        The row of the mark counts as the last token before the hole.
        """
        found: list[int] = []
        row = end - 1
        while row >= 0 and len(found) < count:
            if tokens[row] == self.resumes:
                row = self._pause(tokens, row) - 1
                continue
            found.append(tokens[row])
            row -= 1
        return [0] * (count - len(found)) + found[::-1]

    def text(self, tokens: Sequence[int], start: int, stop: int) -> list[list[int]]:
        """The rows [start, stop) as text: runs of ids, each preceded by its `REACH` tokens before."""
        marks = [row for row in range(start, stop) if tokens[row] == self.resumes]
        runs: list[list[int]] = []
        for first, last in zip([start, *marks], [*marks, stop], strict=True):
            if first == last:
                continue
            # A run begins with its mark, which reads as the token that it stands for.
            known = self.before(tokens, first + 1, REACH + 1)
            runs.append([*known, *tokens[first + 1 : last]])
        return runs

    def _pause(self, tokens: Sequence[int], mark: int) -> int:
        """The row at which the text before the hole of `mark` ended."""
        aside = range(mark - 1, max(-1, mark - _LONGEST_ASIDE), -1)
        return min((row for row in aside if tokens[row] in self.pauses), default=mark)


class Memory(nn.Module):
    """The tables, and a projection of their rows to the width of the network."""

    def __init__(self, config: MemoryConfig, vocab_size: int, hidden_size: int) -> None:
        super().__init__()
        self._entries = config.entries
        self._vocab_size = vocab_size
        self.tables = nn.Embedding(_ORDERS * config.entries, config.width)
        self.projection = nn.Linear(_ORDERS * config.width, hidden_size, bias=False)

    def forward(self, text: Tensor) -> Tensor:
        """Text [T, REACH + 1], for each row the tokens that end with its own, to [T, C]."""
        out: Tensor = self.projection(self.tables(self.entries(text)).flatten(-2))
        return out

    def entries(self, text: Tensor) -> Tensor:
        """Which rows of the stacked tables `text` [T, REACH + 1] looks up: [T, orders]."""
        third, second, last = text.unbind(-1)
        pair = second * self._vocab_size + last
        keys = torch.stack((pair, third * self._vocab_size**2 + pair), dim=-1)
        found = (keys * _MULTIPLIER >> _SHIFT) & (self._entries - 1)
        return found + torch.arange(_ORDERS, device=text.device) * self._entries


def in_threes(ids: Tensor) -> Tensor:
    """Ids [REACH + T], of which the first REACH precede the rows, as the text [T, REACH + 1] of T rows."""
    return ids.unfold(-1, REACH + 1, 1)
