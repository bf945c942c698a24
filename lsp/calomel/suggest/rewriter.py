"""What a region of text could become, and how much likelier each text is than leaving it as it is.

A canvas proposes, and so do the drafts that come with the question; the causal mode of the same model judges all of
them. One question is three rounds at the engine:

1. The current text is judged: this encodes the context, and says whether the model doubts any of its tokens.
2. Drafts are judged and the canvas is denoised, side by side. Where the model doubts nothing, does not see the current
   text (its own would be a guess, and always likelier), or nobody wants its own text, drafts alone are judged.
3. What came of the canvas is judged.

Candidates are sorted by how much likelier they are than the current text. Without a causal mode
(`DiffusionConfig.verifiable`) there is a canvas alone, and nothing is judged: drafts come with no likelihood, and
`CompleteAnswer.judged` says so.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from calomel.prompts.own import FimTokens
from calomel.prompts.parts import EditRegion
from calomel.prompts.tokenizer import TextTokenizer
from calomel.suggest.completer import (
    CANVAS,
    Candidate,
    CompleteAnswer,
    CompleteRequest,
    GenerationConfig,
    Timings,
    ending,
)
from calomel.suggest.scoring import LikelihoodScorer, RequestGroup

if TYPE_CHECKING:
    from calomel.engine import Engine, Request, Result

# A canvas is denoised where the model thinks some token of the current text less likely than this.
DOUBT: Final = math.log(0.5)
# Tokens of what a model may write behind a text: the line end and the fence that close a block, and the end.
_AROUND: Final = 8

# A text as token ids, and as a candidate of which nothing is known but what the engine said when it made it.
_Proposed = tuple[tuple[int, ...], Candidate]


class Rewriter:
    """Answers questions of kind `edit` with the tokenizer of one checkpoint. Safe to share between tasks.

    Args:
        tokenizer: of a checkpoint that was trained for edits.
        generation: how it is asked.
    """

    def __init__(self, tokenizer: TextTokenizer, generation: GenerationConfig) -> None:
        self._tokenizer = tokenizer
        self.generation = generation

    async def rewrite(self, engine: Engine, request: CompleteRequest, client: str = "") -> CompleteAnswer:
        """Every maker's texts, judged, best first; cancelling the task cancels all that the engine does for it.

        A text that two makers propose is there twice. Texts that were not judged in time come last.

        Args:
            engine: of the checkpoint.
            request: of kind `edit`.
            client: who asks, see `Request.client`.

        Raises:
            EngineError: the engine refused or failed, or the deadline passed before the current text was judged.
        """
        began = time.monotonic()
        current, drafts, base, prompt = await asyncio.to_thread(self._base, engine, request, client, began)
        longest = engine.config.diffusion.max_canvas
        lengths = self.generation.lengths(longest, base.max_new_tokens)
        guess = current if prompt.reply is None else tuple(self._tokenizer.encode(prompt.reply.guess))
        canvas = replace(base, canvas_lengths=lengths, guess=guess)
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
        """The current text, the drafts, what all requests of one question have in common, and their prompt.

        Takes longer than an event loop has.
        """
        from calomel.engine import Request, SamplingParams  # imports torch, which came with the engine

        region = request.parts.region or EditRegion("", 0)
        texts = (region.text, *(draft.text for draft in request.drafts))
        room = max(request.max_tokens, *(len(self._tokenizer.encode(text)) + _AROUND for text in texts))
        positions = engine.config.max_position_embeddings
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
        """A canvas' text, encoded anew: the same text may have come as other tokens.

        In a format of its own, where an answer says more than the text, its tokens are what is judged.
        """
        text = self.generation.renderer.read(result.ids)
        if prompt.reply is None:
            return self._encode(text, prompt), Candidate.of(result, text)
        current = (request.parts.region or EditRegion("", 0)).text
        found = prompt.reply.read(text)
        if found is None or found == current:
            return self._encode(current, prompt), Candidate.of(result, current)
        return tuple(result.ids), Candidate.of(result, found)


def _judged(proposals: Iterable[_Proposed], scorer: LikelihoodScorer, keep: float) -> list[Candidate]:
    """Of a draft the tokens' likelihoods, too: nothing else is known of them."""
    candidates = []
    for ids, candidate in proposals:
        judged = scorer.judged(ids)
        found = replace(candidate, log_prob=None if judged is None else judged.log_prob, keep_log_prob=keep)
        if judged is not None and candidate.maker != CANVAS:
            found = replace(found, log_probs=judged.log_probs, end_log_prob=judged.end_log_prob)
        candidates.append(found)
    return sorted(candidates, key=lambda each: -math.inf if each.log_ratio is None else each.log_ratio, reverse=True)


def _answer(candidates: Sequence[Candidate], first: Result, began: float, *, judged: bool = True) -> CompleteAnswer:
    return CompleteAnswer(
        tuple(candidates),
        context_tokens=first.cached_tokens + first.computed_tokens,
        cached_tokens=first.cached_tokens,
        timings=Timings(total=time.monotonic() - began),
        judged=judged,
    )
