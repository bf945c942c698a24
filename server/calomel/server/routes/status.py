"""GET /calomel/v1/status and /calomel/v1/recordings/{id}: the numbers behind the status page, and its replays."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import Path, Request

from calomel.server.access import protected_router
from calomel.server.door import Door, door_of
from calomel.server.errors import DoorError, RecordingError
from calomel.server.gauges import look_at_engine, look_at_gpus, look_at_replicas, resident_bytes
from calomel.server.metrics import counted
from calomel.server.recent import Entry
from calomel.server.schemas.errors import ErrorResponse
from calomel.server.schemas.status import (
    CacheStatus,
    DeadThreadStatus,
    Frame,
    GpuStatus,
    ModelStatus,
    PaceStatus,
    QueueStatus,
    RecentStatus,
    Recording,
    ReplicasStatus,
    ReplicaStatus,
    Status,
    SuggestionStatus,
)
from calomel.suggest.completer import ModelInfo
from calomel.suggest.model_info import version
from calomel.suggest.process import DEAD_THREADS

# Rows of the page.
_SHOWN = 50
_VERDICT_SHOWN = "shown"

router = protected_router(responses={"4XX": {"model": ErrorResponse}, "5XX": {"model": ErrorResponse}})


@router.get("/calomel/v1/status", response_model=Status)
async def status(request: Request) -> Status:
    """Model, queue, pace of the last minute, cache, suggestions, and the newest answers in numbers."""
    door = door_of(request)
    recent, metrics = door.recent, door.metrics
    engine, pace = look_at_engine(door), recent.pace()
    prompt_tokens, cached_tokens = counted(metrics.prompt_tokens), counted(metrics.cached_tokens)
    verdicts = metrics.by_label(metrics.verdicts)
    return Status(
        version=version(),
        uptime_seconds=recent.uptime,
        model=_model(door),
        queue=QueueStatus(
            running=door.admission.taken,
            limit=door.settings.max_requests,
            engine_running=None if engine is None else engine.running,
            engine_waiting=None if engine is None else engine.waiting,
            refused=metrics.by_label(metrics.refused),
        ),
        pace=PaceStatus(
            seconds=pace.seconds,
            answers_per_second=pace.answers / pace.seconds,
            tokens_per_second=pace.tokens / pace.seconds,
            p50_ms=pace.percentile(50),
            p95_ms=pace.percentile(95),
            by_second=list(pace.by_second),
        ),
        cache=CacheStatus(
            hit_share=cached_tokens / prompt_tokens if prompt_tokens else None,
            tokens=None if engine is None else engine.cache_tokens,
            capacity=None if engine is None else engine.cache_capacity,
        ),
        suggestions=SuggestionStatus(
            shown=verdicts.get(_VERDICT_SHOWN, 0),
            suppressed={name: count for name, count in sorted(verdicts.items()) if name != _VERDICT_SHOWN},
        ),
        resident_bytes=resident_bytes(),
        dead_threads=[DeadThreadStatus(**asdict(dead)) for dead in DEAD_THREADS.seen],
        gpus=[GpuStatus(device=gpu.device, used_bytes=gpu.used, free_bytes=gpu.free) for gpu in look_at_gpus(door)],
        replicas=_replicas(door),
        recording=door.settings.record_denoising,
        recent=[_row(entry, recorded=recent.recorded(entry.id)) for entry in recent.entries(_SHOWN)],
    )


@router.get("/calomel/v1/recordings/{completion_id}", response_model=Recording)
async def recording(completion_id: Annotated[str, Path(max_length=64)], request: Request) -> Recording:
    """The canvases of one answer, step by step; 404 unless the server records and still has them."""
    canvases = door_of(request).recent.recording(completion_id)
    if canvases is None:
        raise RecordingError
    frames = [Frame(step=each.step, pieces=list(each.pieces), revealed=list(each.revealed)) for each in canvases]
    return Recording(id=completion_id, frames=frames)


def _replicas(door: Door) -> ReplicasStatus | None:
    found = look_at_replicas(door)
    if found is None:
        return None
    up = [
        ReplicaStatus(
            id=look.id,
            pid=look.pid,
            node=look.node,
            running=look.running,
            waiting=look.waiting,
            answered=look.answered,
        )
        for look in found.up
    ]
    return ReplicasStatus(
        wanted=found.wanted,
        up=up,
        restarts=found.restarts,
        retried=found.retried,
        lost=found.lost,
        doubled=found.doubled,
    )


def _model(door: Door) -> ModelStatus:
    info: ModelInfo | None
    try:
        info = door.loader.info()
    except DoorError:
        info = None
    return ModelStatus(
        state=door.loader.state,
        id=None if info is None else info.id,
        weights=None if info is None else info.weights,
        kinds=[] if info is None else list(info.kinds),
        context=None if info is None else info.max_context,
        device=door.settings.device,
        upstream=door.settings.upstream_host,
    )


def _row(entry: Entry, *, recorded: bool) -> RecentStatus:
    spent = entry.spent
    return RecentStatus(
        id=entry.id,
        at=entry.at,
        route=entry.route,
        prompt_tokens=spent.prompt_tokens,
        cached_tokens=spent.cached_tokens,
        completion_tokens=spent.completion_tokens,
        steps=spent.steps,
        milliseconds=spent.seconds * 1e3,
        finish=spent.finish,
        recorded=recorded,
    )
