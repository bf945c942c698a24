"""Bodies of `/v1/apply/completions`: not in the OpenAPI document of 2026-07, but in the published pages beside it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from calomel.server.schemas.base import Flag, Usage
from calomel.server.schemas.edit import EditChoice, EditChunk, EditRequest


class ApplyRequest(EditRequest):
    """One message with the file and the snippet; what is not sent is not needed.

    `max_tokens` has no effect: half a file would be written over the whole one.
    """

    diffusing: Flag | None = None


class ApplyCompletion(BaseModel):
    """An answer in the shape of the chat route; the content is the merged file and nothing else."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[EditChoice]
    usage: Usage
    warning: str | None = None


class ApplyLastChunk(EditChunk):
    """The end of a streamed answer, with the warning that a whole one has."""

    warning: str | None = None
