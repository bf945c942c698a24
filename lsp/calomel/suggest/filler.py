"""From a hole in a text to its filling: the one way that command line, HTTP door and benches share."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self

from calomel.prompts.grammar import GrammarCompiler
from calomel.prompts.own import ContextRenderer, FimTokens
from calomel.prompts.parts import PromptParts
from calomel.prompts.token_healing import NO_HEALING, TokenHealing, pieces_of
from calomel.prompts.tokenizer import TextTokenizer, Tokenizer
from calomel.suggest.canvas_text import CanvasText, canvas_text
from calomel.suggest.completer import CompleteAnswer, CompleteRequest, Draft
from calomel.suggest.drafted import Drafted, judge_drafts
from calomel.suggest.ending import Ending, Reading, ending, plain_ending
from calomel.suggest.errands import Errands
from calomel.suggest.fill import Fill, FillRequest
from calomel.suggest.manner import Manner
from calomel.suggest.rewriter import Rewriter
from calomel.suggest.stop import cut_at_stop, settled

if TYPE_CHECKING:
    from calomel.engine import AnyEngine, CanvasState, Request, Result
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
        manner: how it is asked to fill a hole; None for a checkpoint of our own.
        edits: how it is asked to rewrite a region; None for a checkpoint of our own.

    Attributes:
        manner: how it fills a hole.
        whole: how a checkpoint of other makers writes a whole answer; None for one of our own.
    """

    def __init__(
        self, engine: AnyEngine, tokenizer: TextTokenizer, manner: Manner | None = None, edits: Manner | None = None
    ) -> None:
        self.engine = engine
        self.whole = edits
        self.tokenizer = tokenizer
        self.grammars = GrammarCompiler(tokenizer)
        self.manner = manner or own_manner(own_renderer(tokenizer))
        self._rewriter = Rewriter(engine, tokenizer, self.manner.renderer if edits is None else edits)
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
        async with Errands(self.engine) as errands:
            healing = self._healing(request)
            drafted = await judge_drafts(errands, wanted, drafts, request.stop, self.tokenizer, healing)
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
                    shown = healing.rest(self.manner.renderer.shown(text.text))
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

    def until(self, reading: Reading, stop: Sequence[str]) -> Ending | None:
        """When an answer is over before its end token: asked as it grows, so that no more is made."""
        if reading == "plain":
            return plain_ending(self.tokenizer, stop)
        return ending(reading, self.manner if reading == "hole" else self._rewriter.manner, stop)

    def in_session(self, session: str, client: str = "") -> Self:
        """The same, its requests in the name of a session and of who asks; closing it does nothing."""
        from calomel.engine.handle import SessionEngine  # imports torch, which came with the engine

        found = copy(self)
        found.engine = SessionEngine(self.engine, session, client)
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
        return self.manner.renderer.render(parts, min(request.max_context, room))

    def _healing(self, request: FillRequest) -> TokenHealing:
        """What the answer owes: nothing, unless it is asked from a word's beginning on."""
        asked = request.whole_word and request.constraint is None
        fits = asked and isinstance(self.tokenizer, Tokenizer)
        if not fits or self.manner.ended is not None:
            return NO_HEALING
        prefix = request.prefix if request.parts is None else request.parts.prefix
        return TokenHealing.before(prefix, self.tokenizer, request.stop)

    def _request(self, request: FillRequest, prompt: FimTokens, *, record: bool = False) -> Request:
        from calomel.engine import Priority, Request, SamplingParams  # imports torch

        manner = self.manner
        longest = self.engine.config.diffusion.max_canvas
        healing = self._healing(request)
        least, constraint = request.min_tokens, request.constraint
        if healing.text:
            # Which tokens spell the half word is the model's choice, so the walk counts those behind it. One more than
            # the answer may have tells an answer that was cut from one that ends there.
            least, constraint = 0, healing.constraint(self.tokenizer, least=least, most=request.max_tokens + 1)
        usual = request.max_tokens + len(self.tokenizer.encode(healing.text))
        lengths = request.canvas_lengths or manner.lengths(longest, usual)
        return Request(
            context=prompt.context,
            max_new_tokens=request.max_tokens + healing.most_tokens,
            min_new_tokens=least,
            canvas_lengths=lengths,
            sampling=request.sampling or manner.sampling or SamplingParams(),
            policy=request.policy or manner.policy,
            max_steps=request.max_steps or (manner.max_steps if request.constraint is None else max(lengths)),
            priority=Priority.INTERACTIVE if request.priority is None else request.priority,
            deadline=None if request.deadline is None else time.monotonic() + request.deadline,
            record_canvases=record,
            reuse=prompt.reuse,
            until=self.until("hole", request.stop),
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
        over = self.manner.ended is not None and self.manner.ended(result.ids)
        # What is there already is no news, however unlikely the model finds it.
        owed = healing.tokens(result.ids, self.tokenizer)
        said = slice(owed, owed + request.max_tokens)
        cut = len(result.ids) > said.stop
        text, stopped = cut_at_stop(healing.rest(self.manner.renderer.read(result.ids[: said.stop])), request.stop)
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
        text, stopped = cut_at_stop(healing.rest(self.manner.renderer.read(ids, whole=False)), request.stop)
        return text if stopped else settled(text, request.stop)


def own_renderer(tokenizer: TextTokenizer) -> ContextRenderer:
    """Of prompts for a checkpoint of our own. Raises TypeError for the tokenizer of another maker's."""
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError("this checkpoint is another maker's: it does not know the prompts of our own")
    return ContextRenderer(tokenizer)


def own_manner(renderer: PromptRenderer) -> Manner:
    """How a checkpoint of our own is asked to fill a hole."""
    return Manner(renderer, DEFAULT_POLICY, DEFAULT_MAX_STEPS, (DEFAULT_CANVAS,))


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
