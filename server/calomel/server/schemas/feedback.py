"""Bodies of `/feedback`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo

from calomel.server.schemas.base import MAX_NAME_CHARACTERS, Integer, Text


def _needed(value: int | None, info: ValidationInfo) -> int | None:
    if value is None and info.data.get("user_action") == "partial":
        raise ValueError("Input should say how much was taken")
    return value


class FeedbackRequest(BaseModel):
    """What clients of the hosted service send, and `partial` besides: `accepted_length` UTF-16 units were taken."""

    model_config = ConfigDict(extra="ignore")

    request_id: Annotated[Text, Field(max_length=MAX_NAME_CHARACTERS)]
    user_action: Literal["accept", "reject", "ignore", "partial"]
    provider_name: Annotated[Text, Field(max_length=MAX_NAME_CHARACTERS)] | None = None
    provider_version: Annotated[Text, Field(max_length=MAX_NAME_CHARACTERS)] | None = None
    accepted_length: Annotated[
        Annotated[Integer, Field(ge=1, le=1_000_000)] | None, AfterValidator(_needed), Field(validate_default=True)
    ] = None


class FeedbackAnswer(BaseModel):
    """The same for every well-formed body: whether the id is known is nobody's business."""

    status: Literal["ok"] = "ok"
