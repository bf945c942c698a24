"""Bodies of `/calomel/v1/status` and `/calomel/v1/recordings/{id}`: what the status page shows."""

from __future__ import annotations

from pydantic import BaseModel


class ModelStatus(BaseModel):
    """The model; what is not known before it is loaded is null, and so is `upstream` where no prompt is sent on."""

    state: str
    id: str | None
    weights: str | None
    kinds: list[str]
    context: int | None
    device: str
    upstream: str | None = None


class QueueStatus(BaseModel):
    """Requests: with a place, places in all, in the engine's batch, waiting for it, and refused by code."""

    running: int
    limit: int
    engine_running: int | None
    engine_waiting: int | None
    refused: dict[str, int]


class ReplicaStatus(BaseModel):
    """One process with the model; see `calomel.suggest.replicas.line.ReplicaLook`."""

    id: str
    pid: int
    node: str
    running: int
    waiting: int
    answered: int


class ReplicasStatus(BaseModel):
    """The processes with the model: how many there should be, those that are up, and what became of the others."""

    wanted: int
    up: list[ReplicaStatus]
    restarts: int
    retried: int
    lost: int
    doubled: int


class PaceStatus(BaseModel):
    """The last minute's answers."""

    seconds: float
    answers_per_second: float
    tokens_per_second: float
    p50_ms: float | None
    p95_ms: float | None
    by_second: list[int]


class CacheStatus(BaseModel):
    """The prefix cache: share of all context tokens that it had, tokens that it holds, and its room."""

    hit_share: float | None
    tokens: int | None
    capacity: int | None


class SuggestionStatus(BaseModel):
    """Edits that were shown, and that were not by reason."""

    shown: int
    suppressed: dict[str, int]


class GpuStatus(BaseModel):
    """Memory of one GPU."""

    device: str
    used_bytes: int
    free_bytes: int


class RecentStatus(BaseModel):
    """One answer, in numbers.

    Attributes:
        finish: how it ended; of an edit, `shown` or the reason why it was not.
        recorded: whether its denoising can be replayed.
    """

    id: str
    at: float
    route: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    steps: int
    milliseconds: float
    finish: str
    recorded: bool


class DeadThreadStatus(BaseModel):
    """A part of the server that ended with an error; see `calomel.suggest.process.DeadThread`."""

    name: str
    error: str
    place: str


class Status(BaseModel):
    """The whole page at one moment."""

    version: str
    uptime_seconds: float
    model: ModelStatus
    queue: QueueStatus
    pace: PaceStatus
    cache: CacheStatus
    suggestions: SuggestionStatus
    resident_bytes: int | None
    dead_threads: list[DeadThreadStatus]
    gpus: list[GpuStatus]
    replicas: ReplicasStatus | None = None
    recording: bool
    recent: list[RecentStatus]


class Frame(BaseModel):
    """The canvas behind one step; see `calomel` in a chunk of `/v1/fim/completions`."""

    step: int
    pieces: list[str]
    revealed: list[bool]


class Recording(BaseModel):
    """How one answer was denoised."""

    id: str
    frames: list[Frame]
