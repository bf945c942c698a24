"""`calomel bench soak`: half an hour of mixed traffic at a real server, and what is left behind of it.

Fills, streams, canvases, edits, clients that leave in the middle, bad requests. Every few seconds the server's memory,
open files, threads and places are looked at; in the end everything must be given back.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Final

from calomel.bench.crowd import source_address
from calomel.bench.heldout import read_heldout
from calomel.bench.load import LOADED_CORES, WINDOW_SECONDS, LoadWatch
from calomel.bench.machine import describe_run
from calomel.bench.model import TokenizerMeasure, checkpoint_folder
from calomel.bench.places import make_places
from calomel.bench.progress import Progress
from calomel.bench.report import Report, Table, Value, figures_table, number_cell
from calomel.bench.served import Served, served
from calomel.bench.stats import percentile
from calomel.bench.traffic import WEIGHTS, Deed, Traffic
from calomel.bench.wire_client import WireClient, WireError

MINUTES: Final = 30.0
CLIENTS: Final = 8
PLACES: Final = 24
CONTEXT: Final = 1024
SAMPLE_SECONDS: Final = 5.0
# An answer that takes longer is counted as one that never comes.
PATIENCE_SECONDS: Final = 60.0
# What is left when everybody has gone is looked at after so long: the last engine steps, and closing of connections.
SETTLE_SECONDS: Final = 3.0
# Caches fill and libraries allocate at first: growth is counted from here on.
WARM_SHARE: Final = 0.2
ROWS: Final = 10
_GAUGE: Final = re.compile(r"^(calomel_\w+) (\S+)$", re.MULTILINE)

_LATER: Final = frozenset({429, 503})
_SHARES: Final = ", ".join(f"{share} {name}" for name, share in WEIGHTS.items())
NOTES: Final = (
    (
        f"Of a hundred requests: {_SHARES}. `leave` hangs up within 0.3 seconds, `bad` is refused by its shape, type,"
        " size or path, `look` reads the page and the metrics."
    ),
    (
        "`errors`: answers with a status that is not right for the request, and connections that broke without an"
        f" answer. `hung`: no answer within {PATIENCE_SECONDS:.0f} seconds. `rejected`: 429 or 503."
    ),
    (
        f"`memory_growth_mib`: mean resident memory in the last {WARM_SHARE:.0%} of the run, less that from"
        f" {WARM_SHARE:.0%} to {2 * WARM_SHARE:.0%} of it. The prefix cache takes its memory as it fills; the table"
        " says how full it was."
    ),
    (
        "`files_left`, `places_left`: open files of the server beyond those before the first request, and requests that"
        " still have a place, after the last client has gone."
    ),
)


@dataclass(frozen=True, slots=True)
class SoakOptions:
    """How long, on what, and where the results go."""

    minutes: float = MINUTES
    clients: int = CLIENTS
    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    seed: int = 1
    json: Path | None = None
    results: Path | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """The server at one moment: seconds since the start, resident MiB, open files, threads, share of the cache."""

    at: float
    memory: float
    files: int
    threads: int
    cache: float = 0.0


@dataclass(slots=True)
class Soaked:
    """What was seen.

    Attributes:
        deeds: by kind, how often.
        statuses: by status, how often.
        fills: moment and milliseconds of each plain fill.
        wrong: by kind and status, answers that were not right.
        rejected: by kind and status, answers that told to come back later.
        places_left: requests that still have a place in the end.
    """

    deeds: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    fills: list[tuple[float, float]] = field(default_factory=list)
    wrong: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    hung: int = 0
    samples: list[Sample] = field(default_factory=list)
    before: Sample | None = None
    after: Sample | None = None
    places_left: int | None = None
    seconds: float = 0.0


def run_soak(options: SoakOptions) -> Report:
    """Soak, write what `options` asks for, and return the report.

    Raises:
        ServedError: the server does not start.
        BenchDataError: the held-out files are absent or damaged.
    """
    from calomel.prompts.tokenizer import Tokenizer

    provenance = describe_run()
    watch = LoadWatch()
    time.sleep(WINDOW_SECONDS)
    others = watch.others()
    measure = TokenizerMeasure(Tokenizer.from_file(checkpoint_folder(options.model) / "tokenizer.json"))
    traffic = Traffic(make_places(PLACES, CONTEXT, read_heldout(), measure, seed=options.seed), options.seed)
    soaked = Soaked()
    with served(options.model, options.device, options.threads) as server:
        asyncio.run(_soak(options, server, traffic, soaked, Progress()))
    flat = flat_figures(soaked)
    flat["loaded"] = others > LOADED_CORES
    tables = (figures_table("Soak", flat), over_time(soaked))
    report = Report(
        "bench soak",
        flat,
        tables,
        NOTES,
        provenance,
        {"wrong": dict(soaked.wrong), "rejected_by": dict(soaked.rejected)},
    )
    report.write(json_path=options.json, results=options.results)
    return report


async def _soak(options: SoakOptions, server: Served, traffic: Traffic, soaked: Soaked, progress: Progress) -> None:
    began = time.monotonic()
    until = began + options.minutes * 60
    soaked.before = look(server.pid, 0.0)
    progress.phase("soak, samples", int(options.minutes * 60 / SAMPLE_SECONDS))

    async def client(number: int) -> None:
        async with WireClient(server.host, server.port, server.token, source_address(server.host, number)) as wire:
            while time.monotonic() < until:
                await do(wire, traffic.deed(), soaked, began)

    async def watch() -> None:
        async with WireClient(server.host, server.port, server.token) as wire:
            for number in count(1):
                await asyncio.sleep(max(0.0, min(began + number * SAMPLE_SECONDS, until) - time.monotonic()))
                soaked.samples.append(look(server.pid, time.monotonic() - began, cache=await _cache(wire)))
                progress.step()
                if time.monotonic() >= until:
                    return

    await asyncio.gather(watch(), *(client(number) for number in range(options.clients)))
    soaked.seconds = time.monotonic() - began
    await asyncio.sleep(SETTLE_SECONDS)
    async with WireClient(server.host, server.port, server.token) as wire:
        soaked.places_left = int((await _gauges(wire)).get("calomel_requests_running", -1))
    await asyncio.sleep(SETTLE_SECONDS)
    soaked.after = look(server.pid, time.monotonic() - began)


async def _gauges(wire: WireClient) -> dict[str, float]:
    return {name: float(value) for name, value in _GAUGE.findall((await wire.get("/metrics")).body.decode())}


async def _cache(wire: WireClient) -> float:
    """How full the prefix cache is, as a share."""
    try:
        found = await _gauges(wire)
    except (WireError, OSError):
        return 0.0
    return found.get("calomel_cache_tokens", 0.0) / found.get("calomel_cache_capacity_tokens", 1.0)


async def do(wire: WireClient, deed: Deed, soaked: Soaked, began: float) -> None:
    """Do one deed and note what came of it; raises nothing."""
    soaked.deeds[deed.kind] += 1
    started = time.monotonic()
    try:
        if deed.stays is not None:
            await wire.send(deed.path, deed.body)
            await asyncio.sleep(deed.stays)
            wire.drop()
            return
        asking = wire.get(deed.path) if deed.method == "GET" else wire.post(deed.path, deed.body, deed.media_type)
        status = (await asyncio.wait_for(asking, PATIENCE_SECONDS)).status
    except TimeoutError:
        soaked.hung += 1
        wire.drop()
        return
    except (WireError, OSError):
        # A server may hang up while it is still being sent what it does not take (RFC 9110, section 15.5.14).
        wire.drop()
        if 413 not in deed.fine:  # noqa: PLR2004
            soaked.wrong[f"{deed.kind} without an answer"] += 1
        return
    soaked.statuses[status] += 1
    if status in _LATER:
        soaked.rejected[f"{deed.kind} {status}"] += 1
    if status not in deed.fine:
        soaked.wrong[f"{deed.kind} {status}"] += 1
    elif deed.kind == "fill":
        soaked.fills.append((started - began, (time.monotonic() - started) * 1e3))


def look(pid: int, at: float, proc: Path = Path("/proc"), *, cache: float = 0.0) -> Sample:
    """The process at this moment; zeros where the system does not tell."""
    try:
        folder = proc / str(pid)
        pages = int((folder / "statm").read_text(encoding="ascii").split()[1])
        memory = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
        files, threads = (len(list((folder / name).iterdir())) for name in ("fd", "task"))
        return Sample(at, memory, files, threads, cache)
    except (OSError, ValueError, IndexError):
        return Sample(at, 0.0, 0, 0)


def flat_figures(soaked: Soaked) -> dict[str, Value]:
    """The figures of the whole run."""
    samples, end = soaked.samples, soaked.seconds
    warm = [sample.memory for sample in samples if WARM_SHARE * end <= sample.at <= 2 * WARM_SHARE * end]
    last = [sample.memory for sample in samples if sample.at >= (1 - WARM_SHARE) * end]
    early = [ms for at, ms in soaked.fills if WARM_SHARE * end <= at <= 2 * WARM_SHARE * end]
    late = [ms for at, ms in soaked.fills if at >= (1 - WARM_SHARE) * end]
    asked = sum(soaked.deeds.values())
    return {
        "minutes": round(end / 60, 2),
        "requests": asked,
        "requests_per_second": round(asked / end, 2) if end else None,
        "left": soaked.deeds["leave"] + soaked.deeds["leave_stream"],
        "refused_as_bad": soaked.deeds["bad"],
        "errors": sum(soaked.wrong.values()),
        "hung": soaked.hung,
        "rejected": sum(soaked.rejected.values()),
        "p50_ms": _rounded(percentile([ms for _, ms in soaked.fills], 50)),
        "p95_ms": _rounded(percentile([ms for _, ms in soaked.fills], 95)),
        "p95_early_ms": _rounded(percentile(early, 95)),
        "p95_late_ms": _rounded(percentile(late, 95)),
        "memory_start_mib": _rounded(soaked.before.memory if soaked.before else None),
        "memory_warm_mib": _rounded(fmean(warm) if warm else None),
        "memory_end_mib": _rounded(fmean(last) if last else None),
        "memory_most_mib": _rounded(max((sample.memory for sample in samples), default=None)),
        "memory_growth_mib": _rounded(fmean(last) - fmean(warm) if warm and last else None),
        "files_most": max((sample.files for sample in samples), default=None),
        "files_left": soaked.after.files - soaked.before.files if soaked.before and soaked.after else None,
        "threads_most": max((sample.threads for sample in samples), default=None),
        "places_left": soaked.places_left,
    }


def over_time(soaked: Soaked) -> Table:
    """The run in equal parts."""
    rows = []
    for part in range(ROWS):
        begin, end = soaked.seconds * part / ROWS, soaked.seconds * (part + 1) / ROWS
        samples = [sample for sample in soaked.samples if begin <= sample.at < end]
        fills = [ms for at, ms in soaked.fills if begin <= at < end]
        rows.append(
            (
                f"{begin / 60:.1f} to {end / 60:.1f} min",
                str(len(fills)),
                number_cell(percentile(fills, 50), 0),
                number_cell(percentile(fills, 95), 0),
                _mean_cell([sample.memory for sample in samples]),
                f"{fmean(sample.cache for sample in samples):.0%}" if samples else "-",
                _mean_cell([sample.files for sample in samples]),
                _mean_cell([sample.threads for sample in samples]),
            )
        )
    columns = ("time", "fills", "p50 ms", "p95 ms", "memory MiB", "cache", "open files", "threads")
    return Table("Over time", columns, tuple(rows))


def _mean_cell(values: Sequence[float]) -> str:
    return number_cell(fmean(values) if values else None, 0)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
