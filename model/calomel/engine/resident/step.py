"""One denoising step of a fixed shape, from the board to the board, in which the host takes no part.

It is what `Denoiser.step` and `Progress` do to a canvas, in tensors: forward its rows, choose tokens, reveal and
revise, cut behind a revealed end token, and find out whether it is whole. What is whole does nothing any more.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.canvas import Board, Found
from calomel.engine.resident.arena import Arena
from calomel.engine.resident.attention import ArenaAttention, Attending, Places
from calomel.engine.resident.shape import StepShape
from calomel.engine.resident.state import KNOWN, State
from calomel.engine.reveal import RevealPolicy
from calomel.engine.sampling import LOWEST, choose
from calomel.engine.transformer import Transformer


class Stepper:
    """Takes the canvases of a `State` one step on; their tokens and confidences are on `board`."""

    def __init__(self, model: Transformer, board: Board, arena: Arena, attending: Attending = ArenaAttention) -> None:
        self.model = model
        self.board = board
        self.arena = arena
        self._attending = attending
        self._diffusion = model.config.diffusion
        self._shift = int(model.config.diffusion.logit_shift)

    def step(self, state: State, shape: StepShape, policy: RevealPolicy) -> None:
        """One step. Nothing in it depends on what the tensors of `state` hold."""
        going = state.going.bool()
        found = self._read(state, shape, going)
        self._reveal(state, policy, going, found)

    def _read(self, state: State, shape: StepShape, going: Tensor) -> Found:
        device, width = state.numbers.device, shape.width
        run = state.length + self._shift  # [B] rows of the canvas
        end = state.context + state.causal + run
        at = torch.arange(width, device=device) - (width - run[:, None])  # [B, R] row of the canvas; causal: below 0
        column = at - self._shift
        canvas = self.board.ids[state.slot].gather(1, column.clamp(0, self.board.ids.shape[1] - 1))
        known = state.known.gather(1, (KNOWN + column).clamp(0, KNOWN - 1))
        ids = torch.where(column >= 0, canvas, known)
        positions = (end - run)[:, None] + at
        real = (at >= -state.causal[:, None]) & going[:, None]
        write = torch.where(real, state.start[:, None] + positions, self.arena.unread)
        positions = positions.clamp(min=0)
        places = Places(state.start, end, end - run, positions, write.flatten())
        attend = self._attending(self.model.config, self.arena, shape, places)
        hidden = self.model(ids.flatten(), positions.flatten(), attend)  # [B * R, C]
        # Row `at` of the canvas predicts its position `at`, with shifted logits too.
        columns = torch.arange(min(shape.rows, self.board.ids.shape[1]), device=device)
        rows = (columns + (width - run)[:, None]).clamp(max=width - 1)
        rows = rows + torch.arange(shape.canvases, device=device)[:, None] * width
        logits = self.model.logits(hidden[rows.flatten()])
        early = (columns < state.ends_from[:, None]).flatten()
        end_logits = logits[:, self._diffusion.end_token_id]
        end_logits.masked_fill_(early, LOWEST)
        choice = choose(
            logits, (), mask_token_id=self._diffusion.mask_token_id, end_token_id=self._diffusion.end_token_id
        )
        read = (columns < state.length[:, None]) & going[:, None]
        read = read & (state.revise[:, None].bool() | ~self.board.revealed[state.slot][:, : len(columns)])
        values = (choice.token, choice.best, choice.log_prob, choice.entropy)
        return Found(*(self._spread(value.view(read.shape)) for value in (read, *values)))

    def _reveal(self, state: State, policy: RevealPolicy, going: Tensor, found: Found) -> None:
        candidates = found.read & ~self.board.revealed[state.slot]
        last = state.steps <= 1
        chosen = policy(found.log_prob.exp(), found.entropy, candidates) | (candidates & last[:, None])
        changeable = found.read & state.revise[:, None].bool()
        ids, revealed, changed = self.board.take(state.slot, found, chosen, changeable)
        columns = torch.arange(ids.shape[1], device=ids.device)
        ended = revealed & (ids == self._diffusion.end_token_id) & (columns < state.length[:, None])
        cut = torch.where(ended.any(dim=-1), ended.int().argmax(dim=-1) + 1, state.length)
        whole = (revealed | (columns >= cut[:, None])).all(dim=-1)
        revised = changed.any(dim=-1)
        state.length.copy_(torch.where(going, cut, state.length))
        state.context.add_(torch.where(going, state.causal, 0))
        state.causal.masked_fill_(going, 0)
        state.revised.copy_(torch.where(going, revised, state.revised))
        state.steps.sub_(state.going)
        state.taken.add_(state.going)
        state.going.masked_fill_(whole & (~revised | last), 0)

    def _spread(self, values: Tensor) -> Tensor:
        """Values [B, columns that are read] over the positions of the board."""
        return F.pad(values, (0, self.board.ids.shape[1] - values.shape[1]))
