"""A hole for which there are drafts: the filling of the model and each draft, judged by the same likelihood.

A draft is the continuation of something that was written before, and often goes on longer than it fits. It is cut where
the expected number of right characters is highest: so many characters times the probability that the text begins so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from calomel.prompts.tokenizer import Tokenizer
from calomel.suggest.completer import Draft
from calomel.suggest.errands import Errands
from calomel.suggest.stop import cut_at_stop

if TYPE_CHECKING:
    from calomel.engine import Request, Result

# Of a longer draft only the beginning is judged: nobody expects more of a hole.
DRAFT_TOKENS: Final = 32


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
        """Characters times the probability that the answer begins so."""
        return expected_characters(self.text, self.log_probs)

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
        log_prob: exact causal one of the model's own text and its end; None when no draft came near it.
        keep_log_prob: the same of no text at all.
    """

    filled: Result
    drafts: tuple[JudgedDraft, ...]
    log_prob: float | None
    keep_log_prob: float | None


async def judge_drafts(
    errands: Errands, filling: Request, drafts: Sequence[Draft], stop: Sequence[str], tokenizer: Tokenizer
) -> Drafted:
    """Denoise `filling` and judge `drafts` side by side, then, where a draft could win, the model's own text.

    Raises:
        EngineError: the engine refused or failed, or the deadline passed before anything was known.
    """
    likely: list[tuple[Draft, tuple[int, ...]]] = []
    for draft in drafts:
        text, _ = cut_at_stop(draft.text, stop)
        ids = tuple(tokenizer.encode(text)[:DRAFT_TOKENS])
        if ids:
            likely.append((replace(draft, text=tokenizer.decode(ids)), ids))
    given = [replace(filling, given=ids) for _, ids in likely]
    filled, *results = await errands.run([filling, *given])
    if filled is None:
        filled = await errands.need(filling)  # says what was wrong
    judged = [
        cut
        for (draft, ids), result in zip(likely, results, strict=True)
        if result is not None and (cut := cut_draft(draft, ids, result, tokenizer)).text
    ]
    text = tokenizer.decode(filled.ids)
    rival = max((draft.expected for draft in judged), default=0.0)
    if rival <= 0.0 or rival < expected_characters(text, filled.log_probs):
        return Drafted(filled, tuple(judged), None, None)
    own, keep = await errands.run([replace(filling, given=ids) for ids in (filled.ids, ())])
    return Drafted(filled, tuple(judged), _whole(own), _whole(keep))


def cut_draft(draft: Draft, ids: Sequence[int], result: Result, tokenizer: Tokenizer) -> JudgedDraft:
    """The beginning of a draft that is expected to save most characters."""
    best, kept, total = 0.0, 0, 0.0
    for count, log_prob in enumerate(result.log_probs, 1):
        total += log_prob
        expected = len(tokenizer.decode(ids[:count])) * math.exp(total)
        if expected > best:
            best, kept = expected, count
    whole = kept == len(ids)
    return JudgedDraft(
        tokenizer.decode(ids[:kept]), draft.maker, result.log_probs[:kept], result.end_log_prob if whole else None
    )


def expected_characters(text: str, log_probs: Sequence[float]) -> float:
    """Characters times joint probability."""
    return len(text) * math.exp(sum(log_probs))


def _whole(result: Result | None) -> float | None:
    return None if result is None else sum(result.log_probs) + (result.end_log_prob or 0.0)
