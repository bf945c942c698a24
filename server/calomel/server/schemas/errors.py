"""The body of every error."""

from __future__ import annotations

from pydantic import BaseModel


class ErrorObject(BaseModel):
    """Published ErrorObject."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorResponse(BaseModel):
    """Published ErrorResponse."""

    error: ErrorObject
