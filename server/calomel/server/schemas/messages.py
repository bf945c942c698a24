"""Messages of requests that look like a conversation, where one message of the user's is all there may be."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from calomel.server.schemas.base import Text


def text_of(value: Any) -> Any:
    """Content that comes in parts is the text of its parts."""
    if not isinstance(value, list):
        return value
    texts = []
    for part in value:
        text = part.get("text") if isinstance(part, dict) else None
        if not isinstance(text, str):
            raise ValueError("Input should be text, or parts with a text each")  # noqa: TRY004 (a field error)
        texts.append(text)
    return "".join(texts)


def _user(value: Any) -> Any:
    if value != "user":
        raise ValueError("Input should be 'user'")
    return value


class UserMessage(BaseModel):
    """Published EditMessageParam."""

    model_config = ConfigDict(extra="ignore")

    role: Annotated[str, BeforeValidator(_user)]
    content: Annotated[Text, BeforeValidator(text_of)]


# The published routes take exactly one message, of the user's.
OneMessage = Annotated[list[UserMessage], Field(min_length=1, max_length=1)]
