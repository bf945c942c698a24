"""One request while it is served in window mode: its window, its canvas, and where in its schedule it is.

A window is the context, the answer so far, the canvas and the suffix. With a suffix there is one canvas, and it is the
whole answer: what stands on it joins up with the suffix. Without one, further canvases follow until the end token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from calomel.engine.config import DiffusionConfig
from calomel.engine.constraint import Walk
from calomel.engine.errors import InvalidRequestError
from calomel.engine.handle import Handle
from calomel.engine.request import Request
from calomel.engine.result import CanvasState, FinishReason, Result
from calomel.engine.window.algorithms import Algorithm, Moment, Revealing
from calomel.engine.window.attention import Kept, Span
from calomel.engine.window.canvas import WindowCanvas
from calomel.engine.window.options import WindowOptions
from calomel.engine.window.policy import parse_algorithm


@dataclass(slots=True, eq=False)
class WindowJob:
    """The mutable state of one request.

    Attributes:
        algorithm: the request's policy, read.
        answer: final tokens, with `log_probs`, `entropies` and `flips`; those of earlier canvases.
        canvas: the current canvas; `candidates` are its lengths until the length probe has chosen.
        start: the current block is the canvas' positions from `start` to `stop`.
        step: of the block; `began` is how many of its positions were masked at its first step.
        kept: keys and values of the window, as the block's first forward left them; None where every step forwards it.
        budget: how often the canvas may still grow; `moves` counts the steps of one that does.
        front: so many leading positions of the canvas are settled, where a constraint has the last word on it.
        revised: the last step changed what stood on the canvas.
    """

    request: Request
    handle: Handle
    diffusion: DiffusionConfig
    options: WindowOptions
    algorithm: Algorithm = field(init=False)
    generator: torch.Generator | None = None
    walk: Walk | None = field(init=False, default=None)
    canvas: WindowCanvas = field(init=False)
    candidates: tuple[int, ...] = ()
    start: int = 0
    stop: int = 0
    step: int = 0
    began: int = 0
    front: int = 0
    revised: bool = False
    kept: Kept | None = None
    budget: int = 0
    slot: int = 0
    prefill_rows: int = 0
    answer: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    flips: list[int] = field(default_factory=list)
    end_log_prob: float | None = None
    forwards: int = 0
    canvas_length: int = 0
    length_scores: tuple[tuple[int, float], ...] = ()
    began_at: float = 0.0

    def __post_init__(self) -> None:
        self.algorithm = parse_algorithm(self.request.policy, self.options.alg_temp)
        self._check()
        if self.request.constraint is not None:
            self.walk = self.request.constraint.begin()
        self.canvas = WindowCanvas(self.diffusion.mask_token_id)

    def _check(self) -> None:
        request, options = self.request, self.options
        if request.constraint is not None and (options.elastic or self.algorithm.rereads):
            what = "a canvas that grows and shrinks" if options.elastic else f"the policy {request.policy!r}"
            raise InvalidRequestError(f"constraint is set, but {what} takes back what a constraint has settled")
        if options.elastic and (request.frozen or self.algorithm.rereads or request.revise):
            what = "frozen is" if request.frozen else "revise is" if request.revise else f"{request.policy!r} is"
            raise InvalidRequestError(f"{what} set, but this checkpoint's canvases grow and shrink")
        if request.revise and not isinstance(self.algorithm, Revealing):
            raise InvalidRequestError(f"revise is set, but the policy {request.policy!r} knows no revision")
        if request.frozen and request.suffix and max(request.frozen) >= self._longest:
            raise InvalidRequestError(
                f"frozen position {max(request.frozen)} is behind the canvas of {self._longest} positions, which is "
                "all of the answer before a suffix"
            )

    @property
    def _longest(self) -> int:
        return min(max(self.request.canvas_lengths), self.request.max_new_tokens)

    @property
    def prefill_left(self) -> int:
        """Nothing is encoded ahead: a window is read as a whole."""
        return 0

    @property
    def room(self) -> int:
        """How many tokens the answer may still get."""
        return self.request.max_new_tokens - len(self.answer)

    @property
    def length(self) -> int:
        """Positions of the canvas as far as they are being denoised: to the end of the block."""
        return min(self.stop, len(self.canvas))

    @property
    def first(self) -> int:
        """Position of the canvas in the window."""
        return len(self.request.context) + len(self.answer)

    @property
    def caches(self) -> bool:
        """Whether the steps of a block behind its first forward the block alone."""
        return self.options.dual_cache and not self.options.elastic and not self.algorithm.rereads

    @property
    def rereads(self) -> bool:
        """Whether a step reads what is revealed already."""
        return self.algorithm.rereads or self.request.revise

    @property
    def open(self) -> bool:
        """Whether the block needs another step."""
        return bool(self.canvas.masked(self.start, self.length)) or (self.revised and self.step < self.steps)

    @property
    def rows(self) -> list[int]:
        """The positions of the canvas whose logits the next step reads."""
        if len(self.candidates) > 1:
            return self.canvas.masked(0, len(self.canvas))
        # Shifted logits have no row for the first position of a block that is forwarded alone; it is known by then.
        first = self.start + int(self.kept is not None and self.step > 0 and self.diffusion.logit_shift)
        if self.walk is not None:
            return list(range(max(self.front, first), self.length))
        if self.rereads:
            return [column for column in range(first, self.length) if not self.canvas.frozen[column]]
        return self.canvas.masked(first, self.length)

    @property
    def moment(self) -> Moment:
        """Where in its schedule the block is."""
        steps = self.steps
        elastic = self.options.elastic
        return Moment(
            step=self.step,
            steps=steps,
            began=self.began,
            masked=len(self.canvas.masked(self.start, self.length)),
            sampling=self.request.sampling,
            generator=self.generator,
            eps=self.options.eps,
            transfer=self.options.transfer if elastic and self.step < steps - 1 else None,
        )

    @property
    def steps(self) -> int:
        """Steps of a block at most; the last one reveals everything."""
        blocks = max(1, -(-len(self.canvas) // self.options.block)) if self.options.block else 1
        return max(1, self.request.max_steps // blocks)

    @property
    def ends(self) -> tuple[int, ...]:
        """The tokens that end an answer; none where they drop a position instead."""
        if self.options.elastic:
            return ()
        return (self.diffusion.end_token_id, *self.options.end_token_ids)

    def frozen_at(self, column: int) -> int | None:
        """The token that is frozen at `column` of the canvas."""
        return self.request.frozen.get(len(self.answer) + column)

    def frozen_behind(self, column: int) -> bool:
        """Whether a token is frozen behind `column` of the canvas."""
        return any(frozen > len(self.answer) + column for frozen in self.request.frozen)

    def bans_end(self, column: int) -> bool:
        """Whether the answer can not end at `column` of the canvas: more has to come."""
        return len(self.answer) + column < self.request.min_new_tokens or self.frozen_behind(column)

    def begin_canvas(self) -> None:
        """Set up the next canvas, of every candidate length where the length is to be probed."""
        lengths = (self.canvas_length,) if self.canvas_length else self.request.canvas_lengths
        self.candidates = tuple(sorted({min(length, self.room) for length in lengths}))
        offset, longest = len(self.answer), self.candidates[-1]
        frozen = {
            position - offset: token
            for position, token in self.request.frozen.items()
            if offset <= position < offset + longest
        }
        self.canvas = WindowCanvas.begin(longest, frozen, self.diffusion.mask_token_id)
        positions = self.request.max_new_tokens + len(self.request.suffix)
        self.budget = 2 * positions if self.options.expand_budget is None else self.options.expand_budget
        self.front, self.stop = 0, 0
        self.begin_block()

    def choose(self, length: int, kept: Kept | None) -> None:
        """Go on with the candidate of `length` alone, whose forward has left `kept`."""
        self.candidates = (length,)
        self.canvas.drop(length, len(self.canvas))
        self.stop = 0
        self.begin_block()
        self.kept = kept

    def begin_block(self) -> None:
        """Go on to the positions behind the current block."""
        self.start, self.step, self.kept, self.revised = self.stop, 0, None, False
        self.stop = min(self.start + (self.options.block or len(self.canvas)), len(self.canvas))
        self.began = len(self.canvas.masked(self.start, self.stop))

    def skip(self) -> None:
        """Leave out steps that would reveal nothing: another forward of the same says the same."""
        still = self.walk is None and not self.request.revise
        # The first step of a block that is cached reveals one position whatever the schedule says.
        while still and (self.step or not self.caches) and not self.moment.last:
            if self.algorithm.quota(self.moment) != 0:
                return
            self.step += 1

    def spans(self) -> list[Span]:
        """The rows of this job in the next forward: the window, once for every candidate length, or the block alone."""
        columns, shift = self.rows, int(self.diffusion.logit_shift)
        if self.kept is not None:
            read = [column - self.start - shift for column in columns]
            return [
                Span(self.canvas.ids[self.start : self.stop], self.first + self.start, read, self.kept, whole=False)
            ]
        before, ids = [*self.request.context, *self.answer], self.canvas.ids
        spans = []
        for length in self.candidates:
            size = len(ids) if len(self.candidates) == 1 else length
            read = [self.first + column - shift for column in columns if column < size]
            kept = Kept() if self.caches else None
            spans.append(Span([*before, *ids[:size], *self.request.suffix], 0, read, kept))
        return spans

    def state(self) -> CanvasState:
        """The answer and the canvas as they are."""
        revealed = self.canvas.revealed
        if self.walk is not None:
            revealed = [known and column < self.front for column, known in enumerate(revealed)]
        ids = (*self.answer, *self.canvas.ids)
        return CanvasState(self.forwards, ids, (True,) * len(self.answer) + tuple(revealed))

    def take(self, length: int) -> None:
        """Move the first `length` positions of the canvas into the answer, up to a token that ends it."""
        canvas, ends = self.canvas, self.ends
        for column in range(length):
            if canvas.ids[column] in ends:
                self.end_log_prob = canvas.log_probs[column]
                length = column
                break
        self.answer += canvas.ids[:length]
        self.log_probs += canvas.log_probs[:length]
        self.entropies += canvas.entropies[:length]
        self.flips += canvas.flips[:length]
        canvas.drop(0, len(canvas))

    def known(self) -> int:
        """So many leading positions of the canvas are there to stay."""
        masked = self.canvas.masked(0, len(self.canvas))
        known = masked[0] if masked else len(self.canvas)
        return known if self.walk is None else min(known, self.front)

    def ended(self) -> int | None:
        """The position of the first token that ends the answer, once everything before it is known."""
        known: Sequence[int] = self.canvas.ids[: self.known()]
        return next((column for column, token in enumerate(known) if token in self.ends), None)

    def result(self, reason: FinishReason, now: float) -> Result:
        """The finished answer."""
        return Result(
            ids=tuple(self.answer),
            log_probs=tuple(self.log_probs),
            entropies=tuple(self.entropies),
            flips=tuple(self.flips),
            end_log_prob=self.end_log_prob,
            finish_reason=reason,
            steps=self.forwards,
            forwards=self.forwards,
            cached_tokens=0,
            computed_tokens=len(self.request.context) + len(self.request.suffix),
            canvas_length=self.canvas_length,
            length_scores=self.length_scores,
            prefill_seconds=0.0,
            denoise_seconds=now - self.began_at,
            near_ties=0,
        )
