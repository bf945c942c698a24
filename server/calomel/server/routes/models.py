"""GET /v1/models and its siblings: the one model of this server. POST /feedback: what became of an answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from fastapi import Request
from pydantic import AfterValidator, BaseModel, Field, ValidationInfo

from calomel.server.door import door_of
from calomel.server.middleware import protected_router, public_router
from calomel.server.settings import ServerSettings
from calomel.server.wire import MAX_TOKENS, Integer, ModelObject, Name
from calomel.weights import nano_path

SHIPPED_NAME = "calomel-nano"
# What a server that knows nothing about its checkpoint may claim: the default context of a fill.
FALLBACK_CONTEXT = 2048
SAMPLING_PARAMETERS = (
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "seed",
    "stop",
)

ENDPOINTS = ("fim.completions", "edit.completions", "apply.completions", "completions")
CHAT_FEATURES = ("tools", "json_mode", "structured_outputs", "reasoning")

router = protected_router()
feedback_router = public_router()


class Models(BaseModel):
    """Published ModelsResponse."""

    data: list[ModelObject]


@router.get("/v1/models")
@router.get("/v1/fim/completions/models")
@router.get("/v1/edit/completions/models")
@router.get("/v1/chat/completions/models")
async def list_models(request: Request) -> Models:
    """The model that answers, whatever model id a request names."""
    return Models(data=[door_of(request).model])


def describe(folder: Path | None) -> ModelObject:
    """The model in a checkpoint folder (None: the shipped one), from its config.json alone; loads no weights."""
    config = (folder or nano_path()) / "config.json"
    try:
        said = json.loads(config.read_text(encoding="utf-8"))
        # Multimodal models nest it under `text_config`.
        positions = int((said if "max_position_embeddings" in said else said["text_config"])["max_position_embeddings"])
        created = int(config.stat().st_mtime)
    except (OSError, ValueError, KeyError, TypeError):
        # The loader reports what is wrong with the folder; this list must not fail before it.
        positions, created = FALLBACK_CONTEXT, 0
    name = SHIPPED_NAME if folder is None else folder.resolve().name
    talks = folder is not None and _talks(folder)
    return ModelObject(
        id=name,
        name=f"Calomel: {name}",
        created=created,
        description="A language model for code.",
        context_length=positions,
        max_output_length=min(MAX_TOKENS, positions),
        supported_sampling_parameters=list(SAMPLING_PARAMETERS),
        supported_features=list(CHAT_FEATURES if talks else ("structured_outputs",)),
        supported_endpoints=[*ENDPOINTS, *(["chat.completions"] if talks else [])],
    )


def behind(settings: ServerSettings) -> ModelObject:
    """The model behind an upstream server, before the server was asked."""
    name = settings.upstream_model or "upstream"
    return ModelObject(
        id=name,
        name=f"Calomel: {name}",
        created=0,
        description="A model in another server.",
        context_length=FALLBACK_CONTEXT,
        max_output_length=FALLBACK_CONTEXT,
        supported_sampling_parameters=list(SAMPLING_PARAMETERS),
        supported_endpoints=list(ENDPOINTS),
    )


def _talks(folder: Path) -> bool:
    """Whether the folder has a chat template; the chat route reports what is wrong with a bad one."""
    from calomel.prompts.chat_template import ChatTemplate, ChatTemplateError  # importing jinja2 takes time

    try:
        return ChatTemplate.of(folder) is not None
    except ChatTemplateError:
        return False


def _needed(value: int | None, info: ValidationInfo) -> int | None:
    if value is None and info.data.get("user_action") == "partial":
        raise ValueError("Input should be the accepted length")
    return value


class FeedbackRequest(BaseModel):
    """What clients of the hosted service send, plus `partial`: `accepted_length` UTF-16 units were accepted."""

    request_id: Name
    user_action: Literal["accept", "reject", "ignore", "partial"]
    provider_name: Name | None = None
    provider_version: Name | None = None
    accepted_length: Annotated[
        Annotated[Integer, Field(ge=1, le=1_000_000)] | None, AfterValidator(_needed), Field(validate_default=True)
    ] = None


class FeedbackAnswer(BaseModel):
    """The same for every well-formed body: it does not reveal whether the id is known."""

    status: Literal["ok"] = "ok"


@feedback_router.post("/feedback")
async def take_feedback(body: FeedbackRequest, request: Request) -> FeedbackAnswer:
    """Record feedback. Without a token, as clients send it; the response does not reveal whether the id is known."""
    door_of(request).deliveries.decided(body.request_id, body.user_action, body.accepted_length or 0)
    return FeedbackAnswer()
