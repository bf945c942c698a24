"""What a forward means for each job that took part: context encoded, tokens verified, canvas positions revealed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from calomel.engine.alone import alone
from calomel.engine.cache import PrefixCache
from calomel.engine.canvas import Board, Reading, Snapshot
from calomel.engine.config import DiffusionConfig
from calomel.engine.constrained import Rows, settle
from calomel.engine.errors import DeadlineExceededError
from calomel.engine.foresight import foreseeable
from calomel.engine.job import Clock, Job
from calomel.engine.length import LengthBias, best_length, score_lengths
from calomel.engine.result import FinishReason
from calomel.engine.sampling import Choice
from calomel.engine.share import Share
from calomel.engine.verify import Prediction, agreement


class Progress:
    """Takes jobs from one state to the next."""

    def __init__(
        self, diffusion: DiffusionConfig, cache: PrefixCache, board: Board, clock: Clock, bias: LengthBias | None
    ) -> None:
        self._diffusion = diffusion
        self._cache = cache
        self._board = board
        self._clock = clock
        self._bias = bias

    def prefilled(self, job: Job) -> None:
        """A chunk of the context is encoded: keep its pages."""
        buffer = job.committed
        buffer.length += job.prefill_rows
        job.prefill_rows = 0
        self._keep(job)

    def verified(self, job: Job, predictions: Sequence[Prediction]) -> None:
        """A draft was read causally: fix what the causal mode agrees with, and its own next token."""
        job.forwards += 1
        if job.known is not None:
            predictions = [job.known, *predictions]
        tokens = [found.token for found in predictions]
        count = agreement(job.draft or [], tokens, end_token_id=self._diffusion.end_token_id, room=job.room)
        job.committed.length = len(job.tokens) + count - 1
        self._keep(job)
        job.count_ties(predictions[:count])
        job.extend(predictions[:count])
        job.guessing.found(tokens[:count])
        self._go_on(job)

    def scored(self, job: Job, predictions: Sequence[Prediction]) -> None:
        """A given answer was read causally: it is the answer, with the end token behind it."""
        job.forwards += 1
        job.committed.length += len(job.uncommitted) + len(predictions) - 1
        job.extend(predictions)
        self._keep(job)
        self._finish(job, "stop")

    def opened(self, job: Job, found: Prediction) -> None:
        """The block before the canvas is committed; its last row has decided the canvas' first position."""
        job.forwards += 1
        job.committed.length += len(job.uncommitted)
        self._keep(job)
        job.opening = False
        if found.token == self._diffusion.end_token_id:
            job.extend([found])
            self._go_on(job)
            return
        self._board.settle(job.slot, 0, found)
        job.canvas_ids[0], job.canvas_revealed[0] = found.token, True
        job.masked = [column for column in job.masked if column]
        job.masked_first = len(job.masked)
        if job.steered is not None:
            job.front = 1
        if job.request.record_canvases:
            job.handle.push(job.state())

    def begun(self, job: Job, predictions: Sequence[Prediction]) -> bool:
        """The causal rows before a canvas are committed; False when they already tell that the answer ends here."""
        job.forwards += 1
        job.steps += 1
        job.committed.length += len(job.uncommitted)
        self._keep(job)
        if predictions:
            (job.known,) = predictions
            if job.known.token == self._diffusion.end_token_id:
                job.count_ties(predictions)
                job.extend(predictions)
                self._go_on(job)
                return False
            self._board.fix(job.slot, 0, job.known.token)
        return True

    def denoised(self, shares: Sequence[Share], forwarded: Rows) -> None:
        """Reveal one step of every canvas, and the second one, too, where the first led to what was foreseen."""
        begun = [
            (share.job, share.job.length) for share in shares if not share.job.canvas_steps and foreseeable(share.job)
        ]
        self._step([(share, 0) for share in shares], forwarded)
        known: dict[Job, int] = {}
        for job, length in begun:
            goes_on = bool(job.masked) and job.canvas_steps == 1 and not job.handle.done
            state = tuple(job.canvas_ids) if goes_on else None
            self._board.foresight.saw(length, state)
            if state in job.foreseen:
                known[job] = job.foreseen.index(state)
                job.steps += 1
        if known:
            self._step([(share, known[share.job] + 1) for share in shares if share.job in known], forwarded)

    def _step(self, shares: Sequence[tuple[Share, int]], forwarded: Rows) -> None:
        """Reveal one step of canvases: of each share those rows that belong to its piece with this number."""
        choice = forwarded.choice
        rows: list[int] = []
        firsts: list[int] = []
        canvas: list[int] = []
        column: list[int] = []
        for index, (share, number) in enumerate(shares):
            start, columns = self._probed(share, choice, number)
            firsts.append(start)
            rows += range(start, start + len(columns))
            canvas += [index] * len(columns)
            column += columns
        jobs = [share.job for share, _ in shares]
        policies, last = [job.reveal for job in jobs], [job.last_step for job in jobs]
        slots, revised = [job.slot for job in jobs], [job.revises for job in jobs]
        stops = [job.reach for job in jobs] if self._diffusion.sub_block else None
        early = [job.first for job in jobs] if any(job.first for job in jobs) else None
        edits = [-1.0 if job.joint is None else job.joint.edit for job in jobs] if any(revised) else None
        for job in jobs:
            job.canvas_steps += 1
        reading = Reading(slots, rows, canvas, column, policies, last, revised, stops, early, edits)
        snapshots = self._board.advance(choice, reading)
        for job, snapshot, first, is_last in zip(jobs, snapshots, firsts, last, strict=True):
            with alone(job):
                if job.steered is not None:
                    settle(job, job.steered, snapshot, first, forwarded, self._board, last=is_last)
                self._revealed(job, snapshot, is_last=is_last)

    def looked(self, job: Job, snapshot: Snapshot, steps: int, length: int) -> None:
        """`steps` steps of a canvas were taken without the host, which left `length` positions of it."""
        self.begun(job, ())
        job.forwards += steps - 1
        job.steps += steps - 1
        job.canvas_steps += steps
        job.length = length
        job.candidates = (length,)
        self._revealed(job, snapshot, is_last=job.canvas_steps >= job.request.max_steps)

    def expired(self, job: Job) -> None:
        """The deadline has passed: answer with what is known without a gap."""
        if job.prefilled is None or not job.forwards:
            job.handle.settle(
                DeadlineExceededError("the deadline passed before the first step; allow more time or a shorter context")
            )
            return
        if job.draft is None and not job.policy.causal:
            known = job.masked[0] if job.masked else len(job.canvas_ids)
            self._take_canvas(job, known if job.steered is None else job.front)
        self._finish(job, "stop" if job.end_log_prob is not None else "deadline")

    def _keep(self, job: Job) -> None:
        """Store what is encoded of the context, as far as it is to be shared and is not stored yet."""
        encoded = min(job.committed.length, job.stored)
        if job.lease is not None and encoded > job.kept:
            self._cache.store(job.lease, job.tokens[:encoded], job.committed)
            job.kept = encoded

    def _probed(self, share: Share, choice: Choice, number: int) -> tuple[int, Sequence[int]]:
        """First row and columns of the canvas to go on with; the first step of several candidates chooses one."""
        job, chosen = share.job, number
        starts = list(accumulate(map(len, share.columns), initial=share.canvas_start))
        if len(job.candidates) > 1:
            confidences = [choice.log_prob[start:stop].exp() for start, stop in pairwise(starts)]
            scores = score_lengths(confidences, job.candidates, self._bias)
            chosen = best_length(job.candidates, scores)
            job.length_scores = tuple(zip(job.candidates, scores, strict=True))
            job.candidates = (job.candidates[chosen],)
            job.length = job.candidates[0]
        job.canvas_length = job.canvas_length or job.length
        return starts[chosen], share.columns[chosen]

    def _revealed(self, job: Job, snapshot: Snapshot, *, is_last: bool) -> None:
        """Take over a canvas behind a step: an end token drops the tail, a whole canvas goes into the answer."""
        end, joint, was_whole = self._diffusion.end_token_id, job.joint, not job.masked
        # A constraint may still refuse an end that is only proposed.
        sure = job.length if job.steered is None else job.front
        known = zip(snapshot.ids[:sure], snapshot.revealed, strict=False)
        ended = next((column for column, (token, is_known) in enumerate(known) if is_known and token == end), None)
        # A checkpoint with blocks has read whole blocks alone: the tail goes when nothing before it is masked.
        if ended is not None and joint is None and (self._diffusion.block == 1 or all(snapshot.revealed[:ended])):
            job.length = ended + 1
            job.candidates = (job.length,)
        job.canvas_ids, job.canvas_revealed = snapshot.ids[: job.length], snapshot.revealed[: job.length]
        job.masked = [column for column, is_known in enumerate(job.canvas_revealed) if not is_known]
        if job.request.record_canvases:
            job.handle.push(job.state())
        goes_on = snapshot.revised and job.steered is None
        if joint is not None:  # a step on a whole canvas has the last word
            job.whole_steps += was_whole
            goes_on = (snapshot.revised or not was_whole) and job.whole_steps < joint.after
        if job.masked or (goes_on and not is_last):
            if self._is_over(job):
                self._take_canvas(job, job.masked[0])
                self._finish(job, "stop")
            elif job.overlaps:
                self._overlap(job, ended)
            return
        if job.policy.verified:
            job.draft = [token for token in job.canvas_ids if token != end][: job.room - 1]
            return
        self._take_canvas(job, job.length)
        self._go_on(job)

    def _overlap(self, job: Job, ended: int | None) -> None:
        """Begin the next canvas beside one that has little left, or go on with it alone when that is whole."""
        if job.first:
            if ended is not None and ended < job.first:
                job.first = 0
            elif job.masked[0] >= job.first:
                self._drop_first(job)
        if job.first or job.handle.done or ended is not None or len(job.masked) > job.request.overlap:
            return
        room = min(job.canvas_length, self._diffusion.max_canvas - job.length, job.room - job.length + 1)
        if room > 1:  # one is for the end token
            job.first = job.length
            job.masked += range(job.length, job.length + room)
            job.canvas_ids = job.canvas_ids + [self._diffusion.mask_token_id] * room
            job.canvas_revealed = job.canvas_revealed + [False] * room
            job.length += room
            job.candidates = (job.length,)

    def _drop_first(self, job: Job) -> None:
        """The first of two canvases goes into the answer; what the second one has had beside it counts as a step."""
        ids, revealed, first = job.canvas_ids[job.first :], job.canvas_revealed[job.first :], job.first
        self._take_canvas(job, first)
        if job.request.until is not None and job.request.until(job.answer):
            self._finish(job, "stop")
            return
        self._board.shift(job.slot, first)
        job.canvas_ids, job.canvas_revealed = ids, revealed
        job.length, job.first, job.canvas_steps, job.foreseen = len(ids), 0, 1, ()
        job.candidates = (job.length,)
        job.masked = [column - first for column in job.masked]
        job.masked_first = len(job.masked)

    def _is_over(self, job: Job) -> bool:
        """Whether what is revealed without a gap ends the answer: nobody asks what is masked behind it."""
        until = job.request.until
        if until is None or not job.masked or job.revises or job.policy.causal or job.steered is not None:
            return False
        known = min(job.masked[0], job.room)
        settled = [*job.answer, *job.canvas_ids[:known]]
        if not known or len(settled) <= job.asked:
            return False
        job.asked = len(settled)
        return until(settled)

    def _take_canvas(self, job: Job, length: int) -> None:
        """Move the first `length` positions of the canvas into the answer, as far as it has room."""
        log_probs, entropies, flips = self._board.confidences(job.slot, length)
        found = [
            Prediction(token, log_prob, entropy, 1.0)
            for token, log_prob, entropy in zip(job.canvas_ids[:length], log_probs, entropies, strict=True)
        ]
        if length > job.room and found[job.room].token != self._diffusion.end_token_id:
            found = found[: job.room]
        job.canvas_ids, job.canvas_revealed = [], []
        job.extend(found, flips)

    def _go_on(self, job: Job) -> None:
        """Finish the answer, or begin its next canvas."""
        if job.end_log_prob is not None:
            self._finish(job, "stop")
        elif not job.room:
            self._finish(job, "length")
        elif job.request.until is not None and job.request.until(job.answer):
            self._finish(job, "stop")
        else:
            if job.canvas_length:
                job.candidates = (job.canvas_length,)
            job.begin_canvas(self._board)
            if job.request.record_canvases and job.policy.causal:
                job.handle.push(job.state())

    def _finish(self, job: Job, reason: FinishReason) -> None:
        if job.request.record_canvases and job.policy.causal:
            job.length, job.canvas_ids, job.canvas_revealed = 0, [], []
            job.handle.push(job.state())
        job.handle.settle(job.result(reason, self._clock()))
