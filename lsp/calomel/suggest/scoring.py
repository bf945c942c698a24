"""A hole for which there are drafts: the filling of the model and each draft, judged by the same likelihood.

A draft is the continuation of something that was written before, and often goes on longer than it fits. It is cut, at
the end of a word, where the expected number of right characters is highest: so many characters times the belief that
the answer begins so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from calomel.prompts.token_healing import NO_HEALING, TokenHealing
from calomel.prompts.tokenizer import TextTokenizer
from calomel.suggest.completer import Draft, cut_at_stop

if TYPE_CHECKING:
    from calomel.engine import AnyEngine, Handle, Request, Result


_WEIGHT: Final = 0.072
_PRIOR: Final = 1.65


def belief(log_prob: float) -> float:
    """The probability that a draft is right, from its exact joint log-probability in nats."""
    return 1.0 / (1.0 + math.exp(-max(-700.0, _WEIGHT * log_prob + _PRIOR)))


class RequestGroup:
    """The requests of one question. Leaving the block, for whatever reason, cancels those that are not done."""

    def __init__(self, engine: AnyEngine) -> None:
        self._engine = engine
        self._sent: list[Handle] = []

    async def run(self, requests: Sequence[Request]) -> list[Result | None]:
        """Send `requests` and wait for all of them. Raises what `send` and `wait` raise."""
        return await self.wait(self.send(requests))

    def send(self, requests: Sequence[Request]) -> tuple[Handle, ...]:
        """Send `requests` at the same moment. Raises EngineError where one of them is wrong."""
        handles = self._engine.submit_all(requests) if requests else ()
        self._sent += handles
        return handles

    async def wait(self, handles: Sequence[Handle]) -> list[Result | None]:
        """The results in the order of `handles`; None for one that the deadline came before. Raises EngineError."""
        from calomel.engine import DeadlineExceededError  # imports torch, which came with the engine

        results: list[Result | None] = []
        for handle in handles:
            try:
                results.append(await handle.wait())
            except DeadlineExceededError:
                results.append(None)
        return results

    async def need(self, request: Request) -> Result:
        """The result without which there is no answer. Raises EngineError, also when the deadline came before it."""
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
    """A text as token ids, the log-probability of each, and of the end behind them."""

    ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    end_log_prob: float

    @property
    def log_prob(self) -> float:
        """Of the whole text and the end behind it, in nats."""
        return sum(self.log_probs) + self.end_log_prob


class LikelihoodScorer:
    """Makes requests that judge texts, and remembers what came of them.

    Args:
        like: a request with the context, the deadline and the priority of all.
    """

    def __init__(self, like: Request) -> None:
        self._like = like
        self._first = Judged((), (), 0.0)
        self._known: dict[tuple[int, ...], Judged] = {}

    def opening(self, ids: tuple[int, ...]) -> Request:
        """The request that judges the first text; its context and the text stay in the cache for the others."""
        return replace(self._like, given=ids, reuse=None)

    def open(self, result: Result) -> Judged:
        """The first text, judged."""
        self._first = self._keep(result.ids, result.log_probs, result.end_log_prob)
        return self._first

    def unknown(self, texts: Iterable[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
        """Those of `texts` that are not judged yet, each once."""
        return tuple(ids for ids in dict.fromkeys(texts) if ids not in self._known)

    def request(self, ids: tuple[int, ...]) -> Request:
        """The request that judges another text."""
        common = self._common(ids)
        return replace(self._like, context=(*self._like.context, *ids[:common]), given=ids[common:])

    def read(self, texts: Sequence[tuple[int, ...]], results: Sequence[Result | None]) -> None:
        """Take in the results of `request` for each of `texts`; None for one that was not judged in time."""
        for ids, result in zip(texts, results, strict=True):
            if result is not None:
                before = self._first.log_probs[: self._common(ids)]
                self._keep(ids, (*before, *result.log_probs), result.end_log_prob)

    def take(self, ids: tuple[int, ...], result: Result) -> None:
        """Take in a text that begins as the first one does and that the causal mode itself wrote to its end."""
        begin = len(ids) - len(result.ids)
        self._keep(ids, (*self._first.log_probs[:begin], *result.log_probs), result.end_log_prob)

    def judged(self, ids: tuple[int, ...]) -> Judged | None:
        """What is known of a text."""
        return self._known.get(ids)

    def _common(self, ids: Sequence[int]) -> int:
        first = self._first.ids
        pairs = zip(first, ids, strict=False)
        return next((at for at, (ours, theirs) in enumerate(pairs) if ours != theirs), min(len(first), len(ids)))

    def _keep(self, ids: tuple[int, ...], log_probs: tuple[float, ...], end: float | None) -> Judged:
        self._known[ids] = found = Judged(ids, log_probs, 0.0 if end is None else end)
        return found


# Of a longer draft only the beginning is judged: nobody expects more of a hole.
DRAFT_TOKENS: Final = 32
# The model's own text is judged too where neither is so many times as good as the other by what is known already.
CLOSE: Final = 4.0


@dataclass(frozen=True, slots=True)
class JudgedDraft:
    """What is worth keeping of a draft.

    Attributes:
        text: its beginning, or all of it.
        maker: who drafted it.
        log_probs: of its tokens, exact.
        end_log_prob: of the end behind it; None when it was cut.
    """

    text: str
    maker: str
    log_probs: tuple[float, ...]
    end_log_prob: float | None

    @property
    def expected(self) -> float:
        """Characters times the belief that the answer begins so."""
        return len(self.text) * belief(self.log_prob)

    @property
    def log_prob(self) -> float:
        """Of the whole text, with the end behind it unless it was cut."""
        return sum(self.log_probs) + (self.end_log_prob or 0.0)


@dataclass(frozen=True, slots=True)
class Drafted:
    """A filling and the drafts beside it.

    Attributes:
        filled: the model's own.
        drafts: those of which anything is left.
        log_prob: exact causal one of the model's own text and its end; None where it was no
            close run: knowing it costs a forward.
        keep_log_prob: the same of no text at all.
        unjudged: drafts that the model can not judge.
    """

    filled: Result
    drafts: tuple[JudgedDraft, ...]
    log_prob: float | None
    keep_log_prob: float | None
    unjudged: tuple[Draft, ...] = ()


async def judge_drafts(
    group: RequestGroup,
    filling: Request,
    drafts: Sequence[Draft],
    stop: Sequence[str],
    tokenizer: TextTokenizer,
    healing: TokenHealing = NO_HEALING,
) -> Drafted:
    """Denoise `filling` and judge `drafts` side by side; where it is a close run, judge the model's own text too.

    Args:
        group: run them.
        filling: the model's own answer.
        drafts: likeliest first.
        stop: they end before the first of these.
        tokenizer: of the model.
        healing: what the model's own answer owes; drafts go on behind it, and are judged from its beginning on, too.

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
    asked = replace(filling, constraint=None, until=None)
    given = [replace(asked, given=ids) for _, ids, _ in likely]
    filled, *results = await group.run([filling, *given])
    if filled is None:
        filled = await group.need(filling)  # says what was wrong
    judged = [
        cut
        for (draft, ids, owed), result in zip(likely, results, strict=True)
        if result is not None and (cut := cut_draft(draft, ids, result, tokenizer, healing, owed)).text.strip()
    ]
    rival = max((draft.expected for draft in judged), default=0.0)
    text = healing.rest(tokenizer.decode(filled.ids))
    own = expected_characters(text, filled.log_probs[healing.tokens(filled.ids, tokenizer) :])
    if not rival / CLOSE <= own <= rival * CLOSE:
        return Drafted(filled, tuple(judged), None, None)
    nothing, _ = healing.given("", tokenizer)
    judged_own, keep = await group.run([replace(asked, given=ids) for ids in (filled.ids, nothing)])
    owed = healing.tokens(filled.ids, tokenizer)
    return Drafted(filled, tuple(judged), _whole(judged_own, owed), _whole(keep, len(nothing)))


def cut_draft(
    draft: Draft,
    ids: Sequence[int],
    result: Result,
    tokenizer: TextTokenizer,
    healing: TokenHealing = NO_HEALING,
    owed: int = 0,
) -> JudgedDraft:
    """The beginning of a draft that is expected to save most characters; its ids are those behind the first `owed`."""
    _, words, _ = tokenizer.encode_with_words(healing.text + draft.text)
    ends = [count for count in range(owed + 1, len(ids)) if count >= len(words) or words[count] != words[count - 1]]
    beginnings = [
        JudgedDraft(healing.rest(tokenizer.decode(ids[:count])), draft.maker, result.log_probs[owed:count], None)
        for count in ends
    ]
    whole = JudgedDraft(draft.text, draft.maker, result.log_probs[owed:], result.end_log_prob)
    return max([whole, *beginnings], key=lambda judged: judged.expected)


def expected_characters(text: str, log_probs: Sequence[float]) -> float:
    """Characters times joint probability."""
    return len(text) * math.exp(sum(log_probs))


def _whole(result: Result | None, owed: int) -> float | None:
    return None if result is None else sum(result.log_probs[owed:]) + (result.end_log_prob or 0.0)
