"""What a step on the device knows of its requests, in tensors that stay where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from calomel.engine.resident.shape import CAUSAL

KNOWN: Final = CAUSAL[-1] + 1
"""Final tokens before a canvas that a step can read; the last one may be the head of a canvas."""


@dataclass(frozen=True, slots=True)
class Row:
    """One canvas, as the host hands it over.

    Attributes:
        start: row of the arena with the request's first token.
        context: so many tokens have their keys and values there.
        known: the final tokens behind them, with the head of the canvas.
        slot: the canvas' row on the board.
        length: positions of the canvas.
        ends_from: before this position the end token is not predicted.
        revise: whether revealed positions may change.
        steps: the canvas may still have so many.
    """

    start: int
    context: int
    known: Sequence[int]
    slot: int
    length: int
    ends_from: int
    revise: bool
    steps: int


@dataclass(frozen=True, slots=True)
class Look:
    """A canvas as the host finds it: `ids` and `revealed` by position.

    Attributes:
        length: positions of the canvas that are left; the others are behind an end token.
        taken: so many steps were taken since the last look.
        revised: whether the last of them changed a revealed position.
    """

    ids: list[int]
    revealed: list[bool]
    length: int
    taken: int
    revised: bool


class State:
    """`canvases` rows; those that no request has do nothing, with the board's row `idle`.

    Attributes:
        numbers: [B, fields + KNOWN] int64, everything in one tensor, so that one copy brings it over.
        known: [B, KNOWN], with the last final token at the end.
    """

    _FIELDS: Final = (
        "start",
        "context",
        "causal",
        "slot",
        "length",
        "ends_from",
        "revise",
        "steps",
        "going",
        "taken",
        "revised",
    )

    def __init__(self, canvases: int, *, head: int, idle: int, device: torch.device) -> None:
        self._head = head
        self._idle = idle
        self._host = torch.zeros(
            canvases, len(self._FIELDS) + KNOWN, dtype=torch.int64, pin_memory=device.type == "cuda"
        )
        self.numbers = torch.zeros_like(self._host, device=device, pin_memory=False)
        self.start, self.context, self.causal, self.slot, self.length = self.numbers.T[:5]
        self.ends_from, self.revise, self.steps, self.going, self.taken, self.revised = self.numbers.T[5:11]
        self.known = self.numbers[:, len(self._FIELDS) :]
        self.load(())

    def load(self, rows: Sequence[Row]) -> None:
        """Bring `rows` over; the others are idle."""
        self._host.zero_()
        self._host[:, self._FIELDS.index("slot")] = self._idle
        for index, row in enumerate(rows):
            causal = len(row.known) - self._head
            fields = (
                row.start,
                row.context,
                causal,
                row.slot,
                row.length,
                row.ends_from,
                row.revise,
                row.steps,
                1,
                0,
                0,
            )
            self._host[index, : len(fields)] = torch.tensor(fields)
            if row.known:
                self._host[index, -len(row.known) :] = torch.tensor(row.known)
        self.numbers.copy_(self._host, non_blocking=True)

    def report(self, ids: Tensor, revealed: Tensor) -> list[Look]:
        """The canvases on the host, given their `ids` and `revealed` [board's rows, L]: one synchronisation."""
        flags = torch.stack((self.length, self.taken, self.revised), dim=-1)
        values = torch.cat((ids[self.slot], revealed[self.slot].long(), flags), dim=-1).tolist()
        width = ids.shape[1]
        return [
            Look(row[:width], [bool(flag) for flag in row[width : 2 * width]], row[-3], row[-2], bool(row[-1]))
            for row in values
        ]
