"""Lets a model choose among the texts that a snippet may mean."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from calomel.prompts.parts import EditRegion, Excerpt, PromptParts
from calomel.suggest.apply.merged import Merged
from calomel.suggest.completer import Candidate, CompleteAnswer, CompleteRequest, Draft, ModelInfo
from calomel.suggest.diff import split_lines
from calomel.suggest.in_process import Fills, answer

# The best text must be so many nats likelier than the next; a single one, than leaving the file as it is.
SURE: Final = 1.0
# Of the file around the places in question, so much is shown on either side.
_AROUND: Final = 6000
_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Decided:
    """A merge, and what it took.

    Attributes:
        text: the merged file; the original where nothing was decided.
        warning: why nothing was decided.
        answers: of the model, when it was asked.
    """

    text: str
    warning: str | None = None
    answers: tuple[CompleteAnswer, ...] = field(default=(), repr=False)


async def decide(
    filler: Fills, info: ModelInfo, merged: Merged, original: str, update: str, *, mask: Callable[[str], str]
) -> Decided:
    """Ask the model where `merged` is ambiguous; cancelling the task cancels the work.

    Args:
        filler: the model.
        info: what it can do.
        merged: what came of merging without it.
        original: the file.
        update: the snippet.
        mask: hides secrets and keeps lengths.

    Raises:
        EngineError: the engine refused or failed.
    """
    if merged.sure or not merged.ambiguous or "edit" not in info.kinds:
        return Decided(merged.text, merged.warning)
    request = await asyncio.to_thread(_request, info, original, update, merged.ambiguous, mask)
    if request is None:
        return Decided(merged.text, merged.warning)
    answered = await answer(filler, info, request)
    chosen = _chosen(answered.candidates, len(merged.ambiguous))
    if chosen is None:
        return Decided(merged.text, merged.warning, (answered,))
    return Decided(merged.ambiguous[chosen], None, (answered,))


def _request(
    info: ModelInfo, original: str, update: str, texts: Sequence[str], mask: Callable[[str], str]
) -> CompleteRequest | None:
    """The question; None when the texts differ over more than the model may rewrite at once."""
    whole = [split_lines(text) for text in (original, *texts)]
    head = _common(whole)
    tail = _common([lines[head:][::-1] for lines in whole])
    start = sum(map(len, whole[0][:head]))
    end = len(original) - sum(map(len, whole[0][len(whole[0]) - tail :]))
    cut = len(original) - end
    regions = [mask(text)[start : len(text) - cut] for text in (original, *texts)]
    if max(map(len, regions)) > info.region.characters:
        return None
    masked = mask(original)
    parts = PromptParts(
        related=(Excerpt("update", 0, mask(update)),),
        prefix=masked[max(0, start - _AROUND) : start],
        suffix=masked[end : end + _AROUND],
        region=EditRegion(regions[0], None),
    )
    drafts = tuple(Draft(text, _maker(number)) for number, text in enumerate(regions[1:]))
    return CompleteRequest(
        kind="edit",
        parts=parts,
        max_tokens=info.region.characters,
        max_context=info.region.context or info.default_context,
        deadline=_SECONDS,
        drafts=drafts,
        own=False,
    )


def _chosen(candidates: Sequence[Candidate], count: int) -> int | None:
    """Which text is clearly the likeliest; None when none is."""
    scores = {each.maker: each.log_prob for each in candidates if each.log_prob is not None}
    keep = next((each.keep_log_prob for each in candidates if each.keep_log_prob is not None), None)
    ranked = sorted(
        ((scores[_maker(number)], number) for number in range(count) if _maker(number) in scores), reverse=True
    )
    if len(ranked) < count or keep is None:
        return None
    second = ranked[1][0] if count > 1 else keep
    return ranked[0][1] if ranked[0][0] - second >= SURE else None


def _maker(number: int) -> str:
    return f"apply{number}"


def _common(texts: Sequence[Sequence[str]]) -> int:
    """How many items all begin with."""
    found = 0
    for items in zip(*texts, strict=False):
        if any(item != items[0] for item in items):
            break
        found += 1
    return found
