"""The form that an answer shall have, as clients ask for it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from calomel.prompts.grammar import MAX_PATTERN_CHARACTERS
from calomel.server.schemas.base import MAX_NAME_CHARACTERS, Flag, Text


class JsonSchemaFormat(BaseModel):
    """Published JSONSchema. The schema is enforced whether it is `strict` or not."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    name: Annotated[Text, Field(max_length=MAX_NAME_CHARACTERS)] | None = None
    description: Text | None = None
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: Flag | None = None


class ResponseFormat(BaseModel):
    """Published ResponseFormatText, -JSONObject and -JSONSchema; with `regex`, as other open servers have it."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["text", "json_object", "json_schema", "regex"]
    json_schema: JsonSchemaFormat | None = None
    pattern: Annotated[Text, Field(min_length=1, max_length=MAX_PATTERN_CHARACTERS)] | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.type == "json_schema" and self.json_schema is None:
            raise ValueError("json_schema is missing")
        if self.type == "regex" and self.pattern is None:
            raise ValueError("pattern is missing")
        return self

    def schema_of(self) -> dict[str, Any] | None:
        """The schema of the JSON that is asked for; None when it is no JSON."""
        if self.type == "json_schema" and self.json_schema is not None:
            return {"type": "object"} if self.json_schema.schema_ is None else self.json_schema.schema_
        return {"type": "object"} if self.type == "json_object" else None

    def pattern_of(self) -> str | None:
        """The pattern that is asked for."""
        return self.pattern if self.type == "regex" else None
