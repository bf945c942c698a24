"""Which logits of a forward belong to which job, and how that job's tokens are drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from calomel.engine.forward import Piece
from calomel.engine.job import Job
from calomel.engine.request import SamplingParams
from calomel.engine.sampling import Choice, Draw, count_tokens, margins
from calomel.engine.verify import Prediction


@dataclass(frozen=True, slots=True)
class Share:
    """A job's rows in the logits of a forward: `causal` rows from `start`, then `columns` of every candidate canvas."""

    job: Job
    start: int
    causal: int
    columns: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, job: Job, start: int, pieces: Sequence[Piece]) -> Share:
        """The share that begins at row `start` of a job that forwards `pieces`."""
        causal = sum(len(piece.read) for piece in pieces if piece.causal)
        canvases = [piece for piece in pieces if not piece.causal]
        return cls(job, start, causal, tuple(tuple(row - piece.first for row in piece.read) for piece in canvases))

    @property
    def canvas_start(self) -> int:
        """The first canvas row."""
        return self.start + self.causal

    @property
    def stop(self) -> int:
        """Behind the last row."""
        return self.canvas_start + sum(len(columns) for columns in self.columns)

    def draws(self, vocab: int, device: torch.device) -> list[Draw]:
        """How the tokens of these rows are drawn, out of a vocabulary of `vocab`."""
        job, draws = self.job, []
        if self.causal:
            draft = job.draft or []
            ahead = 0 if job.uncommitted else 1  # the first row predicts behind so many tokens of the draft
            bounds, places = (self.start, self.canvas_start), range(ahead, ahead + self.causal)
            draws.append(_draw(job, bounds, places, (job.answer + draft[:ahead], draft[ahead:]), vocab, device))
        start = self.canvas_start
        for columns in self.columns:
            known = [token for token, is_known in zip(job.canvas_ids, job.canvas_revealed, strict=True) if is_known]
            bounds, start = (start, start + len(columns)), start + len(columns)
            draws.append(_draw(job, bounds, columns, (job.answer + known, ()), vocab, device))
        return draws


def causal_predictions(logits: Tensor, choice: Choice, shares: Sequence[Share]) -> dict[Job, list[Prediction]]:
    """The causal rows of every job, fetched in one go."""
    found: dict[Job, list[Prediction]] = {share.job: [] for share in shares}
    rows = [row for share in shares for row in range(share.start, share.canvas_start)]
    if not rows:
        return found
    index = torch.tensor(rows, device=logits.device)
    decided = any(share.job.request.given is None for share in shares if share.causal)
    distance = margins(logits[index]) if decided else torch.ones(len(rows), device=logits.device)
    numbers = torch.stack((choice.log_prob[index], choice.entropy[index], distance)).tolist()
    values = zip(choice.token[index].tolist(), *numbers, strict=True)
    for share in shares:
        found[share.job] = [Prediction(*next(values)) for _ in range(share.causal)]
    return found


def _draw(
    job: Job,
    bounds: tuple[int, int],
    columns: Sequence[int],
    history: tuple[list[int], Sequence[int]],
    vocab: int,
    device: torch.device,
) -> Draw:
    """Rows `bounds` predict the positions `columns` behind the final tokens; `history`, see `count_tokens`."""
    start, stop = bounds
    given = job.request.given is not None
    sampling, counts = SamplingParams() if given else job.request.sampling, None
    if sampling.penalised and stop > start:
        counts = count_tokens(job.request.context, *history, stop - start, vocab, device)
    without_end: list[int] = []
    forced: dict[int, int] = {}
    if job.request.frozen or job.request.min_new_tokens or given:
        without_end = [] if given else [row for row, column in enumerate(columns) if job.bans_end(column)]
        tokens = {row: job.frozen_at(column) for row, column in enumerate(columns)}
        forced = {row: token for row, token in tokens.items() if token is not None}
    return Draw(start, stop, sampling, job.generator, counts, without_end, forced)
