"""GET /v1/models and /v1/fim/completions/models: the one model of this server."""

from __future__ import annotations

import json
from pathlib import Path

from fastapi import Request

from calomel.server.access import protected_router
from calomel.server.door import door_of
from calomel.server.schemas.base import MAX_TOKENS
from calomel.server.schemas.errors import ErrorResponse
from calomel.server.schemas.models import ModelObject, Models

SHIPPED_NAME = "calomel-nano"
# What a server that knows nothing about its checkpoint may claim: the context that a fill reads by default.
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
_PRESCRIBED = frozenset({"json_mode", "structured_outputs"})

router = protected_router(prefix="/v1", responses={"4XX": {"model": ErrorResponse}})


@router.get("/models")
@router.get("/fim/completions/models")
@router.get("/edit/completions/models")
@router.get("/chat/completions/models")
async def list_models(request: Request) -> Models:
    """The model that answers, whatever model id a request names."""
    return Models(data=[door_of(request).model])


def describe(folder: Path | None, *, here: bool = True) -> ModelObject:
    """The model in a checkpoint folder (None: the shipped one), from its config.json alone; loads no weights.

    `here`: its weights are opened by this server. Others' are asked for answers of no prescribed form.
    """
    config = (folder or _shipped()) / "config.json"
    try:
        said = json.loads(config.read_text(encoding="utf-8"))
        # Models that read more than text say it of their text.
        positions = int((said if "max_position_embeddings" in said else said["text_config"])["max_position_embeddings"])
        created = int(config.stat().st_mtime)
    except (OSError, ValueError, KeyError, TypeError):
        # The loader says what is wrong with the folder; this list must not fail before it.
        positions, created = FALLBACK_CONTEXT, 0
    name = SHIPPED_NAME if folder is None else folder.resolve().name
    talks = folder is not None and _talks(folder)
    features = CHAT_FEATURES if talks else ("structured_outputs",)
    return ModelObject(
        id=name,
        name=f"Calomel: {name}",
        created=created,
        description=f"A diffusion language model for code, {'on this machine' if here else 'served elsewhere'}.",
        context_length=positions,
        max_output_length=min(MAX_TOKENS, positions),
        supported_sampling_parameters=list(SAMPLING_PARAMETERS),
        supported_features=[name for name in features if here or name not in _PRESCRIBED],
        supported_endpoints=[*ENDPOINTS, *(["chat.completions"] if talks else [])],
    )


def _talks(folder: Path) -> bool:
    """Whether the folder says how a conversation is written; the chat route says what is wrong with a bad template."""
    from calomel.prompts.chat_template import ChatTemplate, ChatTemplateError  # jinja2 takes its time

    try:
        return ChatTemplate.of(folder) is not None
    except ChatTemplateError:
        return False


def _shipped() -> Path:
    from calomel.weights import nano_path

    return nano_path()
