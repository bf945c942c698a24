"""A stream whose answer is known as a whole, in the shape of a conversation: one delta, then its end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from calomel.server.door import Visit
from calomel.server.schemas.base import Usage
from calomel.server.schemas.edit import Delta, EditChunk, EditChunkChoice, EditRequest, EditUsageChunk
from calomel.server.sse import DONE, event


async def whole(
    visiting: Visit, body: EditRequest, content: str, usage: Usage, last: type[EditChunk] = EditChunk, **more: Any
) -> AsyncIterator[bytes]:
    """The events of an answer; `more` are fields that the `last` chunk has besides."""
    head = {"id": visiting.id, "created": visiting.created, "model": body.model}
    delta = EditChunkChoice(delta=Delta(role="assistant", content=content))
    yield event(EditChunk.model_validate({**head, "choices": [delta]}))
    end = EditChunkChoice(delta=Delta(content=""), finish_reason="stop")
    yield event(last.model_validate({**head, "choices": [end], **more}))
    if body.stream_options is not None and body.stream_options.include_usage:
        yield event(EditUsageChunk.model_validate({**head, "usage": usage}))
    yield DONE
