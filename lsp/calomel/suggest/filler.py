"""From a hole in a text to its filling: the one way that command line, HTTP door and benches share."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from calomel.prompts.grammar import GrammarCompiler
from calomel.prompts.own import ContextRenderer, FimTokens
from calomel.prompts.parts import PromptParts
from calomel.prompts.token_healing import NO_HEALING, TokenHealing, pieces_of
from calomel.prompts.tokenizer import TextTokenizer, Tokenizer
from calomel.suggest.completer import (
    CanvasText,
    CompleteAnswer,
    CompleteRequest,
    Draft,
    Fill,
    FillRequest,
    GenerationConfig,
    canvas_text,
    cut_at_stop,
    ending,
    settled,
)
from calomel.suggest.recall import CopyCandidate, CopyScorer, recall
from calomel.suggest.rewriter import Rewriter
from calomel.suggest.scoring import Drafted, RequestGroup, judge_drafts

if TYPE_CHECKING:
    from calomel.engine import AnyEngine, CanvasState, Request, Result, SamplingParams
    from calomel.prompts.renderer import PromptRenderer


# What is sure from left to right fills more holes than what is sure anywhere, in five
# forwards for three; sixteen steps take eight, and fill two more of 120 (docs/decisions/013).
DEFAULT_POLICY: Final = "prefix:0.8"
DEFAULT_MAX_STEPS: Final = 8
# With the row in front of it 16 rows, two heads of which fill a tile of 32 in PyTorch's attention kernel: behind 8K
# tokens the 17 rows of a canvas of 16 take half as long again, and fill no more holes.
DEFAULT_CANVAS: Final = 15


class Filler:
    """Fills holes with one engine and its tokenizer. Safe to share between threads and tasks.

    Args:
        engine: any.
        tokenizer: of its checkpoint.
        generation: how it is asked to fill a hole; None for a checkpoint of our own.
        edits: how it is asked to rewrite a region; None for a checkpoint of our own.

    Attributes:
        generation: how it fills a hole.
        whole: how a checkpoint of other makers writes a whole answer; None for one of our own.
    """

    def __init__(
        self,
        engine: AnyEngine,
        tokenizer: TextTokenizer,
        generation: GenerationConfig | None = None,
        edits: GenerationConfig | None = None,
    ) -> None:
        self.engine = engine
        self.whole = edits
        self.tokenizer = tokenizer
        self.grammars = GrammarCompiler(tokenizer)
        self.generation = generation or own_generation(own_renderer(tokenizer))
        self._rewriter = Rewriter(engine, tokenizer, self.generation.renderer if edits is None else edits)
        if isinstance(tokenizer, Tokenizer):
            pieces_of(tokenizer)  # here, and not when the first half word comes: that takes 20 ms

    def fill(self, request: FillRequest) -> Fill:
        """Fill the hole; blocks. Raises the engine's errors."""
        began = time.monotonic()
        prompt, wanted = self._rendered(request)
        handle = self.engine.submit(wanted)
        return self._finish(request, prompt, handle.result(), began)

    async def afill(self, request: FillRequest) -> Fill:
        """Fill the hole; cancelling the task cancels the engine's request."""
        began = time.monotonic()
        prompt, wanted = await asyncio.to_thread(self._rendered, request)
        handle = self.engine.submit(wanted)
        return await self._finished(request, prompt, await handle.wait(), began)

    async def adraft(self, request: FillRequest, drafts: Sequence[Draft]) -> tuple[Fill, Drafted]:
        """Fill the hole, and judge what others would put there; cancelling the task cancels the engine's requests.

        A checkpoint without a causal mode judges nothing.
        """
        began = time.monotonic()
        prompt, wanted = await asyncio.to_thread(self._rendered, request)
        if not self.engine.config.diffusion.verifiable:
            filled = await self.engine.submit(wanted).wait()
            kept = tuple(replace(draft, text=cut_at_stop(draft.text, request.stop)[0]) for draft in drafts)
            return await self._finished(request, prompt, filled, began), Drafted(filled, (), None, None, unjudged=kept)
        async with RequestGroup(self.engine) as group:
            healing = self._healing(request)
            drafted = await judge_drafts(group, wanted, drafts, request.stop, self.tokenizer, healing)
        return await self._finished(request, prompt, drafted.filled, began), drafted

    def judging(self, request: FillRequest, text: str, prompt: FimTokens | None = None) -> tuple[Request, int]:
        """Asks for the likelihood of `text` in the hole; so many leading tokens say what is there already."""
        ids, owed = self._healing(request).given(text, self.tokenizer)
        asked = self._request(request, prompt or self._prompt(request))
        return replace(asked, given=ids, constraint=None, until=None), owed

    async def arewrite(self, request: CompleteRequest) -> CompleteAnswer:
        """What a region could become, see `Rewriter.rewrite`; cancelling the task cancels the engine's requests."""
        return await self._rewriter.rewrite(request)

    async def stream(self, request: FillRequest) -> AsyncGenerator[str | Fill]:
        """Yield the text as its beginning gets settled, piece by piece, then the `Fill` itself."""
        sent, healing = "", self._healing(request)
        async with aclosing(self._watch(request)) as items:
            async for item in items:
                text = item.text if isinstance(item, Fill) else await self._shown(request, item, healing)
                if text.startswith(sent) and len(text) > len(sent):
                    yield text[len(sent) :]
                    sent = text
                if isinstance(item, Fill):
                    yield item

    async def canvases(self, request: FillRequest) -> AsyncGenerator[CanvasText | Fill]:
        """Yield the whole answer behind every denoising step, each in the place of the last, then the `Fill` itself."""
        healing = self._healing(request)
        async with aclosing(self._watch(request)) as items:
            async for item in items:
                if isinstance(item, Fill):
                    yield item
                else:
                    text = canvas_text(item, self.tokenizer, request.max_tokens)
                    shown = healing.rest(self.generation.renderer.shown(text.text))
                    yield replace(text, text=cut_at_stop(shown, request.stop)[0])

    async def _watch(self, request: FillRequest) -> AsyncGenerator[CanvasState | Fill]:
        began = time.monotonic()
        prompt, wanted = await asyncio.to_thread(self._rendered, request, record=True)
        handle = self.engine.submit(wanted)
        try:
            async for state in handle.astates():
                yield state
            yield await self._finished(request, prompt, await handle.wait(), began)
        finally:
            handle.cancel()

    def close(self) -> None:
        """Stop the engine."""
        self.engine.close()

    def of_client(self, client: str) -> Self:
        """The same, its requests in the name of who asks; closing it does nothing."""
        from calomel.engine.handle import ClientEngine  # imports torch, which came with the engine

        found = copy(self)
        found.engine = ClientEngine(self.engine, client)
        found._rewriter = self._rewriter.at(found.engine)  # noqa: SLF001  (of this class)
        return found

    def _rendered(self, request: FillRequest, *, record: bool = False) -> tuple[FimTokens, Request]:
        """The prompt and the engine's request. Of a long context that takes longer than an event loop has."""
        prompt = self._prompt(request)
        return prompt, self._request(request, prompt, record=record)

    def _prompt(self, request: FillRequest) -> FimTokens:
        positions = self.engine.config.max_position_embeddings
        parts = request.parts or PromptParts(path=request.path, prefix=request.prefix, suffix=request.suffix)
        owed = self._healing(request)
        if owed.text:
            parts = replace(parts, prefix=parts.prefix.removesuffix(owed.text))
        room = positions - request.max_tokens - owed.most_tokens
        return self.generation.renderer.render(parts, min(request.max_context, room))

    def _healing(self, request: FillRequest) -> TokenHealing:
        """What the answer owes: nothing, unless it is asked from a word's beginning on."""
        asked = request.whole_word and request.constraint is None
        fits = asked and isinstance(self.tokenizer, Tokenizer)
        if not fits or self.generation.ended is not None:
            return NO_HEALING
        prefix = request.prefix if request.parts is None else request.parts.prefix
        return TokenHealing.before(prefix, self.tokenizer, request.stop)

    def _request(self, request: FillRequest, prompt: FimTokens, *, record: bool = False) -> Request:
        from calomel.engine import Priority, Request, SamplingParams  # imports torch

        generation = self.generation
        longest = self.engine.config.diffusion.max_canvas
        healing = self._healing(request)
        least, constraint = request.min_tokens, request.constraint
        if healing.text:
            # Which tokens spell the half word is the model's choice, so the walk counts those behind it. One more than
            # the answer may have tells an answer that was cut from one that ends there.
            least, constraint = 0, healing.constraint(self.tokenizer, least=least, most=request.max_tokens + 1)
        usual = request.max_tokens + len(self.tokenizer.encode(healing.text))
        lengths = request.canvas_lengths or generation.lengths(longest, usual)
        return Request(
            context=prompt.context,
            max_new_tokens=request.max_tokens + healing.most_tokens,
            min_new_tokens=least,
            canvas_lengths=lengths,
            sampling=request.sampling or generation.sampling or SamplingParams(),
            policy=request.policy or generation.policy,
            max_steps=request.max_steps or (generation.max_steps if request.constraint is None else max(lengths)),
            priority=Priority.INTERACTIVE if request.priority is None else request.priority,
            deadline=None if request.deadline is None else time.monotonic() + request.deadline,
            record_canvases=record,
            reuse=prompt.reuse,
            until=ending(self.generation, request.stop),
            constraint=constraint,
            suffix=prompt.suffix,
        )

    async def _finished(self, request: FillRequest, prompt: FimTokens, result: Result, began: float) -> Fill:
        """The same as `_finish`; what looks at the text around the hole does so in a thread of its own."""
        if request.hole is None:
            return self._finish(request, prompt, result, began)
        return await asyncio.to_thread(self._finish, request, prompt, result, began)

    def _finish(self, request: FillRequest, prompt: FimTokens, result: Result, began: float) -> Fill:
        healing = self._healing(request)
        over = self.generation.ended is not None and self.generation.ended(result.ids)
        # What is there already is no news, however unlikely the model finds it.
        owed = healing.tokens(result.ids, self.tokenizer)
        said = slice(owed, owed + request.max_tokens)
        cut = len(result.ids) > said.stop
        text, stopped = cut_at_stop(healing.rest(self.generation.renderer.read(result.ids[: said.stop])), request.stop)
        result = told(result, said)
        hole, shorter = request.hole, stopped
        if hole is not None:
            ended = stopped or (not cut and (over or result.finish_reason == "stop"))
            fits = hole.fitted(text, truncated=not ended)
            text, shorter = fits, stopped or fits != text
        kept = len(self.tokenizer.encode(text)) if shorter else len(result.ids)
        scores = list(result.log_probs[:kept])
        if result.end_log_prob is not None and not shorter and not cut:
            scores.append(result.end_log_prob)
        return Fill(
            text=text,
            finish_reason="stop" if stopped or over else "length" if cut else result.finish_reason,
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
        """Of a growing answer what will not be taken back: of one that has to fit its hole whole lines."""
        text, hole = self._settled(request, state, healing), request.hole
        return text if hole is None else await asyncio.to_thread(hole.settled, text)

    def _settled(self, request: FillRequest, state: CanvasState, healing: TokenHealing) -> str:
        """The beginning of the answer that is revealed without a gap and cannot be taken back by a stop string."""
        count = next((at for at, known in enumerate(state.revealed) if not known), len(state.ids))
        # A canvas has room for the end token too, so for one token more than the answer may have.
        ids = state.ids[:count]
        ids = ids[: healing.tokens(ids, self.tokenizer) + request.max_tokens]
        if self.tokenizer.end in ids:
            ids = ids[: ids.index(self.tokenizer.end)]
        text, stopped = cut_at_stop(healing.rest(self.generation.renderer.read(ids, whole=False)), request.stop)
        return text if stopped else settled(text, request.stop)


def own_renderer(tokenizer: TextTokenizer) -> ContextRenderer:
    """Of prompts for a checkpoint of our own. Raises TypeError for the tokenizer of another maker's."""
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError("this checkpoint is another maker's: it does not know the prompts of our own")
    return ContextRenderer(tokenizer)


def own_generation(renderer: PromptRenderer) -> GenerationConfig:
    """How a checkpoint of our own is asked to fill a hole."""
    return GenerationConfig(renderer, DEFAULT_POLICY, DEFAULT_MAX_STEPS, (DEFAULT_CANVAS,))


def told(result: Result, said: slice) -> Result:
    """A result of those of its tokens alone that say more than what was owed."""
    if said.start == 0 and len(result.ids) <= said.stop:
        return result
    return replace(
        result,
        ids=result.ids[said],
        log_probs=result.log_probs[said],
        entropies=result.entropies[said],
    )


@dataclass(frozen=True, slots=True)
class _Draft:
    """A recalled text, how many tokens it has, and whether the model's own answer is not needed beside it."""

    found: CopyCandidate
    tokens: int
    sure: bool


class RecallingFiller(Filler):
    """A `Filler` over a checkpoint of our own with a causal mode, and with numbers for what recalling is worth.

    Args:
        engine: any.
        tokenizer: of its checkpoint.
        worth: of a recalled text beside the model's own.
    """

    def __init__(self, engine: AnyEngine, tokenizer: TextTokenizer, worth: CopyScorer) -> None:
        super().__init__(engine, tokenizer)
        self._worth = worth

    def fill(self, request: FillRequest) -> Fill:
        """Fill the hole; blocks. Raises the engine's errors."""
        began = time.monotonic()
        draft = self._draft(request)
        if draft is None:
            return super().fill(request)
        from calomel.engine import DeadlineExceededError  # imports torch, which came with the engine

        prompt, asked, owed = self._asked(request, draft)
        judging, *handles = self.engine.submit_all(asked)
        own = [self._finish(request, prompt, handle.result(), began) for handle in handles]
        try:
            judged = _behind(judging.result(), owed)
        except DeadlineExceededError:
            if own:  # what is known of it by then
                return own[0]
            raise
        return self._better(draft, judged, own[0] if own else None, prompt, began)

    async def afill(self, request: FillRequest) -> Fill:
        """Fill the hole; cancelling the task cancels the engine's requests."""
        began = time.monotonic()
        draft = await asyncio.to_thread(self._draft, request)
        if draft is None:
            return await super().afill(request)
        from calomel.engine import DeadlineExceededError  # imports torch, which came with the engine

        prompt, asked, owed = await asyncio.to_thread(self._asked, request, draft)
        async with RequestGroup(self.engine) as group:
            judging, *handles = group.send(asked)
            own = [await self._finished(request, prompt, await handle.wait(), began) for handle in handles]
            try:
                judged = _behind(await judging.wait(), owed)
            except DeadlineExceededError:
                if own:
                    return own[0]
                raise
        return self._better(draft, judged, own[0] if own else None, prompt, began)

    async def stream(self, request: FillRequest) -> AsyncGenerator[str | Fill]:
        """Yield the text as it gets settled, then the `Fill`; all at once where there are two to choose of."""
        if await asyncio.to_thread(self._draft, request) is None:
            async for piece in super().stream(request):
                yield piece
            return
        fill = await self.afill(request)
        if fill.text:
            yield fill.text
        yield fill

    async def canvases(self, request: FillRequest) -> AsyncGenerator[CanvasText | Fill]:
        """Yield the model's own answer behind every step, then the `Fill`, which may have a recalled text instead."""
        draft = await asyncio.to_thread(self._draft, request)
        async with aclosing(super().canvases(request)) as items:
            async for item in items:
                if isinstance(item, CanvasText) or draft is None:
                    yield item
                    continue
                prompt = await asyncio.to_thread(self._prompt, request)
                asked, owed = await asyncio.to_thread(self.judging, request, draft.found.text, prompt)
                judged = _behind(await self.engine.submit(asked).wait(), owed)
                own = None if draft.sure else item
                yield self._better(draft, judged, own, prompt, time.monotonic() - item.seconds)

    def _draft(self, request: FillRequest) -> _Draft | None:
        """What is recalled for a hole, if the answer may be anything and nobody has asked for one way to make it.

        Of a long context that takes longer than an event loop has, as `_asked` does.
        """
        told = request.policy is not None or _drawn(request.sampling) or request.constraint is not None
        if told or not request.recall:
            return None
        parts = request.parts or PromptParts(path=request.path, prefix=request.prefix, suffix=request.suffix)
        others = [excerpt.text for excerpt in (*parts.related, *parts.far)]
        found = recall(parts.prefix, parts.suffix, others)
        if found is None:
            return None
        text, hole = cut_at_stop(found.text, request.stop)[0], request.hole
        found = replace(found, text=text if hole is None else hole.fitted(text, truncated=False))
        tokens = len(self.tokenizer.encode(found.text))
        if not max(1, request.min_tokens) <= tokens <= request.max_tokens:
            return None
        return _Draft(found, tokens, self._worth.is_sure(found, tokens))

    def _asked(self, request: FillRequest, draft: _Draft) -> tuple[FimTokens, tuple[Request, ...], int]:
        """The prompt, then the model's judgement of the draft, and where that may matter its own answer to the prompt.

        So many leading tokens of what is judged are there already.
        """
        prompt = self._prompt(request)
        judged, owed = self.judging(request, draft.found.text, prompt)
        return prompt, ((judged,) if draft.sure else (judged, self._request(request, prompt))), owed

    def _better(self, draft: _Draft, judged: Result, own: Fill | None, prompt: FimTokens, began: float) -> Fill:
        """The likelier one of both as the answer."""
        probability = self._worth.of_draft(draft.found, judged.log_probs, judged.end_log_prob)
        if own is not None and self._worth.of_own(own.result.log_probs, own.result.end_log_prob) > probability:
            return own
        return Fill(
            text=draft.found.text,
            finish_reason="stop",
            confidence=probability,
            prompt_tokens=judged.cached_tokens + judged.computed_tokens,
            completion_tokens=draft.tokens,
            cached_tokens=judged.cached_tokens,
            steps=0 if own is None else own.steps,
            forwards=judged.forwards if own is None else max(judged.forwards, own.forwards),
            seconds=time.monotonic() - began,
            result=judged,
            trimmed=prompt.cut,
        )


def _behind(result: Result, owed: int) -> Result:
    """What was said of the tokens behind the owed ones."""
    return told(result, slice(owed, len(result.ids)))


def _drawn(sampling: SamplingParams | None) -> bool:
    """Whether tokens are to be drawn, or to differ from those before."""
    return sampling is not None and (sampling.temperature > 0 or sampling.penalised)
