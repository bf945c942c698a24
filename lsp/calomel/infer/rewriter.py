"""What a region of text could become, and how much likelier each text is than leaving it unchanged.

A canvas proposes a text, and so do the drafts in the request; the causal mode of the same model judges all of them. One
request takes three rounds on the engine:

1. The current text is judged: this encodes the context, and shows whether the model doubts any of its tokens.
2. Drafts are judged and the canvas is denoised, in parallel. If the model doubts nothing, does not see the current text
   (its own would be a guess, and always likelier), or its own text is not wanted, only drafts are judged.
3. The result of the canvas is judged.

Candidates are sorted by how much likelier they are than the current text. Without a causal mode
(`DiffusionConfig.verifiable`) there is only a canvas, and nothing is judged: drafts have no likelihood, and
`CompleteAnswer.judged` is false.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from calomel.engine import Request, Result, SamplingParams
from calomel.infer.completer import (
    CANVAS,
    Candidate,
    CompleteAnswer,
    CompleteRequest,
    EngineTimings,
    GenerationConfig,
    ending,
)
from calomel.infer.scoring import LikelihoodScorer, RequestGroup
from calomel.prompts.own import FimTokens
from calomel.prompts.parts import EditRegion
from calomel.prompts.tokenizer import TextTokenizer

if TYPE_CHECKING:
    from calomel.engine import Engine

# A canvas is denoised if the model finds any token of the current text less likely than this.
DOUBT: Final = math.log(0.5)
# Tokens that a model may write after a text: the line end and the fence that close a block, and the end token.
_AROUND: Final = 8

# A text as token ids, and as a candidate that is not judged yet.
_Proposed = tuple[tuple[int, ...], Candidate]


class Rewriter:
    """Answers questions of kind `edit` with the tokenizer of one checkpoint. Safe to share between tasks.

    Args:
        tokenizer: of a checkpoint that was trained for edits.
        generation: how answers are generated.
    """

    def __init__(self, tokenizer: TextTokenizer, generation: GenerationConfig) -> None:
        self._tokenizer = tokenizer
        self.generation = generation

    async def rewrite(self, engine: Engine, request: CompleteRequest, client: str = "") -> CompleteAnswer:
        """The texts of all makers, judged, best first; cancelling the task cancels its requests to the engine.

        A text that two makers propose is listed twice. Texts that were not judged in time come last.

        Args:
            engine: of the checkpoint.
            request: of kind `edit`.
            client: see `Request.client`.

        Raises:
            EngineError: the engine refused or failed, or the deadline passed before the current text was judged.
        """
        began = time.monotonic()
        current, drafts, base, prompt = await asyncio.to_thread(self._base, engine, request, client, began)
        longest = engine.config.diffusion.max_canvas
        length = self.generation.length(longest, base.max_new_tokens)
        guess = current if prompt.reply is None else tuple(self._tokenizer.encode(prompt.reply.guess))
        canvas = replace(base, canvas_length=length, guess=guess)
        async with RequestGroup(engine) as group:
            if not engine.config.diffusion.verifiable:
                made = await group.need(canvas)
                candidates = [candidate for _, candidate in (self._proposed(made, prompt, request), *drafts)]
                return _answer(candidates, made, began, judged=False)
            scorer = LikelihoodScorer(group, base)
            first, keep = await scorer.first(current)
            wanted = request.own and not self.generation.blind
            doubts = wanted and min(*keep.log_probs, keep.end_log_prob) < DOUBT
            results = await scorer.score((ids for ids, _ in drafts), beside=[canvas] if doubts else [])
            own = [self._proposed(result, prompt, request) for result in results if result is not None]
            await scorer.score(ids for ids, _ in own)
            return _answer(_judged((*own, *drafts), scorer, keep.log_prob), first, began)

    def _base(
        self, engine: Engine, request: CompleteRequest, client: str, began: float
    ) -> tuple[tuple[int, ...], list[_Proposed], Request, FimTokens]:
        """The current text, the drafts, what all requests of one question share, and their prompt.

        Too slow for the event loop.
        """
        region = request.parts.region or EditRegion("", 0)
        texts = (region.text, *(draft.text for draft in request.drafts))
        room = max(request.max_tokens, *(len(self._tokenizer.encode(text)) + _AROUND for text in texts))
        positions = engine.positions
        generation = self.generation
        prompt = generation.renderer.render(request.parts, min(request.max_context, positions - room))
        current = self._encode(region.text, prompt)
        drafts = [
            (self._encode(draft.text, prompt), Candidate(draft.text, maker=draft.maker)) for draft in request.drafts
        ]
        return (
            current,
            drafts,
            Request(
                context=prompt.context,
                max_new_tokens=request.max_tokens,
                sampling=generation.sampling or SamplingParams(),
                policy=generation.policy,
                max_steps=generation.max_steps,
                until=ending(generation, ()),
                suffix=prompt.suffix,
                deadline=None if request.deadline is None else began + request.deadline,
                reuse=prompt.reuse,
                client=client,
            ),
            prompt,
        )

    def _encode(self, text: str, prompt: FimTokens) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(prompt.answered(text)))

    def _proposed(self, result: Result, prompt: FimTokens, request: CompleteRequest) -> _Proposed:
        """A canvas' text, encoded again: the model may have written it as other tokens.

        In formats whose answers contain more than the text, the answer's own tokens are judged.
        """
        text = self.generation.renderer.read(result.ids)
        if prompt.reply is None:
            return self._encode(text, prompt), Candidate.of(result, text)
        current = (request.parts.region or EditRegion("", 0)).text
        reply = prompt.reply.read(text)
        if reply is None or reply == current:
            return self._encode(current, prompt), Candidate.of(result, current)
        return tuple(result.ids), Candidate.of(result, reply)


def _judged(proposals: Iterable[_Proposed], scorer: LikelihoodScorer, keep: float) -> list[Candidate]:
    """Add the likelihoods; for drafts also those of the tokens, their only signals."""
    candidates = []
    for ids, candidate in proposals:
        judged = scorer.judged(ids)
        result = replace(candidate, log_prob=None if judged is None else judged.log_prob, keep_log_prob=keep)
        if judged is not None and candidate.maker != CANVAS:
            result = replace(result, log_probs=judged.log_probs, end_log_prob=judged.end_log_prob)
        candidates.append(result)
    return sorted(candidates, key=lambda each: -math.inf if each.log_ratio is None else each.log_ratio, reverse=True)


def _answer(candidates: Sequence[Candidate], first: Result, began: float, *, judged: bool = True) -> CompleteAnswer:
    return CompleteAnswer(
        tuple(candidates),
        context_tokens=first.cached_tokens + first.computed_tokens,
        cached_tokens=first.cached_tokens,
        timings=EngineTimings(total=time.monotonic() - began),
        judged=judged,
    )
