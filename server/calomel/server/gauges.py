"""What is not counted but looked at when somebody asks: the model, the engine's queue and cache, memory, uptime."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from calomel.server.door import Door
    from calomel.suggest.replicas.line import ReplicaLook

STATES: Final = ("loading", "ready", "failed", "unloaded")


@dataclass(frozen=True, slots=True)
class EngineLook:
    """The engine at one moment.

    Attributes:
        running: requests in its batch.
        waiting: requests that wait for a place in it.
        cache_tokens: tokens that its prefix cache holds, by whole pages; None where it has none.
        cache_capacity: and could hold.
    """

    running: int
    waiting: int
    cache_tokens: int | None
    cache_capacity: int | None


@dataclass(frozen=True, slots=True)
class ReplicasLook:
    """The processes with the model, where there are several.

    Attributes:
        wanted: how many there should be.
        up: how many there are, with what each said last.
        restarts: how many were started in the place of lost ones.
        retried: requests that were asked of another, because theirs was lost.
        lost: requests that could not be.
        doubled: results that came for a request that had one.
    """

    wanted: int
    up: tuple[ReplicaLook, ...]
    restarts: int
    retried: int
    lost: int
    doubled: int


@dataclass(frozen=True, slots=True)
class GpuLook:
    """Memory of one GPU, in bytes."""

    device: str
    used: int
    free: int


def look_at_engine(door: Door) -> EngineLook | None:
    """The engine of the loaded model; None when there is none."""
    if door.loader.state != "ready":
        return None
    engine: Any = getattr(door.loader.filler(), "engine", None)
    if engine is None:
        return None
    running, waiting = engine.occupancy
    replicas = look_at_replicas(door)
    if replicas is not None and any(look.cache_tokens is not None for look in replicas.up):
        tokens = sum(look.cache_tokens or 0 for look in replicas.up)
        return EngineLook(running, waiting, tokens, sum(look.cache_capacity or 0 for look in replicas.up))
    cache = getattr(engine, "cache", None)  # models that read whole windows, and those served elsewhere, have none
    if cache is None:
        return EngineLook(running, waiting, None, None)
    held = (cache.pages - cache.free_pages) * cache.page_size
    return EngineLook(running, waiting, held, cache.pages * cache.page_size)


def look_at_replicas(door: Door) -> ReplicasLook | None:
    """The processes with the model; None where it is in this one, or not there yet."""
    if door.settings.replicas is None or door.loader.state != "ready":
        return None
    engine: Any = door.loader.filler().engine
    watch, losses = engine.watch, engine.losses
    return ReplicasLook(watch.wanted, watch.up, watch.restarts, losses.retried, losses.lost, losses.doubled)


def look_at_gpus(door: Door) -> tuple[GpuLook, ...]:
    """The GPUs that this process uses, once its model is there. Loads nothing: the model has loaded torch."""
    torch: Any = sys.modules.get("torch")
    # While the model is being loaded, torch is a module that is not finished.
    if door.loader.state != "ready" or torch is None or not torch.cuda.is_initialized():
        return ()
    found = []
    for number in range(torch.cuda.device_count()):
        used = torch.cuda.memory_allocated(number)
        if used:
            found.append(GpuLook(f"cuda:{number}", used, torch.cuda.mem_get_info(number)[0]))
    return tuple(found)


def resident_bytes(statm: Path = Path("/proc/self/statm")) -> int | None:
    """Memory of this process; None where the system does not tell."""
    try:
        pages = int(statm.read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    import resource

    return pages * resource.getpagesize()


class Gauges(Collector):
    """What Prometheus reads of `door` besides the counters."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def describe(self) -> Iterable[Metric]:
        """Nothing: the registry must not look at a model that is not there yet."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Look at everything once."""
        door = self._door
        state = GaugeMetricFamily("calomel_model_state", "1 for the state that the model is in", labels=("state",))
        for name in STATES:
            state.add_metric((name,), float(door.loader.state == name))
        yield state
        yield GaugeMetricFamily("calomel_uptime_seconds", "Since the server began", door.recent.uptime)
        yield GaugeMetricFamily(
            "calomel_requests_limit", "Requests that may have a place", float(door.settings.max_requests)
        )
        yield GaugeMetricFamily(
            "calomel_engine_restarts", "Times that a failed engine was opened again", float(door.loader.restarts)
        )
        engine = look_at_engine(door)
        if engine is not None:
            queue = GaugeMetricFamily(
                "calomel_engine_requests", "Requests in the engine, in its batch or waiting for it", labels=("state",)
            )
            queue.add_metric(("running",), engine.running)
            queue.add_metric(("waiting",), engine.waiting)
            yield queue
            if engine.cache_tokens is not None and engine.cache_capacity is not None:
                yield GaugeMetricFamily("calomel_cache_tokens", "Tokens in the prefix cache", engine.cache_tokens)
                yield GaugeMetricFamily("calomel_cache_capacity_tokens", "And its room", engine.cache_capacity)
        replicas = look_at_replicas(door)
        if replicas is not None:
            yield from _of_replicas(replicas)
        resident = resident_bytes()
        if resident is not None:
            yield GaugeMetricFamily("calomel_resident_memory_bytes", "Memory of the server's process", resident)
        gpus = look_at_gpus(door)
        if gpus:
            memory = GaugeMetricFamily("calomel_gpu_memory_bytes", "Memory of each GPU", labels=("device", "state"))
            for gpu in gpus:
                memory.add_metric((gpu.device, "used"), gpu.used)
                memory.add_metric((gpu.device, "free"), gpu.free)
            yield memory


def _of_replicas(replicas: ReplicasLook) -> Iterable[Metric]:
    count = GaugeMetricFamily("calomel_replicas", "Processes with the model, wanted and up", labels=("state",))
    count.add_metric(("wanted",), replicas.wanted)
    count.add_metric(("up",), len(replicas.up))
    yield count
    yield GaugeMetricFamily(
        "calomel_replica_restarts", "Processes that were started in the place of lost ones", replicas.restarts
    )
    lost = GaugeMetricFamily(
        "calomel_replica_requests", "Requests whose process was lost: asked of another, or refused", labels=("fate",)
    )
    lost.add_metric(("retried",), replicas.retried)
    lost.add_metric(("lost",), replicas.lost)
    yield lost
