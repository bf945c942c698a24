"""What next edits have to beat: the same model left to right, and the last edit once more by text substitution."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from calomel.prompts.own import ContextRenderer
from calomel.prompts.parts import EditRegion, Hunk
from calomel.replay.events import shared_ends
from calomel.suggest.completer import (
    CANVAS,
    Candidate,
    CompleteAnswer,
    Completer,
    CompleteRequest,
    FillRequest,
    ModelInfo,
    Timings,
)
from calomel.suggest.edit import TextEdit
from calomel.suggest.filler import Filler, own_renderer
from calomel.suggest.in_process import NOT_TRAINED_FOR_EDITS, open_completer
from calomel.suggest.scoring import LikelihoodScorer, RequestGroup

POLICY = "left_to_right"
# Words are kept whole.
_PIECE: Final = re.compile(r"\w+|\W")


@asynccontextmanager
async def with_rival(
    folder: Path | None, device: str, threads: int | None, *, rival: bool
) -> AsyncIterator[tuple[Completer, Completer | None]]:
    """A model, and beside it the same left to right where that is wanted and can be; closed at the end.

    Raises what `calomel.suggest.in_process.open_completer` raises.
    """
    completer = open_completer(folder, device, threads)
    try:
        filler = completer.filler
        yield completer, LeftToRight(completer, filler) if rival and isinstance(filler, Filler) else None
    finally:
        await completer.aclose()


@dataclass(slots=True)
class LeftToRight:
    """A `Completer` beside another one on the same engine.

    Attributes:
        inner: answers everything but edits.
        filler: its engine.
    """

    inner: Completer
    filler: Filler
    _renderer: ContextRenderer = field(init=False)

    def __post_init__(self) -> None:
        self._renderer = own_renderer(self.filler.tokenizer)

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Answer one question. Raises the engine's errors, and CompleterError."""
        info = await self.inner.info()
        if request.kind != "edit" or "edit" not in info.kinds:
            reason = NOT_TRAINED_FOR_EDITS
            return await self.inner.complete(request) if request.kind in info.kinds else CompleteAnswer((), reason)
        fill = await self.filler.afill(
            FillRequest(
                "fill",
                request.parts,
                max_tokens=request.max_tokens,
                max_context=request.max_context,
                policy=POLICY,
                recall=False,
                whole_word=False,
            )
        )
        candidate = await self._judged(request, fill.text, fill.finish_reason == "stop")
        return CompleteAnswer(
            (candidate,),
            context_tokens=fill.prompt_tokens,
            cached_tokens=fill.cached_tokens,
            model=info.id,
            timings=Timings(total=fill.seconds),
        )

    async def info(self) -> ModelInfo:
        """What the model can do."""
        return await self.inner.info()

    async def aclose(self) -> None:
        """Nothing: the engine belongs to the other one."""

    async def _judged(self, request: CompleteRequest, text: str, finished: bool) -> Candidate:  # noqa: FBT001
        from calomel.engine import Request  # imports torch, which came with the engine

        region = request.parts.region or EditRegion("", 0)
        keep_ids, ids = (tuple(self.filler.tokenizer.encode(each)) for each in (region.text, text))
        positions = self.filler.engine.config.max_position_embeddings
        room = max(request.max_tokens, len(keep_ids) + 1, len(ids) + 1)
        prompt = self._renderer.render(request.parts, min(request.max_context, positions - room))
        like = Request(context=prompt.context, max_new_tokens=request.max_tokens, reuse=prompt.reuse)
        async with RequestGroup(self.filler.engine) as group:
            scorer = LikelihoodScorer(group, like)
            _, keep = await scorer.first(keep_ids)
            await scorer.score([ids])
        judged = scorer.judged(ids)
        return Candidate(
            text,
            log_probs=() if judged is None else judged.log_probs,
            end_log_prob=None if judged is None else judged.end_log_prob,
            finish_reason="stop" if finished else "length",
            maker=CANVAS,
            log_prob=None if judged is None else judged.log_prob,
            keep_log_prob=keep.log_prob,
        )


def repeat_last(text: str, hunks: Sequence[Hunk], cursor: int) -> TextEdit | None:
    """The last edit at the next place of its old text; None where there is none.

    Args:
        text: the document's.
        hunks: its own edits, newest last.
        cursor: offset; places behind it come first.
    """
    if not hunks:
        return None
    old, new = substitution(hunks[-1].before, hunks[-1].after)
    if not old.strip():
        return None
    left = r"(?<!\w)" if re.match(r"\w", old) else ""
    right = r"(?!\w)" if re.search(r"\w\Z", old) else ""
    places = [match.start() for match in re.finditer(left + re.escape(old) + right, text)]
    # Where the new text holds the old one, the places that were edited already are no places.
    inside = new.find(old)
    if inside >= 0:
        places = [at for at in places if text[at - inside : at - inside + len(new)] != new or at < inside]
    if not places:
        return None
    at = next((at for at in places if at >= cursor), places[0])
    return TextEdit(at, at + len(old), new)


def substitution(before: str, after: str) -> tuple[str, str]:
    """The old text and the new one without what both share at their ends, in whole words."""
    old, new = _PIECE.findall(before), _PIECE.findall(after)
    front, back = shared_ends(old, new)
    return "".join(old[front : len(old) - back]), "".join(new[front : len(new) - back])
