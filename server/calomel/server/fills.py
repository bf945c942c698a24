"""What routes that fill holes for foreign clients have in common: the question, and its answer piece by piece."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING

from calomel.prompts.foreign.fim_tokens import FimPromptText
from calomel.prompts.parts import Excerpt, PromptParts
from calomel.server.door import Visit
from calomel.suggest.asker import context_tokens

if TYPE_CHECKING:
    from calomel.engine import SamplingParams
    from calomel.suggest.fill import Fill, FillRequest


def fill_of(
    visiting: Visit,
    hole: FimPromptText,
    *,
    max_tokens: int,
    stop: tuple[str, ...],
    sampling: SamplingParams,
    min_tokens: int = 0,
    deadline: float | None = None,
) -> FillRequest:
    """The question about a hole, secrets masked."""
    from calomel.suggest.fill import FillRequest  # the engine imports torch, which came with the model

    mask = visiting.door.mask
    related = tuple(Excerpt(each.path, each.start_line, mask(each.text)) for each in hole.related)
    prefix, suffix = mask(hole.prefix), mask(hole.suffix)
    return FillRequest(
        prefix=prefix,
        suffix=suffix,
        path=hole.path,
        max_tokens=max_tokens,
        min_tokens=min_tokens,
        stop=stop,
        sampling=sampling,
        max_context=context_tokens(visiting.info, visiting.door.settings.context_tokens, max_tokens),
        deadline=deadline,
        parts=PromptParts(related=related, path=hole.path, prefix=prefix, suffix=suffix),
    )


async def streamed(visiting: Visit, wanted: FillRequest) -> AsyncIterator[str | Fill]:
    """The answer piece by piece, then the fill; the first piece is waited for, so that a refusal keeps its status."""
    items = visiting.filler.stream(wanted)
    if isinstance(items, AsyncGenerator):
        visiting.on_leaving(items.aclose)

    async def next_item() -> str | Fill:
        return await anext(items)

    return _chained(await visiting.run(next_item()), items)


async def _chained(first: str | Fill, items: AsyncIterator[str | Fill]) -> AsyncIterator[str | Fill]:
    yield first
    async for item in items:
        yield item
