"""One request while it is served: what it knows, and which rows it wants in the next forward.

A job's tokens are its context and its answer so far. Its buffer holds keys and values of the first `length` of them;
the others are `uncommitted` and enter the buffer as causal rows of a coming forward:

1. Prefill: the context, in chunks. Where the causal mode predicts, or logits are shifted, all but its last token; of a
   checkpoint with blocks, whole blocks.
2. Open: with blocks and shifted logits, the row before a block's first position is the last of the block before. A
   forward of its own encodes that block and decides the position, as the block is denoised with it.
3. Denoise: the uncommitted tokens, then the canvas (all candidate canvases in the first step of a probed one).
4. Verify: the uncommitted tokens and the draft, read causally; with an empty draft, left-to-right decoding. A given
   answer is a draft of which every token is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from calomel.engine.buffer import KeyValueBuffer
from calomel.engine.cache import Lease
from calomel.engine.canvas import Board
from calomel.engine.config import DiffusionConfig
from calomel.engine.constraint import Walk
from calomel.engine.foresight import State, foreseeable
from calomel.engine.forward import Piece
from calomel.engine.guess import Guessing
from calomel.engine.handle import Handle
from calomel.engine.request import Request
from calomel.engine.result import CanvasState, FinishReason, Result
from calomel.engine.reveal import Joint, Paced, Policy, RevealPolicy, Threshold, parse_policy
from calomel.engine.verify import NEAR_TIE, Prediction

Clock = Callable[[], float]
"""Seconds, from any beginning."""


@dataclass(slots=True, eq=False)
class Job:
    """The mutable state of one request.

    Attributes:
        request: what was asked; `policy` is its policy, read.
        handle: who waits.
        diffusion: how the checkpoint denoises.
        tokens: context and answer so far.
        candidates: canvas lengths of the next canvas forward; one, unless the length probe is to choose.
        canvas_length: of the first canvas, as asked for or as the probe chose.
        length: positions of the current canvas (of the longest candidate); `masked` are those not known.
        first: so many positions of it are those of a canvas beside which the next one has begun; 0 for one alone.
        masked_first: so many were not known when it began.
        whole_steps: so many steps of the canvas found nothing masked in it.
        opening: the next forward decides the first position of the canvas, and nothing else.
        kept: so many leading tokens are in the prefix cache.
        within_first_step: if no more context tokens than these are left of a cached context, the forward that denoises
            first encodes them: what a keystroke adds costs no forward of its own.
        draft: tokens to verify; None while a canvas is denoised.
        known: the causal prediction of the canvas' first position, when the forward that began it has made it.
        guessing: where in the request's guess the answer is.
        walk: where in the request's constraint the answer is, with the settled part of the canvas; None without one.
        front: so many leading positions of the canvas are settled, where a constraint has the last word on it.
        foreseen: what the canvas may look like behind its first step, whose forward then makes the second one, too.
        asked: so many tokens the answer had when `Request.until` was asked about a canvas with masks last.
    """

    request: Request
    handle: Handle
    diffusion: DiffusionConfig
    policy: Policy = field(init=False)
    tokens: list[int] = field(init=False)
    generator: torch.Generator | None = None
    buffer: KeyValueBuffer | None = None
    lease: Lease | None = None
    slot: int = -1
    prefill_rows: int = 0
    candidates: tuple[int, ...] = ()
    length: int = 0
    first: int = 0
    canvas_length: int = 0
    masked: list[int] = field(default_factory=list)
    masked_first: int = 0
    whole_steps: int = 0
    opening: bool = False
    canvas_ids: list[int] = field(default_factory=list)
    canvas_revealed: list[bool] = field(default_factory=list)
    canvas_steps: int = 0
    draft: list[int] | None = None
    known: Prediction | None = None
    guessing: Guessing = field(init=False)
    walk: Walk | None = field(init=False, default=None)
    front: int = 0
    foreseen: tuple[State, ...] = ()
    asked: int = 0
    log_probs: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    flips: list[int] = field(default_factory=list)
    end_log_prob: float | None = None
    steps: int = 0
    forwards: int = 0
    near_ties: int = 0
    cached_tokens: int = 0
    kept: int = 0
    within_first_step: int = 0
    length_scores: tuple[tuple[int, float], ...] = ()
    began: float = 0.0
    prefilled: float | None = None

    def __post_init__(self) -> None:
        self.policy = parse_policy(self.request.policy) if self.request.given is None else Policy(reveal=None)
        self.tokens = list(self.request.context)
        self.guessing = Guessing(self.request.guess)
        if self.request.constraint is not None:
            self.walk = self.request.constraint.begin()

    @property
    def committed(self) -> KeyValueBuffer:
        """The buffer; there is one from `begin` until the job ends."""
        if self.buffer is None:
            raise RuntimeError("the job has not begun")
        return self.buffer

    @property
    def answer(self) -> list[int]:
        """The tokens of the answer that are final."""
        return self.tokens[len(self.request.context) :]

    @property
    def room(self) -> int:
        """How many tokens the answer may still get."""
        return self.request.max_new_tokens - (len(self.tokens) - len(self.request.context))

    @property
    def prefill_target(self) -> int:
        """So many context tokens are encoded before the first step; the few left of a cached one, within it."""
        if len(self.request.context) - self.cached_tokens <= self.within_first_step:
            return self.cached_tokens
        return self.readable

    @property
    def prefill_left(self) -> int:
        """So many are still to be encoded; 0 once the answer has begun."""
        return max(0, self.prefill_target - self.committed.length)

    @property
    def readable(self) -> int:
        """So many leading tokens may come from the prefix cache, where another request left them."""
        needed = 1 if self.policy.causal or self.diffusion.logit_shift else 0
        return self.whole(len(self.request.context) - needed)

    @property
    def stored(self) -> int:
        """So many leading tokens go to the prefix cache; those of a given answer may follow the context."""
        request = self.request
        if request.reuse is not None:
            return self.whole(min(request.reuse, self.readable))
        return self.readable if request.given is None else len(request.context) + len(request.given)

    def whole(self, count: int) -> int:
        """So many of `count` leading tokens are in whole blocks."""
        return count - count % self.diffusion.block

    @property
    def head(self) -> list[int]:
        """The final tokens that are rows of the canvas: those that fill no block; with shifted logits, the last one."""
        if self.diffusion.block > 1:
            return self.tokens[self.whole(len(self.tokens)) :]
        return self.tokens[-1:] if self.diffusion.logit_shift else []

    @property
    def uncommitted(self) -> list[int]:
        """Tokens that are to be read causally before a canvas; those that head it are not among them."""
        stop = len(self.tokens) - (0 if self.draft is not None else len(self.head))
        return self.tokens[self.committed.length : stop]

    @property
    def steered(self) -> Walk | None:
        """The constraint that has the last word on the canvas; none where the causal mode has it."""
        return None if self.policy.causal else self.walk

    @property
    def foresees(self) -> bool:
        """Whether the next canvas forward reads the causal prediction of its first position on the way."""
        if self.diffusion.logit_shift:  # the last token is a row of the canvas
            return False
        return self.policy.verified and self.known is None and bool(self.uncommitted)

    def bans_end(self, column: int) -> bool:
        """Whether the answer can not end at `column` positions behind the final tokens: more has to come."""
        position = len(self.tokens) - len(self.request.context) + column
        return position < self.request.min_new_tokens or self.frozen_behind(column)

    def frozen_behind(self, column: int) -> bool:
        """Whether a token is frozen behind `column` positions behind the final tokens."""
        position = len(self.tokens) - len(self.request.context) + column
        return any(frozen > position for frozen in self.request.frozen)

    def frozen_at(self, column: int) -> int | None:
        """The token that is frozen, or given, at `column` positions behind the final ones."""
        position, given = len(self.tokens) - len(self.request.context) + column, self.request.given
        if given is None:
            return self.request.frozen.get(position)
        return given[position] if position < len(given) else self.diffusion.end_token_id

    def columns(self, length: int) -> list[int]:
        """The positions of a canvas of `length` whose logits are read."""
        if self.steered is not None:
            return list(range(self.front, length))
        if self.revises:  # what a block's opening has decided is no row's to change
            return list(range(0 if self.head or not self.diffusion.logit_shift else 1, length))
        stop = min(length, self.reach)
        return [column for column in self.masked if column < stop]

    @property
    def last_step(self) -> bool:
        """Whether the next step of the canvas is its last one, which reveals everything."""
        return self.canvas_steps + 1 >= self.request.max_steps

    @property
    def reach(self) -> int:
        """The step reveals positions before this one: up to the end of the first sub-block that has masked ones."""
        run = self.diffusion.sub_block
        if run is None or not self.masked or self.last_step:
            return self.first if self.first and self.last_step else self.length
        head = len(self.head)
        return min(self.length, (head + self.masked[0]) // run * run + run - head)

    @property
    def joint(self) -> Joint | None:
        """The policy, where it changes what is revealed."""
        reveal = self.policy.reveal
        return reveal if isinstance(reveal, Joint) and self.steered is None and not self.policy.verified else None

    @property
    def revises(self) -> bool:
        """Whether revealed positions may change."""
        return self.request.revise or self.joint is not None

    @property
    def reveal(self) -> RevealPolicy:
        """The reveal policy of the next step."""
        policy = self.policy.reveal or Threshold()
        if isinstance(policy, Paced):
            return policy.at(self.canvas_steps, self.masked_first, self.diffusion.block)
        return policy

    @property
    def overlaps(self) -> bool:
        """Whether the next canvas may begin beside this one: nothing but what is masked in it depends on its end."""
        request, diffusion = self.request, self.diffusion
        if not request.overlap or request.frozen or request.constraint is not None or self.revises:
            return False
        return diffusion.block == 1 and diffusion.sub_block is None and not self.policy.verified

    def fitting(self, length: int) -> int:
        """The canvas length nearest to `length` that the answer has room for; with blocks, it ends with a block."""
        longest = self.room if self.policy.verified else self.room + 1  # one more for the end token
        length, block = min(length, longest), self.diffusion.block
        if block == 1:
            return length
        head = len(self.head)
        rows = min(head + length, self.diffusion.max_canvas)
        return rows + -rows % block - head

    def begin_canvas(self, board: Board) -> None:
        """Set up the next canvas, or the next verification where nothing is drafted."""
        self.known, self.canvas_steps, self.whole_steps, self.draft, self.front = None, 0, 0, None, 0
        self.first = 0
        self.canvas_ids, self.canvas_revealed = [], []
        if self.request.given is not None:
            self.draft = list(self.request.given)
            return
        if self.policy.reveal is None or (self.policy.verified and self.room == 1):
            self.draft = self.guessing.ahead(self.room - 1)
            return
        lengths = self.candidates or self.request.canvas_lengths
        self.candidates = tuple(sorted({self.fitting(length) for length in lengths}))
        self.length = self.candidates[-1]
        offset = len(self.tokens) - len(self.request.context)
        frozen = {
            position - offset: token
            for position, token in self.request.frozen.items()
            if offset <= position < offset + self.length
        }
        board.clear(self.slot, frozen)
        self.masked = [column for column in range(self.length) if column not in frozen]
        self.masked_first = len(self.masked)
        self.opening = self.diffusion.block > 1 and self.diffusion.logit_shift and not self.head
        self.canvas_ids = [frozen.get(column, self.diffusion.mask_token_id) for column in range(self.length)]
        self.canvas_revealed = [column in frozen for column in range(self.length)]
        self.foreseen = board.foresight.guesses(self.length) if foreseeable(self) else ()

    def pieces(self, board: Board) -> list[Piece]:
        """The rows of this job in the next forward."""
        buffer = self.committed
        if self.prefill_rows:
            chunk = self.tokens[buffer.length : buffer.length + self.prefill_rows]
            return [Piece(chunk, buffer, buffer.length, causal=True)]
        behind = self.uncommitted
        if self.draft is not None:
            rows = behind + self.draft
            return [Piece(rows, buffer, buffer.length, causal=True, read=range(max(0, len(behind) - 1), len(rows)))]
        if self.opening:
            return [Piece(behind, buffer, buffer.length, causal=True, read=[len(behind) - 1])]
        pieces = []
        if behind:
            read = [len(behind) - 1] if self.foresees else []
            pieces.append(Piece(behind, buffer, buffer.length, causal=True, read=read))
        run = self.run_alone
        if run is not None:
            return [self._run_piece(board, run)]
        start, head = buffer.length + len(behind), self.head
        first = len(head) - 1 if self.diffusion.logit_shift else len(head)
        known = [torch.tensor(head, device=board.device)] if head else []
        for length in self.candidates:
            canvas = board.ids[self.slot, :length]
            read = [first + column for column in self.columns(length)]
            pieces.append(
                Piece(
                    torch.cat([*known, canvas]) if head else canvas, buffer, start, causal=False, read=read, first=first
                )
            )
        for state in () if self.canvas_steps else self.foreseen:
            read = [first + column for column, token in enumerate(state) if token == self.diffusion.mask_token_id]
            pieces.append(Piece([*head, *state], buffer, start, causal=False, read=read, first=first))
        return pieces

    @property
    def run_alone(self) -> int | None:
        """The first row, of the canvas with its head, of the sub-block that the next step forwards alone."""
        run = self.diffusion.sub_block
        if run is None or not (self.diffusion.block_cache and self.canvas_steps and self.masked) or self.last_step:
            return None
        if self.request.revise or self.steered is not None or len(self.candidates) > 1:
            return None
        head = len(self.head)
        start = (head + self.masked[0]) // run * run
        return None if self.masked[0] == start - head else start

    def _run_piece(self, board: Board, start: int) -> Piece:
        """The rows of the sub-block from row `start` of the canvas with its head on."""
        buffer, head, run = self.committed, self.head, self.diffusion.sub_block or 1
        known = torch.tensor(head, dtype=torch.int64, device=board.device)
        ids = torch.cat([known, board.ids[self.slot, : self.length]])[start : start + run]
        first = len(head) - start - (1 if self.diffusion.logit_shift else 0)
        read = [first + column for column in self.columns(self.length)]
        behind = -(start + run) % self.diffusion.block
        return Piece(ids, buffer, buffer.length + start, causal=False, read=read, first=first, behind=behind)

    def extend(self, predictions: Sequence[Prediction], flips: Sequence[int] | None = None) -> None:
        """Append final tokens to the answer; an end token ends it."""
        for index, found in enumerate(predictions):
            if found.token == self.diffusion.end_token_id:
                self.end_log_prob = found.log_prob
                return
            self.tokens.append(found.token)
            self.log_probs.append(found.log_prob)
            self.entropies.append(found.entropy)
            self.flips.append(flips[index] if flips else 0)

    def count_ties(self, predictions: Sequence[Prediction]) -> None:
        """Count the near ties among causal decisions."""
        self.near_ties += sum(found.margin < NEAR_TIE for found in predictions)

    def state(self) -> CanvasState:
        """The answer and the canvas as they are."""
        answer = self.answer
        ids = (*answer, *self.canvas_ids[: self.length])
        # What is only drafted may still be rejected.
        sure = 0 if self.policy.verified else self.length if self.steered is None else self.front
        canvas = [known and column < sure for column, known in enumerate(self.canvas_revealed[: self.length])]
        return CanvasState(self.forwards, ids, (True,) * len(answer) + tuple(canvas))

    def result(self, reason: FinishReason, now: float) -> Result:
        """The finished answer."""
        prefilled = self.began if self.prefilled is None else self.prefilled
        return Result(
            ids=tuple(self.answer),
            log_probs=tuple(self.log_probs),
            entropies=tuple(self.entropies),
            flips=tuple(self.flips),
            end_log_prob=self.end_log_prob,
            finish_reason=reason,
            steps=self.steps,
            forwards=self.forwards,
            cached_tokens=self.cached_tokens,
            computed_tokens=len(self.request.context) - self.cached_tokens,
            canvas_length=self.canvas_length,
            length_scores=self.length_scores,
            prefill_seconds=prefilled - self.began,
            denoise_seconds=now - prefilled,
            near_ties=self.near_ties,
        )
