"""What next edits have to beat: the same model left to right, and the last edit once more by text substitution."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from calomel.prompts.own import ContextRenderer
from calomel.prompts.parts import EditRegion, Hunk
from calomel.replay.events import shared_ends
from calomel.suggest.completer import CANVAS, Candidate, CompleteAnswer, Completer, CompleteRequest, ModelInfo, Timings
from calomel.suggest.errands import Errands
from calomel.suggest.fill import FillRequest
from calomel.suggest.filler import Filler, own_renderer
from calomel.suggest.in_process import NOT_TRAINED_FOR_EDITS
from calomel.suggest.judge import Judge
from calomel.suggest.suggestion import TextEdit

POLICY = "left_to_right"


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
                prefix="",
                parts=request.parts,
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
        judge = Judge(Request(context=prompt.context, max_new_tokens=request.max_tokens, reuse=prompt.reuse))
        async with Errands(self.filler.engine) as errands:
            keep = judge.open(await errands.need(judge.opening(keep_ids)))
            new = judge.unknown([ids])
            judge.read(new, await errands.run([*map(judge.request, new)]))
        judged = judge.judged(ids)
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
    places = [match.start() for match in re.finditer(_whole(old), text)]
    # Where the new text holds the old one, the places that were edited already are no places.
    inside = new.find(old)
    if inside >= 0:
        places = [at for at in places if text[at - inside : at - inside + len(new)] != new or at < inside]
    if not places:
        return None
    at = next((at for at in places if at >= cursor), places[0])
    return TextEdit(at, at + len(old), new)


def substitution(before: str, after: str) -> tuple[str, str]:
    """The old text and the new one without what both share at their ends, whole words."""
    front, back = shared_ends(before, after)
    # A word that is cut on either side is taken whole.
    while front and _is_letter(before[front - 1]) and _cuts(before, after, front, back, first=True):
        front -= 1
    while back and _is_letter(before[-back]) and _cuts(before, after, front, back, first=False):
        back -= 1
    return before[front : len(before) - back], after[front : len(after) - back]


def _cuts(before: str, after: str, front: int, back: int, *, first: bool) -> bool:
    """Whether the first (or the last) character of the old or the new middle goes on with a word."""
    behind = before[len(before) - back : len(before) - back + 1]
    ahead = before[front - 1 : front] if front else ""
    for text in (before, after):
        middle = text[front : len(text) - back]
        edge = (middle[:1] if first else middle[-1:]) or (behind if first else ahead)
        if edge and _is_letter(edge):
            return True
    return False


def _whole(old: str) -> str:
    left = r"(?<!\w)" if _is_letter(old[0]) else ""
    right = r"(?!\w)" if _is_letter(old[-1]) else ""
    return left + re.escape(old) + right


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"
