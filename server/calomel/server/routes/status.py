"""How the server is, for people and for programs.

GET /health, /, /calomel/v1/status and /metrics; all but the first want the token.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final, NamedTuple, get_args

from fastapi import Request
from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from calomel.server.access import protected_router, public_router
from calomel.server.door import Door, door_of
from calomel.server.errors import DoorError, DrainingError, ReplicaLostError
from calomel.server.loading import State
from calomel.server.metrics import PaceStatus, RecentStatus, counted
from calomel.storage.system import resident_bytes
from calomel.suggest.launch import version
from calomel.suggest.process import DEAD_THREADS, DeadThread


class ModelStatus(BaseModel):
    """The model; what is not known before it is loaded is null. `note` tells of one behind another server."""

    state: str
    id: str | None = None
    weights: str | None = None
    kinds: Sequence[str] = ()
    context: int | None = None
    device: str
    note: str | None = None


class QueueStatus(BaseModel):
    """Requests: with a place, places in all, in the engine's batch, waiting for it, and refused by code."""

    running: int
    limit: int
    engine_running: int | None
    engine_waiting: int | None
    refused: dict[str, int]


class ReplicasStatus(BaseModel):
    """The processes with the model: how many there should be and are; all other figures are of the one of this name."""

    wanted: int
    ready: int
    name: str = ""


class CacheStatus(BaseModel):
    """The prefix cache: share of all context tokens that it had, tokens that it holds, and its room."""

    hit_share: float | None
    tokens: int | None
    capacity: int | None


class SuggestionStatus(BaseModel):
    """Edits that were shown, and that were not by reason."""

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
    dead_threads: list[DeadThread]
    replicas: ReplicasStatus | None = None
    recent: list[RecentStatus]


# Rows of the page.
_ROWS: Final = 50
_SHOWN: Final = "shown"
# Of Prometheus' text format.
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
_SCRIPT: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
_STYLE: Final = re.compile(rb"<style>(.*?)</style>", re.DOTALL)

health_router = public_router()
router = protected_router()


@health_router.get(
    "/health", responses={503: {"description": "The model is loading or failed, or the server is ending."}}
)
async def health(request: Request) -> Response:
    """200 `{"status": "ok"}` when fills are served; else 503 with `status` "loading", "failed" or "draining".

    "degraded" in the place of "ok" when a part of the server has ended with an error; `/calomel/v1/status` says which.
    A model whose memory was given back counts as there: the next request opens it.
    """
    door = door_of(request)
    try:
        if door.admission.draining:
            raise DrainingError
        if door.loader.state != "unloaded":
            door.loader.filler()
    except DoorError as error:
        return error.response(status="draining" if isinstance(error, DrainingError) else door.loader.state)
    replicas: dict[str, int] | None = getattr(request.state, "replicas", None)
    more = {"replicas": replicas} if replicas else {}
    if replicas and not replicas["ready"]:
        return ReplicaLostError().response(status="loading", **more)
    return JSONResponse({"status": "degraded" if DEAD_THREADS.seen else "ok", **more})


@router.get("/calomel/v1/status", response_model=Status)
async def status(request: Request) -> Status:
    """Model, queue, pace of the last minute, cache, suggestions, and the newest answers in numbers."""
    door = door_of(request)
    recent, metrics = door.recent, door.metrics
    engine = look_at_engine(door)
    prompt_tokens, cached_tokens = counted(metrics.prompt_tokens)[""], counted(metrics.cached_tokens)[""]
    verdicts = counted(metrics.verdicts)
    return Status(
        version=version(),
        uptime_seconds=recent.uptime,
        model=_model(door),
        queue=QueueStatus(
            running=door.admission.taken,
            limit=door.settings.max_requests,
            engine_running=engine.running,
            engine_waiting=engine.waiting,
            refused=counted(metrics.refused),
        ),
        pace=recent.pace(),
        cache=CacheStatus(
            hit_share=cached_tokens / prompt_tokens if prompt_tokens else None,
            tokens=engine.cache_tokens,
            capacity=engine.cache_capacity,
        ),
        suggestions=SuggestionStatus(
            shown=verdicts.get(_SHOWN, 0),
            suppressed={name: count for name, count in sorted(verdicts.items()) if name != _SHOWN},
        ),
        resident_bytes=resident_bytes(),
        dead_threads=DEAD_THREADS.seen,
        replicas=getattr(request.state, "replicas", None),
        recent=recent.entries(_ROWS),
    )


def _model(door: Door) -> ModelStatus:
    state, device = door.loader.state, door.settings.device
    with contextlib.suppress(DoorError):
        info = door.loader.info()
        return ModelStatus(
            state=state,
            id=info.id,
            weights=info.weights,
            kinds=info.kinds,
            context=info.max_context,
            device=device if door.settings.upstream is None else "upstream",
            note=getattr(door.loader.filler(), "said", None) if state == "ready" else None,
        )
    return ModelStatus(state=state, device=device)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """What the server counts, in Prometheus' text format."""
    return Response(generate_latest(door_of(request).metrics.registry), headers={"content-type": _METRICS})


@router.get("/", response_class=Response, responses={200: {"content": {"text/html": {}}}})
async def page() -> Response:
    """The status page and playground, one file without anything from elsewhere.

    A browser asks its user for the token (as a password) and sends it along with what the page fetches from this
    server.
    """
    content, headers = _page()
    return Response(content, media_type="text/html; charset=utf-8", headers=headers)


@functools.cache
def _page() -> tuple[bytes, dict[str, str]]:
    """The file, and headers that let it run its own script, talk to this server, and nothing else."""
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
        # A page of another version would not fit the server behind it.
        "cache-control": "no-store",
    }


def _hashes(pattern: re.Pattern[bytes], content: bytes) -> str:
    """A CSP source expression for each inline block."""
    digests = (hashlib.sha256(block).digest() for block in pattern.findall(content))
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


class EngineLook(NamedTuple):
    """The engine at one moment; None where there is none.

    Attributes:
        running: requests in its batch.
        waiting: requests that wait for a place in it.
        cache_tokens: tokens that its prefix cache holds, by whole pages; None where it has none.
        cache_capacity: and could hold.
    """

    running: int | None = None
    waiting: int | None = None
    cache_tokens: int | None = None
    cache_capacity: int | None = None


def look_at_engine(door: Door) -> EngineLook:
    """The engine of the loaded model."""
    engine: Any = getattr(door.loader.filler(), "engine", None) if door.loader.state == "ready" else None
    if engine is None:
        return EngineLook()
    running, waiting = engine.occupancy
    cache = getattr(getattr(engine, "decoder", None), "cache", None)  # models that read whole windows have none
    if cache is None:
        return EngineLook(running, waiting)
    held = (cache.pages - cache.free_pages) * cache.page_size
    return EngineLook(running, waiting, held, cache.pages * cache.page_size)


class Gauges(Collector):
    """What Prometheus reads of `door` besides the counters: what is not counted but looked at when somebody asks."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def describe(self) -> Iterable[Metric]:
        """Nothing: the registry must not look at a model that is not there yet."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Look at everything once."""
        door = self._door
        engine = look_at_engine(door)
        for name, told, value in (
            ("calomel_uptime_seconds", "Since the server began", door.recent.uptime),
            ("calomel_requests_limit", "Requests that may have a place", door.settings.max_requests),
            ("calomel_engine_restarts", "Times that a failed engine was opened again", door.loader.restarts),
            ("calomel_cache_tokens", "Tokens in the prefix cache", engine.cache_tokens),
            ("calomel_cache_capacity_tokens", "And its room", engine.cache_capacity),
            ("calomel_resident_memory_bytes", "Memory of the server's process", resident_bytes()),
        ):
            if value is not None:
                yield GaugeMetricFamily(name, told, value)
        states = {name: float(door.loader.state == name) for name in get_args(State)}
        yield _gauge("calomel_model_state", "1 for the state that the model is in", "state", states)
        if engine.running is not None and engine.waiting is not None:
            told = "Requests in the engine, in its batch or waiting for it"
            queue = {"running": engine.running, "waiting": engine.waiting}
            yield _gauge("calomel_engine_requests", told, "state", queue)


def _gauge(name: str, told: str, label: str, values: Mapping[str, float]) -> Metric:
    """A gauge with a value for each value of its one label."""
    gauge = GaugeMetricFamily(name, told, labels=(label,))
    for each, value in values.items():
        gauge.add_metric((each,), value)
    return gauge
