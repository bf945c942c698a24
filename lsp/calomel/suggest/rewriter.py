"""What a region of text could become, and how much likelier each text is than leaving it as it is.

Makers propose: a canvas; the current text with what the model doubts put right, by canvases seeded with the rest of it
and by the causal mode from the first doubt on; and drafts that come with the question. The causal mode of the same
model judges all of them. One question is four rounds at the engine:

1. The current text is judged: this encodes the context, and says which of its tokens the model doubts.
2. Drafts are judged, the canvas and the seeded canvases are denoised, side by side.
3. The new texts that came of the canvases are judged. Beside both rounds the causal mode writes; of the current text,
   what it agrees with costs no forward.
4. Candidates are sorted by how much likelier they are than the current text.

Where the model is sure of the current text, or doubts none of its tokens, or nobody wants its own texts, drafts alone
are judged.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from calomel.prompts.parts import EditRegion, Hunk
from calomel.prompts.renderer import PromptRenderer
from calomel.prompts.tokenizer import TextTokenizer
from calomel.suggest.completer import (
    CANVAS,
    SEEDED,
    VERIFIED,
    Candidate,
    CompleteAnswer,
    CompleteRequest,
    GenerationConfig,
    Patience,
    Timings,
    ending,
)
from calomel.suggest.scoring import Judged, LikelihoodScorer, RequestGroup

if TYPE_CHECKING:
    from calomel.engine import AnyEngine, Request, Result


# A token that the model thinks less likely than this is masked again.
DOUBT: Final = math.log(0.5)
# How many tokens longer a replacement is than what it replaces, the likelier ones first: names of equal length, then an
# argument more, then less.
LENGTHS: Final = (0, 2, 1, -1, 3)


@dataclass(frozen=True, slots=True)
class Seed:
    """An answer of which most is known.

    Attributes:
        length: tokens of the answer, its end not counted.
        frozen: position in the answer to the token id that it has; what is not here is to be denoised.
    """

    length: int
    frozen: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens `start:stop` of a text, all doubted; `log_prob` is that of the least likely one.

    A span that ends behind the last token doubts the end of the text too.
    """

    start: int
    stop: int
    log_prob: float


def doubted(log_probs: Sequence[float], words: Sequence[int], below: float = DOUBT) -> tuple[Span, ...]:
    """What to mask again, the most doubted first.

    Args:
        log_probs: of every token and, last, of the end behind them, each from the tokens before it.
        words: for every token what tells its word from others (such as where that begins): a word is masked as a whole.
        below: the least log-probability that counts as belief.
    """
    size = len(words)
    spans: list[Span] = []
    for place, log_prob in enumerate(log_probs):
        if log_prob >= below:
            continue
        start, stop, least = place, place + 1, log_prob
        while 0 < start < size and words[start - 1] == words[start]:
            start -= 1
        while stop < size and words[stop] == words[stop - 1]:
            stop += 1
        if spans and start <= spans[-1].stop:
            before = spans.pop()
            start, stop, least = before.start, max(stop, before.stop), min(log_prob, before.log_prob)
        spans.append(Span(start, stop, least))
    return tuple(sorted(spans, key=lambda span: span.log_prob))


def seeds(
    ids: Sequence[int], spans: Sequence[Span], lengths: Sequence[int], *, most: int, longest: int
) -> tuple[Seed, ...]:
    """At most `most` canvases for the text `ids`, the likeliest first, none longer than `longest` with its end.

    Each of `lengths` is tried on all `spans` at once, and, where there are several, on the first alone.
    """
    found: dict[tuple[int, tuple[tuple[int, int], ...]], Seed] = {}
    groups = [spans, spans[:1]] if len(spans) > 1 else [spans]
    for more in dict.fromkeys(lengths):
        for group in groups:
            seed = _seed(ids, sorted(group, key=lambda span: span.start), more)
            if seed is not None and seed.length < longest:
                found.setdefault((seed.length, tuple(seed.frozen.items())), seed)
    return tuple(found.values())[:most]


def _seed(ids: Sequence[int], spans: Sequence[Span], more: int) -> Seed | None:
    """`ids` with each span replaced by masks, `more` than it has tokens; None where nothing would be masked."""
    frozen: dict[int, int] = {}
    at = shift = masks = 0
    for span in spans:
        frozen.update({place + shift: ids[place] for place in range(at, span.start)})
        at = min(span.stop, len(ids))
        width = max(0, at - span.start + more)
        shift += width - (at - span.start)
        masks += width
    frozen.update({place + shift: ids[place] for place in range(at, len(ids))})
    length = len(ids) + shift
    # Without a mask there is still something to decide where whole words go.
    return Seed(length, frozen) if spans and (masks or len(frozen) < len(ids)) and length else None


# nano was trained on canvases of so many tokens for edits.
CANVAS_TOKENS: Final = 48
SEEDS: Final = 2
POLICY: Final = "threshold:0.5"
MAX_STEPS: Final = 2
# Forwards of the causal mode: an edit that needs more was no small one.
PATIENCE: Final = 8
# Probabilities of all texts add up to 1: where the current one has so much, no other is worth offering.
SURE: Final = math.log(0.7)


@dataclass(frozen=True, slots=True)
class Proposed:
    """A text that a maker proposes: as token ids, and what the engine said when it made it."""

    maker: str
    text: str
    ids: tuple[int, ...]
    result: Result | None = None


class Rewriter:
    """Answers questions of kind `edit` with one engine and its tokenizer. Safe to share between tasks.

    Without a causal mode (`DiffusionConfig.verifiable`) there is a canvas alone, and nothing is judged: drafts come
    with no likelihood, and `CompleteAnswer.judged` says so.

    Args:
        engine: of a checkpoint that was trained for edits.
        tokenizer: of that checkpoint.
        generation: how it is asked; a renderer stands for a checkpoint of our own.
        seeded: seeded canvases of one question at most.

    Attributes:
        generation: how it is asked.
    """

    def __init__(
        self,
        engine: AnyEngine,
        tokenizer: TextTokenizer,
        generation: GenerationConfig | PromptRenderer,
        *,
        seeded: int = SEEDS,
    ) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self.generation = (
            generation
            if isinstance(generation, GenerationConfig)
            else GenerationConfig(generation, POLICY, MAX_STEPS, (CANVAS_TOKENS,))
        )
        self._seeded = seeded

    def at(self, engine: AnyEngine) -> Rewriter:
        """The same at another engine of the same checkpoint."""
        return Rewriter(engine, self._tokenizer, self.generation, seeded=self._seeded)

    async def rewrite(self, request: CompleteRequest) -> CompleteAnswer:
        """Every maker's texts, judged, best first; cancelling the task cancels all that the engine does for it.

        A text that two makers propose is there twice. Texts that were not judged in time come last.

        Raises:
            EngineError: the engine refused or failed, or the deadline passed before the current text was judged.
        """
        began = time.monotonic()
        region = request.parts.region or EditRegion("", 0)
        drafts, base = await asyncio.to_thread(self._base, request, began)
        async with RequestGroup(self._engine) as group:
            if not self._engine.config.diffusion.verifiable:
                made = await group.need(self._canvas(base))
                answer = _answer([self._proposed(CANVAS, made), *drafts], LikelihoodScorer(base), None, made, began)
                return replace(answer, judged=False)
            scorer = LikelihoodScorer(base)
            opening = await group.need(scorer.opening(self._encode(region.text)))
            keep = scorer.open(opening)
            spans = self._doubted(region.text, keep) if request.own and keep.log_prob < SURE else ()
            canvases = self._canvases(base, request.parts.edits, keep, spans)
            written = _written(base, keep, spans)
            new = scorer.unknown(draft.ids for draft in drafts)
            sent = group.send([*map(scorer.request, new), *(canvas for _, canvas in canvases), *written])
            results = await group.wait(sent[: len(new) + len(canvases)])
            scorer.read(new, results[: len(new)])
            found = zip(canvases, results[len(new) :], strict=True)
            proposals = [self._proposed(maker, result) for (maker, _), result in found if result is not None]
            proposals = list({(made.maker, made.text): made for made in reversed(proposals)}.values())[::-1]
            await self._judge(proposals, scorer, group)
            for asked, result in zip(written, await group.wait(sent[len(sent) - len(written) :]), strict=True):
                proposals += self._verified(keep.ids[: len(keep.ids) - len(asked.guess)], result, scorer)
            await self._judge(proposals, scorer, group)
            return _answer([*proposals, *drafts], scorer, keep, opening, began)

    async def _judge(self, proposals: Sequence[Proposed], scorer: LikelihoodScorer, group: RequestGroup) -> None:
        new = scorer.unknown(proposed.ids for proposed in proposals)
        scorer.read(new, await group.run([*map(scorer.request, new)]))

    def _verified(self, beginning: tuple[int, ...], result: Result | None, scorer: LikelihoodScorer) -> list[Proposed]:
        """What the causal mode wrote behind a beginning of the current text, if it came to an end."""
        if result is None or result.end_log_prob is None:
            return []
        ids = (*beginning, *result.ids)
        proposed = self._proposed(VERIFIED, replace(result, ids=ids))
        if proposed.ids == ids:
            scorer.take(ids, result)
        return [proposed]

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text))

    def _base(self, request: CompleteRequest, began: float) -> tuple[list[Proposed], Request]:
        """The drafts, and what all requests of one question have in common; takes longer than an event loop has."""
        from calomel.engine import Priority, Request, SamplingParams  # imports torch, which came with the engine

        drafts = [Proposed(draft.maker, draft.text, self._encode(draft.text)) for draft in request.drafts]
        region = request.parts.region
        texts = (self._encode("" if region is None else region.text), *(draft.ids for draft in drafts))
        room = max(request.max_tokens, *(len(ids) + 1 for ids in texts))
        positions = self._engine.config.max_position_embeddings
        prompt = self.generation.renderer.render(request.parts, min(request.max_context, positions - room))
        return drafts, Request(
            context=prompt.context,
            max_new_tokens=request.max_tokens,
            sampling=self.generation.sampling or SamplingParams(),
            policy=self.generation.policy,
            max_steps=self.generation.max_steps,
            until=ending(self.generation, ()),
            suffix=prompt.suffix,
            deadline=None if request.deadline is None else began + request.deadline,
            priority=Priority.BACKGROUND if request.background else Priority.INTERACTIVE,
            reuse=prompt.reuse,
        )

    def _doubted(self, text: str, keep: Judged) -> tuple[Span, ...]:
        _, words, _ = self._tokenizer.encode_with_words(text)
        return doubted((*keep.log_probs, keep.end_log_prob), words)

    def _canvases(
        self, base: Request, edits: Sequence[Hunk], keep: Judged, spans: Sequence[Span]
    ) -> list[tuple[str, Request]]:
        """The canvas, and the current text with what the model doubts masked again; none without a doubt."""
        if not spans:
            return []
        longest = min(max(self.generation.canvases), self._engine.config.diffusion.max_canvas)
        lengths = (*self._grown(edits), *LENGTHS)
        found = seeds(keep.ids, spans, lengths, most=self._seeded, longest=longest)
        return [(CANVAS, self._canvas(base)), *((SEEDED, _seeded(base, seed)) for seed in found)]

    def _canvas(self, base: Request) -> Request:
        longest = self._engine.config.diffusion.max_canvas
        return replace(base, canvas_lengths=self.generation.lengths(longest, base.max_new_tokens))

    def _grown(self, edits: Sequence[Hunk]) -> tuple[int, ...]:
        """By how many tokens the last edit made its lines longer: the next one may do the same."""
        return tuple(len(self._encode(edit.after)) - len(self._encode(edit.before)) for edit in edits[-1:])

    def _proposed(self, maker: str, result: Result) -> Proposed:
        """A canvas' text, encoded anew: the same text may have come as other tokens."""
        text = self.generation.renderer.read(result.ids)
        return Proposed(maker, text, self._encode(text), result)


def _written(base: Request, keep: Judged, spans: Sequence[Span]) -> list[Request]:
    """The causal mode's own text, from the first doubt on: what it finds likelier than all else it would write too."""
    first = min((span.start for span in spans), default=base.max_new_tokens)
    if first >= base.max_new_tokens:
        return []
    return [
        replace(
            base,
            context=(*base.context, *keep.ids[:first]),
            max_new_tokens=base.max_new_tokens - first,
            policy="left_to_right",
            guess=keep.ids[first:],
            until=Patience(PATIENCE),
        )
    ]


def _seeded(base: Request, seed: Seed) -> Request:
    return replace(base, max_new_tokens=seed.length, canvas_lengths=(seed.length + 1,), frozen=seed.frozen)


def _answer(
    proposals: Sequence[Proposed], scorer: LikelihoodScorer, keep: Judged | None, first: Result, began: float
) -> CompleteAnswer:
    candidates = [_candidate(proposed, scorer.judged(proposed.ids), keep) for proposed in proposals]
    candidates.sort(
        key=lambda candidate: -math.inf if candidate.log_ratio is None else candidate.log_ratio, reverse=True
    )
    total = time.monotonic() - began
    return CompleteAnswer(
        tuple(candidates),
        context_tokens=first.cached_tokens + first.computed_tokens,
        cached_tokens=first.cached_tokens,
        timings=Timings(total=total),
    )


def _candidate(proposed: Proposed, judged: Judged | None, keep: Judged | None) -> Candidate:
    result = proposed.result
    candidate = Candidate(
        text=proposed.text,
        maker=proposed.maker,
        log_prob=None if judged is None else judged.log_prob,
        keep_log_prob=None if keep is None else keep.log_prob,
    )
    if result is None:
        known = judged or Judged((), (), 0.0)
        return replace(
            candidate, log_probs=known.log_probs, end_log_prob=None if judged is None else judged.end_log_prob
        )
    return replace(
        candidate,
        log_probs=result.log_probs,
        entropies=result.entropies,
        end_log_prob=result.end_log_prob,
        # The length of a seeded canvas is a choice, no bound that cut it.
        finish_reason="stop" if proposed.maker == SEEDED and result.finish_reason == "length" else result.finish_reason,
        steps=result.steps,
    )
