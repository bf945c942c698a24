"""The server's status, for people and for programs; its one model; and what became of an answer.

GET /health, / and /calomel/v1/status, /v1/models and its siblings; POST /feedback. All but /health require the token.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final, Literal

from fastapi import Request
from pydantic import AfterValidator, BaseModel, Field, ValidationInfo
from starlette.responses import JSONResponse, Response

from calomel.infer.completer import SHIPPED_ID, ModelInfo, Occupancy, version
from calomel.server.app_state import AppState, app_state_of
from calomel.server.errors import ApiError, DrainingError
from calomel.server.metrics import PaceStatus, RecentStatus
from calomel.server.middleware import protected_router, public_router
from calomel.server.wire import MAX_TOKENS, Integer, ModelObject, Name
from calomel.storage import read_object, resident_bytes
from calomel.weights import nano_path

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

# Some servers do not take these.
_NOT_PASSED_ON: Final = frozenset({"top_k", "seed"})
ENDPOINTS = ("fim.completions", "edit.completions", "apply.completions", "completions")
CHAT_FEATURES = ("tools", "json_mode", "structured_outputs", "reasoning")

models_router = protected_router()
feedback_router = public_router()


class Models(BaseModel):
    """Published ModelsResponse."""

    data: list[ModelObject]


@models_router.get("/v1/models")
@models_router.get("/v1/fim/completions/models")
@models_router.get("/v1/edit/completions/models")
@models_router.get("/v1/chat/completions/models")
async def list_models(request: Request) -> Models:
    """The model that answers, whatever model id a request names."""
    return Models(data=[app_state_of(request).model])


def describe(folder: Path | None) -> ModelObject:
    """The model in a checkpoint folder (None: the shipped one), from its config.json alone; loads no weights."""
    config = (folder or nano_path()) / "config.json"
    try:
        fields = read_object(config, ValueError)
        # Multimodal models nest it under `text_config`.
        positions = int(
            (fields if "max_position_embeddings" in fields else fields["text_config"])["max_position_embeddings"]
        )
        created = int(config.stat().st_mtime)
    except (OSError, ValueError, KeyError, TypeError):
        # The loader reports what is wrong with the folder; this list must not fail before it.
        positions, created = FALLBACK_CONTEXT, 0
    name = SHIPPED_ID if folder is None else folder.resolve().name
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


def behind(info: ModelInfo) -> ModelObject:
    """The model behind an upstream server."""
    return ModelObject(
        id=info.id,
        name=f"Calomel: {info.id}",
        created=0,
        description="A model in another server.",
        context_length=info.max_context,
        max_output_length=min(MAX_TOKENS, info.max_context),
        supported_sampling_parameters=[name for name in SAMPLING_PARAMETERS if name not in _NOT_PASSED_ON],
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
    app_state_of(request).deliveries.decided(body.request_id, body.user_action, body.accepted_length or 0)
    return FeedbackAnswer()


class ModelStatus(BaseModel):
    """The model; what is unknown before it is loaded is null. `note` is about one behind another server."""

    state: str
    id: str | None = None
    weights: str | None = None
    kinds: Sequence[str] = ()
    context: int | None = None
    device: str
    note: str | None = None


class QueueStatus(BaseModel):
    """Requests: with a place, the number of places, in the engine's batch, waiting for it, and refused by code."""

    running: int
    limit: int
    engine_running: int | None
    engine_waiting: int | None
    refused: dict[str, int]


class CacheStatus(BaseModel):
    """The prefix cache: share of all context tokens found in it, tokens that it holds, and its capacity."""

    hit_share: float | None
    tokens: int | None
    capacity: int | None


class SuggestionStatus(BaseModel):
    """Edits that were shown, and edits that were not, by reason."""

    shown: int
    suppressed: dict[str, int]


class Status(BaseModel):
    """The whole page at one moment."""

    version: str
    uptime_seconds: float
    model: ModelStatus
    queue: QueueStatus
    pace: PaceStatus
    cache: CacheStatus
    suggestions: SuggestionStatus
    resident_bytes: int
    recent: list[RecentStatus]


# Rows of the page.
_ROWS: Final = 50
_SHOWN: Final = "shown"
_SCRIPT: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
_STYLE: Final = re.compile(rb"<style>(.*?)</style>", re.DOTALL)

health_router = public_router()
router = protected_router()


@health_router.get(
    "/health", responses={503: {"description": "The model is loading or has failed, or the server is stopping."}}
)
async def health(request: Request) -> Response:
    """200 `{"status": "ok"}` when fills are served; else 503 with `status` "loading", "failed" or "draining"."""
    app_state = app_state_of(request)
    try:
        if app_state.admission.draining:
            raise DrainingError
        app_state.loader.filler()
    except ApiError as error:
        return error.response(status="draining" if isinstance(error, DrainingError) else app_state.loader.state)
    return JSONResponse({"status": "ok"})


@router.get("/calomel/v1/status", response_model=Status)
async def status(request: Request) -> Status:
    """Model, queue, speed in the last minute, cache, suggestions, and the newest answers in numbers."""
    app_state = app_state_of(request)
    metrics, engine = app_state.metrics, look_at_engine(app_state)
    return Status(
        version=version(),
        uptime_seconds=metrics.uptime,
        model=_model(app_state),
        queue=QueueStatus(
            running=app_state.admission.taken,
            limit=app_state.settings.max_requests,
            engine_running=engine.running,
            engine_waiting=engine.waiting,
            refused=metrics.refused,
        ),
        pace=metrics.pace(),
        cache=CacheStatus(
            hit_share=metrics.cached_tokens / metrics.prompt_tokens if metrics.prompt_tokens else None,
            tokens=engine.cache_tokens,
            capacity=engine.cache_capacity,
        ),
        suggestions=SuggestionStatus(
            shown=metrics.verdicts[_SHOWN],
            suppressed={name: count for name, count in sorted(metrics.verdicts.items()) if name != _SHOWN},
        ),
        resident_bytes=resident_bytes(),
        recent=metrics.entries(_ROWS),
    )


def _model(app_state: AppState) -> ModelStatus:
    state, device = app_state.loader.state, app_state.settings.device
    with contextlib.suppress(ApiError):
        info = app_state.loader.info()
        return ModelStatus(
            state=state,
            id=info.id,
            weights=info.weights,
            kinds=info.kinds,
            context=info.max_context,
            device=device if app_state.settings.upstream is None else "upstream",
            note=app_state.loader.filler().note if state == "ready" else None,
        )
    return ModelStatus(state=state, device=device)


@router.get("/", response_class=Response, responses={200: {"content": {"text/html": {}}}})
async def page() -> Response:
    """The status page and playground, one file that loads nothing from elsewhere.

    The browser asks its user for the token (as a password) and sends it with everything the page fetches from this
    server.
    """
    content, headers = _page()
    return Response(content, media_type="text/html; charset=utf-8", headers=headers)


@functools.cache
def _page() -> tuple[bytes, dict[str, str]]:
    """The file, and headers that let it run its own script, contact this server, and nothing else."""
    content = files("calomel.server").joinpath("page", "index.html").read_bytes()
    policy = {
        "default-src": "'none'",
        "script-src": _hashes(_SCRIPT, content),
        "style-src": _hashes(_STYLE, content),
        "connect-src": "'self'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return content, {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        # A page of another version would not match the server.
        "cache-control": "no-store",
    }


def _hashes(pattern: re.Pattern[bytes], content: bytes) -> str:
    """A CSP source expression for each inline block."""
    digests = (hashlib.sha256(block).digest() for block in pattern.findall(content))
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def look_at_engine(app_state: AppState) -> Occupancy:
    """The engine of the loaded model."""
    return app_state.loader.filler().occupancy() if app_state.loader.state == "ready" else Occupancy()
