"""Scoring texts: groups of requests for one question, exact likelihoods, and drafts for a hole.

A draft continues something that was written before, and is often longer than what fits. It is cut, at the end of a
word, where the expected number of right characters is highest: the number of characters times the probability that the
answer starts with them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from calomel.engine import DeadlineExceededError, Request, Result
from calomel.infer.completer import Candidate, Draft, cut_at_stop
from calomel.prompts.parts import common_prefix
from calomel.prompts.token_healing import NO_HEALING, TokenHealing
from calomel.prompts.tokenizer import TextTokenizer

if TYPE_CHECKING:
    from calomel.engine import Engine, Handle

_WEIGHT: Final = 0.072
_PRIOR: Final = 1.65
# Only the start of a longer draft is judged: nobody expects more in a hole.
DRAFT_TOKENS: Final = 32
# The model's own text is judged, too, unless one of the two already seems this many times as good as the other.
CLOSE: Final = 4.0


class RequestGroup:
    """The requests of one question. Leaving the context, for whatever reason, cancels the unfinished ones."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sent: list[Handle] = []

    def send(self, requests: Sequence[Request]) -> tuple[Handle, ...]:
        """Submit `requests` together. Raises EngineError if one of them is invalid."""
        handles = self._engine.submit_all(requests) if requests else ()
        self._sent += handles
        return handles

    async def wait(self, handles: Sequence[Handle]) -> list[Result | None]:
        """The results in the order of `handles`; None for one that missed the deadline. Raises EngineError."""
        results: list[Result | None] = []
        for handle in handles:
            try:
                results.append(await handle.wait())
            except DeadlineExceededError:
                results.append(None)
        return results

    async def need(self, request: Request) -> Result:
        """A result without which there is no answer. Raises EngineError, also if it missed the deadline."""
        handle = self._engine.submit(request)
        self._sent.append(handle)
        return await handle.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._sent:
            if not handle.done:
                handle.cancel()


@dataclass(frozen=True, slots=True)
class Judged:
    """A text as token ids, with the log-probabilities of each and of the end token after them."""

    ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    end_log_prob: float

    @property
    def log_prob(self) -> float:
        """Of the whole text and the end token after it, in nats."""
        return sum(self.log_probs) + self.end_log_prob


class LikelihoodScorer:
    """The exact causal likelihoods of texts after one context, each computed once.

    Args:
        group: sends the requests.
        like: template request with the context, the deadline and the priority of all.
    """

    def __init__(self, group: RequestGroup, like: Request) -> None:
        self._group = group
        self._like = like
        self._first = Judged((), (), 0.0)
        self._judgements: dict[tuple[int, ...], Judged] = {}

    async def first(self, ids: tuple[int, ...]) -> tuple[Result, Judged]:
        """Judge a text with which most others start: its context and the text itself stay in the cache for them.

        Raises EngineError, also if it missed the deadline.
        """
        result = await self._group.need(replace(self._like, given=ids, reuse=None))
        self._first = self._keep(ids, result.log_probs, result.end_log_prob)
        return result, self._first

    async def score(self, texts: Iterable[tuple[int, ...]], beside: Sequence[Request] = ()) -> list[Result | None]:
        """Judge those of `texts` that are not judged yet, and run the requests `beside` in parallel.

        A text that misses the deadline stays unknown. Returns the results of `beside`, None for one that missed it.
        Raises EngineError.
        """
        new = [ids for ids in dict.fromkeys(texts) if ids not in self._judgements]
        common = [common_prefix(self._first.ids, ids) for ids in new]
        requests = [
            replace(self._like, context=(*self._like.context, *ids[:count]), given=ids[count:])
            for ids, count in zip(new, common, strict=True)
        ]
        results = await self._group.wait(self._group.send([*beside, *requests]))
        for ids, count, result in zip(new, common, results[len(beside) :], strict=True):
            if result is not None:
                self._keep(ids, (*self._first.log_probs[:count], *result.log_probs), result.end_log_prob)
        return results[: len(beside)]

    def judged(self, ids: tuple[int, ...]) -> Judged | None:
        """The judgement of a text; None if it has none."""
        return self._judgements.get(ids)

    def _keep(self, ids: tuple[int, ...], log_probs: tuple[float, ...], end: float | None) -> Judged:
        self._judgements[ids] = value = Judged(ids, log_probs, 0.0 if end is None else end)
        return value


@dataclass(frozen=True, slots=True)
class JudgedDrafts:
    """A filled hole and its drafts.

    Attributes:
        filled: the model's own answer.
        drafts: those of which anything is worth keeping, cut to that, with its exact likelihood.
        log_prob: exact causal log-probability of the model's own text and its end; None if it was not a close call:
            computing it costs a forward pass.
        keep_log_prob: the same of an empty text.
    """

    filled: Result
    drafts: tuple[Candidate, ...]
    log_prob: float | None = None
    keep_log_prob: float | None = None


async def judge_drafts(
    group: RequestGroup,
    filling: Request,
    drafts: Sequence[Draft],
    stop: Sequence[str],
    tokenizer: TextTokenizer,
    healing: TokenHealing = NO_HEALING,
    *,
    bare: bool = True,
) -> JudgedDrafts:
    """Denoise `filling` and judge `drafts` in parallel; if it is a close call, judge the model's own text, too.

    Args:
        group: sends the requests.
        filling: the request for the model's own answer.
        drafts: likeliest first.
        stop: drafts end before the first of these.
        tokenizer: of the model.
        healing: the half word with which the model's own answer must start; drafts follow it, and are judged from its
            start on, too.
        bare: the end token directly follows an answer. If not (a fenced block), no end is judged.

    Raises:
        EngineError: the engine refused or failed, or the deadline passed before anything was known.
    """
    likely: list[tuple[Draft, tuple[int, ...], int]] = []
    for draft in drafts:
        text, _ = cut_at_stop(draft.text, stop)
        ids, owed = healing.given(text, tokenizer)
        if text:
            ids = ids[: owed + DRAFT_TOKENS]
            likely.append((replace(draft, text=healing.rest(tokenizer.decode(ids))), ids, owed))
    scorer = LikelihoodScorer(group, replace(filling, constraint=None, until=None))
    (filled,) = await scorer.score((ids for _, ids, _ in likely), beside=[filling])
    if filled is None:
        filled = await group.need(filling)  # raises what was wrong
    cut = (
        cut_draft(draft, judged if bare else replace(judged, end_log_prob=0.0), tokenizer, healing, owed)
        for draft, ids, owed in likely
        if (judged := scorer.judged(ids)) is not None
    )
    kept = tuple(draft if bare else replace(draft, end_log_prob=None) for draft in cut if draft.text.strip())
    owed = healing.tokens(filled.ids, tokenizer)
    own = expected_characters(healing.rest(tokenizer.decode(filled.ids)), filled.log_probs[owed:])
    rival = max(map(expected_of_draft, kept), default=0.0)
    if not bare or not rival / CLOSE <= own <= rival * CLOSE:
        return JudgedDrafts(filled, kept)
    nothing, _ = healing.given("", tokenizer)
    await scorer.score([filled.ids, nothing])
    return JudgedDrafts(filled, kept, _behind(scorer, filled.ids, owed), _behind(scorer, nothing, len(nothing)))


def cut_draft(
    draft: Draft, judged: Judged, tokenizer: TextTokenizer, healing: TokenHealing = NO_HEALING, owed: int = 0
) -> Candidate:
    """The start of a draft that is expected to save most characters; its tokens are those after the first `owed`.

    If it was cut, it has no likelihood of an end.
    """
    _, words, _ = tokenizer.encode_with_words(healing.text + draft.text)
    ids = judged.ids
    ends = [count for count in range(owed + 1, len(ids)) if count >= len(words) or words[count] != words[count - 1]]
    whole = _candidate(draft, draft.text, judged.log_probs[owed:], judged.end_log_prob)
    beginnings = (
        _candidate(draft, healing.rest(tokenizer.decode(ids[:count])), judged.log_probs[owed:count]) for count in ends
    )
    return max((whole, *beginnings), key=expected_of_draft)


def belief(log_prob: float) -> float:
    """The probability that a draft is right, from its exact joint log-probability in nats."""
    return 1.0 / (1.0 + math.exp(-max(-700.0, _WEIGHT * log_prob + _PRIOR)))


def expected_of_draft(draft: Candidate) -> float:
    """Characters times the belief that the answer starts with them."""
    return len(draft.text) * belief(draft.log_prob or 0.0)


def expected_characters(text: str, log_probs: Sequence[float]) -> float:
    """Characters times joint probability."""
    return len(text) * math.exp(sum(log_probs))


def _candidate(draft: Draft, text: str, log_probs: tuple[float, ...], end: float | None = None) -> Candidate:
    log_prob = sum(log_probs) + (end or 0.0)
    return Candidate(text, log_probs=log_probs, end_log_prob=end, maker=draft.maker, log_prob=log_prob)


def _behind(scorer: LikelihoodScorer, ids: tuple[int, ...], owed: int) -> float | None:
    judged = scorer.judged(ids)
    return None if judged is None else sum(judged.log_probs[owed:]) + judged.end_log_prob
