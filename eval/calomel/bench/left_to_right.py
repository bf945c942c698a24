"""The same model, rewriting regions left to right: the baseline that canvases, seeds and drafts have to beat.

Its one candidate is the greedy left-to-right text of the region. It is judged as every other: by how much likelier the
causal mode finds it than the region as it is, and by the same gate, where it counts as a canvas of the model's own.
Drafts that come with the question are not read.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from calomel.prompts.context import ContextRenderer
from calomel.prompts.parts import EditRegion
from calomel.suggest.completer import CANVAS, Candidate, CompleteAnswer, Completer, CompleteRequest, ModelInfo, Timings
from calomel.suggest.errands import Errands
from calomel.suggest.fill import FillRequest
from calomel.suggest.filler import Filler, own_renderer
from calomel.suggest.in_process import NOT_TRAINED_FOR_EDITS
from calomel.suggest.judge import Judge

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
