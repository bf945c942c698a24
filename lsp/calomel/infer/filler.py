"""Filling a hole in a text: the one implementation that command line, HTTP server and benchmarks share.

If one of our own checkpoints has weights for copies (`calomel.infer.recall`), text found elsewhere between the same
neighbours is judged along with the model's own answer, and the likelier one is taken.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from copy import copy
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Self

from calomel.engine import CanvasState, Constraint, DeadlineExceededError, Priority, Request, Result, SamplingParams
from calomel.infer.cleaning import Cleaning
from calomel.infer.completer import (
    MAX_TOKENS,
    Candidate,
    CanvasText,
    CompleteAnswer,
    CompleteRequest,
    Ending,
    EngineTimings,
    Fill,
    FillRequest,
    FinishReason,
    GenerationConfig,
    Occupancy,
    canvas_text,
    causal,
    cut_at_stop,
    ending,
    settled_ids,
    sure_end,
    with_ends,
    with_ends_of,
    with_line_feeds,
)
from calomel.infer.recall import CopyCandidate, CopyScorer, recall
from calomel.infer.rewriter import Rewriter
from calomel.infer.scoring import JudgedDrafts, RequestGroup, expected_characters, expected_of_draft, judge_drafts
from calomel.prompts.grammar import AnswerForm, GrammarCompiler
from calomel.prompts.own import ContextRenderer, FimTokens
from calomel.prompts.token_healing import NO_HEALING, TokenHealing, pieces_of
from calomel.prompts.tokenizer import TextTokenizer, Tokenizer

if TYPE_CHECKING:
    from calomel.engine import Engine, Handle

# Revealing sure tokens from left to right fills more holes than revealing them anywhere, and copied text is often sure
# at once (docs/decisions/013, 022 and 032).
DEFAULT_POLICY: Final = "prefix:0.8/10"
DEFAULT_MAX_STEPS: Final = 5
# A step usually reveals two positions; a longer canvas costs time and fills no more holes.
DEFAULT_CANVAS: Final = 8
# The length in tokens of the canvases on which nano was trained for edits.
_EDIT_CANVAS: Final = 48
_EDIT_POLICY: Final = "threshold:0.5"
_EDIT_STEPS: Final = 2
# Characters whose first token tells what follows a hole.
_FOLLOWING: Final = 64
_SHARED: Final = tuple(each.name for each in fields(CompleteRequest))


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copied text, its number of tokens, and whether it is so sure that the model's own answer is not needed."""

    candidate: CopyCandidate
    tokens: int
    sure: bool


@dataclass(frozen=True, slots=True)
class _Asked:
    """The engine's requests for one hole.

    Attributes:
        prompt: of all `requests`.
        requests: to judge the copy, if there is one, then for the model's own answer, if that is needed.
        copied: the copy; None without one.
        owed: how many leading tokens of the copy are in the text already.
        began: time of the request.
    """

    request: FillRequest
    prompt: FimTokens
    requests: tuple[Request, ...]
    copied: _Copy | None
    owed: int
    began: float


class Filler:
    """Answers questions with one engine and its tokenizer. Safe to share between threads and tasks.

    Args:
        engine: any.
        tokenizer: of its checkpoint.
        generation: how it fills a hole; None for one of our own checkpoints.
        edits: how it rewrites a region; None for one of our own checkpoints.
        copies: scores copies against the model's own answer, for our own checkpoints with a causal mode; None for no
            copies.

    Attributes:
        client: see `Request.client`.
        generation: how it fills a hole.
        whole: how another maker's checkpoint writes a whole answer; None for one of our own.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: TextTokenizer,
        generation: GenerationConfig | None = None,
        edits: GenerationConfig | None = None,
        copies: CopyScorer | None = None,
    ) -> None:
        self.engine = engine
        self.client = ""
        self.whole = edits
        self.tokenizer = tokenizer
        self.grammars = GrammarCompiler(tokenizer)
        self.generation = generation or GenerationConfig(
            own_renderer(tokenizer), DEFAULT_POLICY, DEFAULT_MAX_STEPS, DEFAULT_CANVAS
        )
        own_edits = GenerationConfig(self.generation.renderer, _EDIT_POLICY, _EDIT_STEPS, _EDIT_CANVAS)
        self._rewriter = Rewriter(tokenizer, edits or own_edits)
        self._copies = copies
        # Prompts may end before the word at the cursor: other formats were trained with halves of words.
        self._heals = self.generation.continues or (self.generation.ended is None and isinstance(tokenizer, Tokenizer))
        if self._heals:
            pieces_of(tokenizer)  # now, and not at the first half word: it takes 20 ms

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Rewrite the region, or fill the hole and judge its drafts; candidates with most expected characters first.

        An empty answer is a candidate, too: its signals tell how sure the model is that nothing belongs there.
        A checkpoint without a causal mode judges nothing. Cancelling the task cancels the engine's requests.

        Raises:
            EngineError: the engine refused or failed.
        """
        if request.kind == "edit":
            return await self._rewriter.rewrite(self.engine, request, self.client)
        if isinstance(request, FillRequest):
            fill_request = request
        else:  # from an editor, which copies from the whole project by itself, and sends drafts
            fill_request = FillRequest(**{name: getattr(request, name) for name in _SHARED}, recall=False)
        fill_request = with_line_feeds(fill_request)
        if request.ahead:
            return await self._read_ahead(fill_request)
        if not fill_request.drafts:
            fill = await self.afill(fill_request)
            return _answer(fill, (self._candidate(fill),))
        if not self.engine.config.diffusion.verifiable:
            fill = await self.afill(fill_request)
            texts = ((cut_at_stop(draft.text, fill_request.stop)[0], draft.maker) for draft in fill_request.drafts)
            drafts = (Candidate(text, maker=maker) for text, maker in texts if text.strip())
            return _answer(fill, (self._candidate(fill), *drafts), judged=False)
        alone = await asyncio.to_thread(self._asked, replace(fill_request, recall=False))
        async with RequestGroup(self.engine) as group:
            healing = self._healing(fill_request)
            bare, own = not alone.prompt.closing, alone.requests[0]
            drafted = await judge_drafts(
                group, own, fill_request.drafts, fill_request.stop, self.tokenizer, healing, bare=bare
            )
        fill = await self._aside(fill_request, self._finish, fill_request, alone.prompt, drafted.filled, alone.began)
        return _answer(fill, _ranked(self._candidate(fill), drafted))

    def fill(self, request: FillRequest) -> Fill:
        """Fill the hole; blocks. Raises the engine's errors."""
        job = self._asked(with_line_feeds(request))
        *judging, last = self.engine.submit_all(job.requests)
        own = last.result()

        def judgement(handles: Sequence[Handle]) -> Result | None:
            try:
                return handles[0].result() if handles else None
            except DeadlineExceededError:
                return None

        fill = self._chosen(job, own, judgement(judging))
        following = self._following(job, fill) if self.generation.continues else ()
        handles = self.engine.submit_all(following) if following else ()
        return with_ends(request, _ending_there(fill, judgement(handles)))

    async def afill(self, request: FillRequest) -> Fill:
        """Fill the hole; cancelling the task cancels the engine's requests."""
        plain = with_line_feeds(request)
        fill = await self._run(await asyncio.to_thread(self._asked, plain))
        return with_ends(request, fill)

    async def stream(self, request: FillRequest) -> AsyncGenerator[str | Fill]:
        """Yield the text as it becomes final, then the `Fill`; all at once if there are two to choose from."""
        async with aclosing(self._streamed(with_line_feeds(request))) as items:
            async for item in items:
                yield with_ends_of(request, item) if isinstance(item, str) else with_ends(request, item)

    async def _streamed(self, request: FillRequest) -> AsyncGenerator[str | Fill]:
        job = await asyncio.to_thread(self._asked, request, record=True)
        if job.copied is not None:
            fill = await self._run(job)
            if fill.text:
                yield fill.text
            yield fill
            return
        sent, healing = "", self._healing(request)
        async with aclosing(self._watch(job)) as items:
            async for item in items:
                text = item.text if isinstance(item, Fill) else await self._shown(request, item, healing)
                if text.startswith(sent) and len(text) > len(sent):
                    yield text[len(sent) :]
                    sent = text
                if isinstance(item, Fill):
                    yield item

    async def canvases(self, request: FillRequest) -> AsyncGenerator[CanvasText | Fill]:
        """Yield the model's own answer after every step, then the `Fill`, which may have a copied text instead.

        Each state has the whole answer and replaces the one before.
        """
        plain = with_line_feeds(request)
        healing = self._healing(plain)
        job = await asyncio.to_thread(self._asked, plain, record=True)
        async with aclosing(self._watch(job)) as items:
            async for item in items:
                if isinstance(item, Fill):
                    yield with_ends(request, item)
                else:
                    text = canvas_text(item, self.tokenizer, request.max_tokens)
                    shown = healing.rest(self.generation.renderer.shown(text.text))
                    yield replace(text, text=with_ends_of(request, self._cleaning(plain).cut(shown)[0]))

    def judging(self, request: FillRequest, text: str, prompt: FimTokens | None = None) -> tuple[Request, int]:
        """A request for the likelihood of `text` in the hole, and how many of its first tokens are there already."""
        ids, owed = self._healing(request).given(text, self.tokenizer)
        like = self._request(request, prompt or self._prompt(request))
        return replace(like, given=ids, constraint=None, until=None), owed

    def close(self) -> None:
        """Stop the engine."""
        self.engine.close()

    @property
    def reads_ahead(self) -> bool:
        """Whether its engine keeps encoded contexts."""
        return self.engine.decoder.keeps_contexts

    @property
    def note(self) -> None:
        """None: the model's own description has all there is to say."""

    def occupancy(self) -> Occupancy:
        """How busy the engine is."""
        running, waiting = self.engine.occupancy
        cache = self.engine.decoder.cache
        if not self.reads_ahead:
            return Occupancy(running, waiting)
        return Occupancy(running, waiting, cache.held_tokens, cache.tokens)

    def constraint(self, form: AnswerForm) -> Constraint:
        """What keeps an answer to `form`; compiling may take seconds. Raises GrammarError."""
        return self.grammars.compile(form)

    def for_client(self, client: str) -> Self:
        """The same filler, with its requests in the client's name."""
        filler = copy(self)
        filler.client = client
        return filler

    async def _read_ahead(self, request: FillRequest) -> CompleteAnswer:
        """Encode the prompt of `request`; the answer is empty."""
        prompt = await asyncio.to_thread(self._prompt, request)
        one = replace(self._request(request, prompt), max_new_tokens=1, canvas_length=1, constraint=None)
        async with RequestGroup(self.engine) as group:
            (handle,) = group.send((replace(one, max_steps=1, priority=Priority.BACKGROUND),))
            result = await handle.wait()
        tokens = len(prompt.context) + len(prompt.suffix)
        return CompleteAnswer((), context_tokens=tokens, cached_tokens=result.cached_tokens)

    # Requests.

    def _asked(self, request: FillRequest, *, record: bool = False) -> _Asked:
        """The prompt and the requests. Too slow for the event loop with a long context."""
        began = time.monotonic()
        copied = self._copy(request)
        prompt = self._prompt(request)
        own = self._request(request, prompt, record=record)
        if copied is None:
            return _Asked(request, prompt, (own,), None, 0, began)
        judging, owed = self.judging(request, copied.candidate.text, prompt)
        return _Asked(request, prompt, (judging,) if copied.sure else (judging, own), copied, owed, began)

    def _copy(self, request: FillRequest) -> _Copy | None:
        """The copy for a hole, unless the request constrains the answer or says how to generate it."""
        sampling = request.sampling
        drawn = sampling is not None and (sampling.temperature > 0 or sampling.penalised)
        custom = request.policy is not None or drawn or request.constraint is not None
        if self._copies is None or custom or not request.recall:
            return None
        parts = request.parts
        candidate = recall(parts.prefix, parts.suffix, [excerpt.text for excerpt in (*parts.related, *parts.far)])
        if candidate is None:
            return None
        candidate = replace(candidate, text=Cleaning(request).whole(candidate.text)[0])
        tokens = len(self.tokenizer.encode(candidate.text))
        if not max(1, request.min_tokens) <= tokens <= request.max_tokens:
            return None
        return _Copy(candidate, tokens, self._copies.is_sure(candidate, tokens))

    def _prompt(self, request: FillRequest) -> FimTokens:
        positions = self.engine.positions
        parts, owed = request.parts, self._healing(request)
        if owed.text:
            parts = replace(parts, prefix=parts.prefix.removesuffix(owed.text))
        room = positions - request.max_tokens - owed.most_tokens
        return self.generation.renderer.render(parts, min(request.max_context, room))

    def _healing(self, request: FillRequest) -> TokenHealing:
        """What the answer must begin with: nothing, unless it is generated from the start of a word."""
        if not (self._heals and request.whole_word and request.constraint is None):
            return NO_HEALING
        return TokenHealing.before(request.parts.prefix, self.tokenizer, request.stop)

    def _cleaning(self, request: FillRequest) -> Cleaning:
        return Cleaning(request, self.generation.continues)

    def _until(self, request: FillRequest, healing: TokenHealing) -> Ending | None:
        until = ending(self.generation, request.stop)
        cleaning = self._cleaning(request)
        if until is None or not cleaning.goes_on:
            return until
        own, read = self.generation.ended, self.generation.renderer.read

        def ended(ids: Sequence[int]) -> bool:
            return (own is not None and own(ids)) or cleaning.cut(healing.rest(read(ids)))[1]

        return replace(until, ended=ended)

    def _request(self, request: FillRequest, prompt: FimTokens, *, record: bool = False) -> Request:
        generation = self.generation
        longest = self.engine.config.diffusion.max_canvas
        healing = self._healing(request)
        least, constraint = request.min_tokens, request.constraint
        if healing.text:
            # The model chooses the tokens that spell the half word, so the constraint counts those after it. One more
            # than the answer may have tells an answer that was cut from one that ends there.
            least, constraint = 0, healing.constraint(self.tokenizer, least=least, most=request.max_tokens + 1)
        usual = request.max_tokens + len(self.tokenizer.encode(healing.text))
        floor = self._floor(request)

        def unlikely(ids: Sequence[int], log_probs: Sequence[float]) -> bool:
            return floor is not None and sum(log_probs[healing.tokens(ids, self.tokenizer) :]) < floor

        length = request.canvas_length or generation.length(longest, usual)
        return Request(
            context=prompt.context,
            max_new_tokens=request.max_tokens + healing.most_tokens,
            min_new_tokens=least,
            canvas_length=length,
            sampling=request.sampling or generation.sampling or SamplingParams(),
            policy=request.policy or generation.policy,
            max_steps=request.max_steps or (generation.max_steps if request.constraint is None else length),
            deadline=None if request.deadline is None else time.monotonic() + request.deadline,
            record_canvases=record,
            reuse=prompt.reuse,
            until=self._until(request, healing) if generation.continues else ending(generation, request.stop),
            unlikely=None if floor is None else unlikely,
            constraint=constraint,
            suffix=prompt.suffix,
            client=self.client,
        )

    def _floor(self, request: FillRequest) -> float | None:
        """The floor of a request, if it means anything for an answer of this model."""
        return request.floor if self.generation.causal or isinstance(self.tokenizer, Tokenizer) else None

    def _candidate(self, fill: Fill) -> Candidate:
        own = Candidate.of(fill.result, fill.text, fill.completion_tokens)
        own = replace(own, finish_reason=fill.finish_reason)
        return causal(own) if self.generation.causal else own

    def _sure(self, request: FillRequest, result: Result, owed: int) -> int:
        """How many tokens of an answer, beyond those `owed`, its floor leaves; all of them without one."""
        floor, scores = self._floor(request), result.log_probs[owed:]
        if floor is None:
            return MAX_TOKENS
        if not self.generation.causal:
            return 0 if result.end_log_prob is None and sum(scores) < floor else MAX_TOKENS
        return next((count for count, joint in enumerate(accumulate(scores)) if joint < floor), MAX_TOKENS)

    # Results.

    async def _run(self, job: _Asked) -> Fill:
        async with RequestGroup(self.engine) as group:
            *judging, last = group.send(job.requests)
            own = await last.wait()
            fill = await self._aside(job.request, self._chosen, job, own, *await group.wait(judging))
            if not self.generation.continues:
                return fill
            following = await asyncio.to_thread(self._following, job, fill)
            (judged,) = await group.wait(group.send(following)) or (None,)
            return _ending_there(fill, judged)

    def _following(self, job: _Asked, fill: Fill) -> tuple[Request, ...]:
        """For the likelihood of what follows the hole behind an answer, if only that tells whether it ends there.

        The last token of the answer may be another one where the two meet.
        """
        if not (fill.text and self._cleaning(job.request).goes_on and self.engine.config.diffusion.verifiable):
            return ()
        text = f"{self._healing(job.request).text}{fill.text}"
        own, both = (self.tokenizer.encode(text + after) for after in ("", job.request.parts.suffix[:_FOLLOWING]))
        same = next((at for at, pair in enumerate(zip(own, both, strict=False)) if pair[0] != pair[1]), len(own))
        if same == len(both):
            return ()
        like = replace(job.requests[0], constraint=None, until=None, unlikely=None, record_canvases=False)
        count = same + 1
        while len(self.tokenizer.decode_bytes(both[:count])) <= len(text.encode()) and count < len(both):
            count += 1
        return (replace(like, context=(*job.prompt.context, *both[:same]), given=tuple(both[same:count])),)

    async def _watch(self, job: _Asked) -> AsyncGenerator[CanvasState | Fill]:
        async with RequestGroup(self.engine) as group:
            *judging, last = group.send(job.requests)
            async for state in last.astates():
                yield state
            own = await last.wait()
            yield await self._aside(job.request, self._chosen, job, own, *await group.wait(judging))

    async def _aside(self, request: FillRequest, work: Callable[..., Fill], *args: object) -> Fill:
        """The result of `work`; in a thread if it has to fit the answer to the text around the hole."""
        return work(*args) if self._cleaning(request).hole is None else await asyncio.to_thread(work, *args)

    def _chosen(self, job: _Asked, last: Result, judged: Result | None = None) -> Fill:
        """The likelier one of the copy and the model's own answer; the latter if the copy was not judged in time.

        `last` is the model's own answer, or for a sure copy the judgement of the copy.
        """
        copied, scorer, own = job.copied, self._copies, None
        if copied is None or scorer is None:
            return self._finish(job.request, job.prompt, last, job.began)
        if copied.sure:
            judged = last
        else:
            own = self._finish(job.request, job.prompt, last, job.began)
            if judged is None:
                return own
        judged = told(judged, slice(job.owed, len(judged.ids)))
        probability = scorer.of_draft(copied.candidate, judged.log_probs, judged.end_log_prob)
        if own is not None and scorer.of_own(own.result.log_probs, own.result.end_log_prob) > probability:
            return own
        return Fill(
            text=copied.candidate.text,
            finish_reason="stop",
            confidence=probability,
            prompt_tokens=judged.cached_tokens + judged.computed_tokens,
            completion_tokens=copied.tokens,
            cached_tokens=judged.cached_tokens,
            steps=0 if own is None else own.steps,
            forwards=judged.forwards if own is None else max(judged.forwards, own.forwards),
            seconds=time.monotonic() - job.began,
            result=judged,
            trimmed=job.prompt.cut,
        )

    def _finish(self, request: FillRequest, prompt: FimTokens, result: Result, began: float) -> Fill:
        healing = self._healing(request)
        over = self.generation.ended is not None and self.generation.ended(result.ids)
        # What is there already does not count, however unlikely the model finds it.
        owed = healing.tokens(result.ids, self.tokenizer)
        span = slice(owed, owed + min(request.max_tokens, self._sure(request, result, owed)))
        cut, low = len(result.ids) > span.stop, span.stop < owed + request.max_tokens
        read = self.generation.renderer.read
        written = healing.rest(read(result.ids[: span.stop]))
        if low:
            written = written[: sure_end(written, read(result.ids[span.stop : span.stop + 1]))]
        ended = not cut and (over or result.finish_reason == "stop")
        text, stopped = self._cleaning(request).whole(written, ended=ended)
        result = told(result, span)
        shorter = stopped or text != written
        kept = len(self.tokenizer.encode(text)) if shorter else len(result.ids)
        reason: FinishReason = "unlikely" if low else "length" if cut else result.finish_reason
        scores = list(result.log_probs[:kept])
        if result.end_log_prob is not None and not shorter and not cut:
            scores.append(result.end_log_prob)
        return Fill(
            text=text,
            finish_reason="stop" if stopped or over else reason,
            confidence=math.exp(sum(scores) / len(scores)) if scores else 0.0,
            prompt_tokens=result.cached_tokens + result.computed_tokens,
            completion_tokens=kept,
            cached_tokens=result.cached_tokens,
            steps=result.steps,
            forwards=result.forwards,
            seconds=time.monotonic() - began,
            result=result,
            trimmed=prompt.cut,
        )

    async def _shown(self, request: FillRequest, state: CanvasState, healing: TokenHealing) -> str:
        """The final part of a growing answer: its start that is revealed without gaps, as far as it is settled."""
        # A canvas also has room for the end token, which is one more than the answer may have.
        most = healing.tokens(settled_ids(state), self.tokenizer) + request.max_tokens
        ids = settled_ids(state, most, self.tokenizer.end)
        return await self._cleaning(request).growing(healing.rest(self.generation.renderer.read(ids, whole=False)))


def own_renderer(tokenizer: TextTokenizer) -> ContextRenderer:
    """The prompt renderer of our own checkpoints. Raises TypeError for another maker's tokenizer."""
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError("this checkpoint does not know Calomel's own prompts")
    return ContextRenderer(tokenizer)


def told(result: Result, span: slice) -> Result:
    """The result restricted to the tokens `span`, without those that were in the text already."""
    if span.start == 0 and len(result.ids) <= span.stop:
        return result
    return replace(
        result,
        ids=result.ids[span],
        log_probs=result.log_probs[span],
        entropies=result.entropies[span],
    )


def _ending_there(fill: Fill, judged: Result | None) -> Fill:
    """`fill`, with the probability of what follows it as that of its end."""
    if judged is None:
        return fill
    # The tokens in which the answer meets what follows replace the last ones of the answer.
    replaced = len(judged.log_probs) - 1
    kept = fill.result.log_probs[: fill.completion_tokens]
    end = min(0.0, sum(judged.log_probs) - sum(kept[len(kept) - replaced :]))
    result = replace(told(fill.result, slice(0, fill.completion_tokens)), end_log_prob=end)
    scores = (*result.log_probs, end)
    return replace(fill, result=result, confidence=math.exp(sum(scores) / len(scores)))


def _ranked(own: Candidate, drafted: JudgedDrafts) -> tuple[Candidate, ...]:
    """The model's own text and what is left of the drafts, by expected characters."""
    probabilities = own.log_probs if drafted.log_prob is None else (drafted.log_prob,)
    scores = [expected_characters(own.text, probabilities), *map(expected_of_draft, drafted.drafts)]
    own = replace(own, log_prob=drafted.log_prob)
    candidates = [replace(each, keep_log_prob=drafted.keep_log_prob) for each in (own, *drafted.drafts)]
    return tuple(candidates[at] for at in sorted(range(len(candidates)), key=lambda at: -scores[at]))


def _answer(fill: Fill, candidates: tuple[Candidate, ...], *, judged: bool = True) -> CompleteAnswer:
    worked = fill.result.prefill_seconds + fill.result.denoise_seconds
    return CompleteAnswer(
        candidates,
        context_tokens=fill.prompt_tokens,
        cached_tokens=fill.cached_tokens,
        timings=EngineTimings(queued=max(0.0, fill.seconds - worked), total=fill.seconds),
        judged=judged,
    )
