"""A filler that repeats what stands elsewhere where that is likelier right than the model's own answer.

Code that repeats itself is found by searching and need not be denoised: the model reads what is recalled in one
forward, next to the first step of its own answer, and the likelier one of both is the answer. Where so much agrees
around the hole that the model's own answer would hardly be the better one, there is no other forward.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from calomel.prompts.own import FimTokens
from calomel.prompts.parts import PromptParts
from calomel.prompts.tokenizer import TextTokenizer
from calomel.suggest.canvas_text import CanvasText
from calomel.suggest.errands import Errands
from calomel.suggest.fill import Fill, FillRequest
from calomel.suggest.filler import Filler, told
from calomel.suggest.recall import Recalled, recall
from calomel.suggest.recall_worth import RecallWorth
from calomel.suggest.stop import cut_at_stop

if TYPE_CHECKING:
    from calomel.engine import AnyEngine, Request, Result, SamplingParams


@dataclass(frozen=True, slots=True)
class _Draft:
    """A recalled text, how many tokens it has, and whether the model's own answer is not needed beside it."""

    found: Recalled
    tokens: int
    sure: bool


class RecallingFiller(Filler):
    """A `Filler` over a checkpoint of our own with a causal mode, and with numbers for what recalling is worth.

    Args:
        engine: any.
        tokenizer: of its checkpoint.
        worth: of a recalled text beside the model's own.
    """

    def __init__(self, engine: AnyEngine, tokenizer: TextTokenizer, worth: RecallWorth) -> None:
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
        async with Errands(self.engine) as errands:
            judging, *handles = errands.send(asked)
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
